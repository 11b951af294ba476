#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a command finds on the test hosts, and the faults that it can ask for."""
import hashlib
import os
import re
import socket
import subprocess
import time
import unittest

import hosts

PEER = hosts.HOSTS[1]


def ping(count=3, wait_s=2, interval_s=0.01):
    """(answers, mean round trip in ms)"""
    out = hosts.here("ping", "-c", str(count), "-i", str(interval_s), "-W", str(wait_s), PEER).stdout
    mean = re.search(r"rtt [^=]*= [\d.]+/([\d.]+)", out)
    return int(re.search(r"(\d+) received", out).group(1)), float(mean.group(1)) if mean else None


class inside_test(unittest.TestCase):
    def tearDown(self):
        # In order, since ctest runs each test on hosts of its own, but a person may run them all on the same.
        hosts.netem(PEER)
        hosts.cable(PEER, "in")
        hosts.link(PEER, "up")

    def test_every_host_has_its_name_and_address(self):
        self.assertEqual(os.uname().nodename, hosts.HOSTS[0])
        addresses = {socket.gethostbyname(name) for name in hosts.HOSTS}
        self.assertEqual(len(addresses), len(hosts.HOSTS))
        for name in hosts.HOSTS:
            shown = hosts.on(name, "hostname; ip -o -4 addr; cat /sys/class/net/eth0/mtu").stdout
            self.assertEqual(shown.splitlines()[0], name)
            self.assertIn(f" {socket.gethostbyname(name)}/24 ", shown)
            self.assertIn(" 127.0.0.1/8 ", shown)
            self.assertEqual(shown.splitlines()[-1], "1500")

    def test_every_host_reaches_every_other(self):
        for source in hosts.HOSTS:
            for target in hosts.HOSTS:
                done = hosts.on(source, f"ping -q -c 1 -W 5 {target}")
                self.assertEqual(done.returncode, 0, f"{source} to {target}: {done.stdout}")

    def test_hosts_share_no_processes_and_no_memory_files(self):
        with open("/dev/shm/mine", "w") as file:
            file.write("x")
        self.assertEqual(hosts.on(PEER, "ls /dev/shm").stdout, "")
        sleeper = subprocess.Popen(["sleep", "98765"])
        self.assertEqual(hosts.processes(hosts.HOSTS[0], "sleep 98765"), {sleeper.pid})
        self.assertEqual(hosts.processes(PEER, "sleep 98765"), set())
        sleeper.kill()
        sleeper.wait()

    # ---- The remote shell

    def test_shell_gives_status_and_both_outputs(self):
        done = hosts.on(PEER, "echo out; echo err >&2; exit 7")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (7, "out\n", "err\n"))
        self.assertEqual(hosts.on(PEER, "kill -9 $$").returncode, 137)

    def test_shell_carries_standard_input(self):
        data = os.urandom(3 << 20)
        done = subprocess.run([hosts.RSH, PEER, "md5sum"], input=data, capture_output=True, timeout=hosts.LIMIT_S)
        self.assertEqual(done.stdout.split()[0].decode(), hashlib.md5(data).hexdigest())

    def test_shell_passes_no_environment(self):
        done = hosts.on(PEER, "env", env={**os.environ, "SECRET": "1"})
        self.assertNotIn("SECRET", done.stdout)
        self.assertIn("PATH=", done.stdout)

    def test_shell_takes_options_of_ssh(self):
        done = hosts.here(hosts.RSH, "-x", "-o", "BatchMode=yes", "-p", "22", f"me@{PEER}", "echo", "a", "b")
        self.assertEqual(done.stdout, "a b\n")

    def test_killing_the_client_only_ends_the_input_of_the_command(self):
        client = subprocess.Popen([hosts.RSH, PEER, "cat; echo over >/dev/shm/said; exec sleep 87654"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        client.stdin.write(b"there\n")
        client.stdin.flush()
        self.assertEqual(client.stdout.readline(), b"there\n")
        client.kill()
        client.communicate()
        self.until(lambda: hosts.on(PEER, "cat /dev/shm/said").stdout == "over\n")
        self.until(lambda: hosts.processes(PEER, "sleep 87654"))

    def test_unknown_host(self):
        done = hosts.on("nowhere", "true")
        self.assertEqual(done.returncode, 255)
        self.assertIn("nowhere", done.stderr)

    # ---- Faults

    def test_link_down_and_up(self):
        hosts.link(PEER, "down")
        self.assertEqual(ping(1, 1)[0], 0)
        hosts.link(PEER, "up")
        self.until(lambda: ping(1, 1)[0] == 1)

    def test_cable_out_and_in(self):
        hosts.cable(PEER, "out")
        self.assertEqual(ping(1, 1)[0], 0)
        hosts.cable(PEER, "in")
        self.until(lambda: ping(1, 1)[0] == 1)

    def test_delay(self):
        self.assertIn(hosts.netem(PEER, delay_ms=80), ("tc netem", "relay"))
        answers, mean_ms = ping(5)
        self.assertEqual(answers, 5)
        self.assertGreater(mean_ms, 79)
        hosts.netem(PEER)
        self.assertLess(ping(5)[1], 40)

    def test_rate(self):
        data = os.urandom(1 << 20)

        def seconds():
            began = time.monotonic()
            done = subprocess.run([hosts.RSH, PEER, "cat"], input=data, capture_output=True, timeout=hosts.LIMIT_S)
            self.assertEqual(done.stdout, data)
            return time.monotonic() - began
        self.assertLess(seconds(), 1)
        self.assertEqual(hosts.netem(PEER, rate=1 << 20), "relay")
        self.assertGreater(seconds(), 1)

    def test_loss(self):
        hosts.netem(PEER, loss_percent=50)
        answers, _ = ping(100, 1)
        # Outside of these with a probability below one in ten million.
        self.assertTrue(20 < answers < 80, answers)
        data = os.urandom(1 << 16)
        hosts.netem(PEER, loss_percent=5)
        done = subprocess.run([hosts.RSH, PEER, "cat"], input=data, capture_output=True, timeout=hosts.LIMIT_S)
        self.assertEqual(done.stdout, data)

    def test_console_needs_no_network(self):
        hosts.link(PEER, "down")
        self.assertEqual(hosts.console(PEER, "hostname; echo err >&2; exit 4"), (4, PEER + "\nerr\n"))

    def test_fault_of_no_host(self):
        with self.assertRaisesRegex(RuntimeError, "no host nowhere among " + hosts.HOSTS[0]):
            hosts.link("nowhere", "down")

    def until(self, condition):
        deadline = time.monotonic() + hosts.LIMIT_S
        while not condition():
            self.assertLess(time.monotonic(), deadline, "did not come about")


if __name__ == "__main__":
    unittest.main()
