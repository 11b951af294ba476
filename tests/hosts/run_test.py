#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""diomp-run --hosts when hosts and networks fail, and what it says then."""
import os
import subprocess
import time
import unittest

import hosts
from time_limits import scaled

RUN = os.environ["DIOMP_TEST_RUN"]
PROBE = os.environ["DIOMP_TEST_PROBE"]
# Silence that counts as the end, and how long after that everything must be over: the agents' second of grace, and
# the kernel's rounding of its own timers on the host that is cut off.
TIMEOUT_S = round(scaled(2))
END_LIMIT_S = TIMEOUT_S + 10


class run_test(unittest.TestCase):
    def start(self, *words, on=None):
        command = [RUN, "--hosts", ",".join(on or hosts.HOSTS), "--rsh", hosts.RSH, "--bind-to", "none",
                   "-x", f"DIOMP_TIMEOUT={TIMEOUT_S}", *words]
        process = subprocess.Popen(command, text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        return process

    def run_job(self, *words, on=None):
        process = self.start(*words, on=on)
        out, err = process.communicate(timeout=hosts.LIMIT_S)
        return process.returncode, out, err

    def ready_job(self, *options):
        process = self.start(*options, "sh", "-c", "sleep 97 & echo ready; wait")
        for _ in hosts.HOSTS:
            self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def ends(self, process, message):
        """The job ends in time with one message, and leaves nothing on any host, also if that cannot be reached."""
        began = time.monotonic()
        _, err = process.communicate(timeout=END_LIMIT_S)
        said = [line for line in err.splitlines() if line.startswith("diomp-run: ")]
        self.assertRegex(said[0], message)
        for host in hosts.HOSTS:
            while hosts.console(host, "pgrep -f '[s]leep 97|[-]-agent'")[1]:
                self.assertLess(time.monotonic() - began, END_LIMIT_S, f"processes are left on {host}")
        return said

    def test_hosts_without_the_one_of_the_user(self):
        status, out, err = self.run_job("sh", "-c", "hostname", on=hosts.HOSTS[1:])
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(sorted(out.split()), sorted(hosts.HOSTS[1:]))

    def test_unknown_host(self):
        status, _, err = self.run_job("true", on=[*hosts.HOSTS, "nowhere"])
        self.assertEqual(status, 1)
        self.assertIn("cannot reach host nowhere", err)

    def test_address_of_one_interface(self):
        status, out, err = self.run_job("--head-address", "eth0", "echo", "x")
        self.assertEqual((status, out, err), (0, "x\n" * len(hosts.HOSTS), ""))

    def test_loss_and_delay_only_take_time(self):
        hosts.netem(hosts.HOSTS[1], loss_percent=5, delay_ms=50)
        try:
            status, out, err = self.run_job("-n", str(2 * len(hosts.HOSTS)), PROBE, "exchange")
        finally:
            hosts.netem(hosts.HOSTS[1])
        self.assertEqual((status, err, len(out.splitlines())), (0, "", 2 * len(hosts.HOSTS)))

    def test_cable_that_is_pulled(self):
        process = self.ready_job()
        lost = hosts.HOSTS[1]
        hosts.cable(lost, "out")
        try:
            said = self.ends(process, rf"lost host {lost} \(ranks 1 to 1\)")
        finally:
            hosts.cable(lost, "in")
        self.assertEqual(process.returncode, 1)
        self.assertEqual(len(said), 1, said)

    def test_link_that_goes_down(self):
        process = self.ready_job()
        lost = hosts.HOSTS[-1]
        hosts.link(lost, "down")
        try:
            self.ends(process, rf"lost host {lost} ")
        finally:
            hosts.link(lost, "up")
        self.assertEqual(process.returncode, 1)

    def test_cable_that_is_pulled_for_a_moment_does_no_harm(self):
        process = self.start("sh", "-c", "echo ready; read x < /dev/null; sleep 1; echo done")
        for _ in hosts.HOSTS:
            self.assertEqual(process.stdout.readline(), "ready\n")
        hosts.cable(hosts.HOSTS[1], "out")
        hosts.cable(hosts.HOSTS[1], "in")
        out, err = process.communicate(timeout=hosts.LIMIT_S)
        self.assertEqual((process.returncode, out, err), (0, "done\n" * len(hosts.HOSTS), ""))

    def test_agent_that_stops(self):
        process = self.ready_job()
        lost = hosts.HOSTS[1]
        agents = hosts.processes(lost, "--agent")
        hosts.send_signal(lost, "STOP", agents)
        _, err = process.communicate(timeout=END_LIMIT_S)
        self.assertIn(f"lost host {lost} (ranks 1 to 1): no word from it for {TIMEOUT_S} s", err)
        # Finds its head gone. What belonged to the remote shell may be so already.
        hosts.console(lost, f"kill -CONT {' '.join(map(str, agents))} 2>&1")
        while hosts.processes(lost, "sleep 97"):
            self.assertLess(time.monotonic() - began, END_LIMIT_S)

    def test_interrupt_reaches_all_hosts(self):
        process = self.ready_job()
        process.send_signal(2)
        self.ends(process, "got SIGINT")
        self.assertEqual(process.returncode, 130)


if __name__ == "__main__":
    unittest.main()
