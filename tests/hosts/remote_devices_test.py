#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""diomp-run --remote-devices with devices on hosts of their own, which the remote shell reaches."""
import os
import re
import signal
import struct
import subprocess
import time
import unittest

import hosts
from time_limits import scaled
from wiretap import wiretap

RUN = os.environ["DIOMP_TEST_RUN"]
PROGRAM = os.environ["DIOMP_TEST_REGIONS"]
POSTED = os.environ["DIOMP_TEST_POSTED"]
SPACE = os.environ["DIOMP_TEST_SPACE"]
HERE, PEER, OTHER = hosts.HOSTS
# Below the 20 s after which the control connection notices the loss by itself.
TIMEOUT_S = min(round(scaled(2)), 12)
END_LIMIT_S = 18 + TIMEOUT_S


class remote_devices_test(unittest.TestCase):
    def tearDown(self):
        hosts.cable(PEER, "in")
        began = time.monotonic()
        for host in hosts.HOSTS:
            while hosts.console(host, "pgrep -x diomp-deviced; pgrep -x regions")[1]:
                self.assertLess(time.monotonic() - began, END_LIMIT_S, f"something is left on {host}")
                time.sleep(0.05)

    def start(self, lent, *words, program=(PROGRAM,), rsh=hosts.RSH, **variables):
        environment = {**os.environ, "DIOMP_LOCAL_DEVICES": "off", "DIOMP_TIMEOUT": str(TIMEOUT_S), **variables}
        process = subprocess.Popen([RUN, "--remote-devices", lent, "--rsh", rsh, *words, "--", *program],
                                   text=True, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        for pipe in (process.stdin, process.stdout, process.stderr):
            self.addCleanup(pipe.close)
        self.addCleanup(process.kill)
        return process

    def run_job(self, lent, *words, **how):
        process = self.start(lent, *words, **how)
        out, err = process.communicate(timeout=hosts.LIMIT_S)
        return process.returncode, out, err

    def ready(self, lent, todo):
        process = self.start(lent, program=(PROGRAM, todo))
        return process, self.places(process.stdout.readline())

    @staticmethod
    def places(text):
        """{rank: hosts of its devices}"""
        return {int(rank): [word.split("@")[1] for word in words.split()]
                for rank, words in re.findall(r"^(\d+):(.*)$", text, re.M)}

    def check_said(self, err, processes):
        """So many processes have said, once each, that their data is not encrypted; nothing else was said."""
        lines = err.splitlines()
        for line in lines:
            self.assertIn("data of remote devices is not encrypted on its way to other hosts", line)
        self.assertEqual(len(lines), processes, err)

    def test_devices_of_two_other_hosts(self):
        status, out, err = self.run_job(f"{PEER}:2,{OTHER}")
        self.assertEqual(status, 0, err)
        self.check_said(err, 1)
        self.assertEqual(self.places(out), {0: [PEER, PEER, OTHER]})

    def test_each_rank_with_a_device_of_its_host(self):
        """Ranks share memory with the device of their own host, and reach the others over the network."""
        everywhere = ",".join(hosts.HOSTS)
        status, out, err = self.run_job(everywhere, "--hosts", everywhere, "-n", str(len(hosts.HOSTS)), "-x", "TEST_HOSTS=1",
                                        program=(SPACE,), DIOMP_ERRORS="return")
        self.assertEqual(status, 0, out + err)
        self.assertIn("remote space: ok", out)

    def check_wire(self, *words):
        """Output, errors, and how often the wire has shown the numbers that regions are given or give back."""
        with wiretap(struct.pack("<8i", *range(100, 108))) as given, wiretap(
                struct.pack("<8i", *range(200, 216, 2))) as returned:
            status, out, err = self.run_job(PEER, *words)
        self.assertEqual(status, 0, err)
        self.assertGreater(given.num_bytes, 8000, "the tap has seen too little")
        return out, err, given.num_found, returned.num_found

    def test_the_wire_does_not_show_encrypted_data(self):
        out, err, *found = self.check_wire("-x", "DIOMP_ENCRYPT=all")
        self.assertEqual((self.places(out), err, found), ({0: [PEER]}, "", [0, 0]))
        out, err, *found = self.check_wire()
        self.check_said(err, 1)
        self.assertGreater(min(found), 0)

    def test_devices_of_the_own_host_need_no_shell(self):
        status, out, err = self.run_job(f"{HERE}:2,{PEER}", "-n", "3")
        self.assertEqual(status, 0, err)
        self.check_said(err, 1)
        self.assertEqual(self.places(out), {0: [HERE], 1: [HERE], 2: [PEER]})
        status, out, err = self.run_job(HERE, rsh="false")
        self.assertEqual((status, self.places(out), err), (0, {0: [HERE]}, ""))

    def test_ranks_and_devices_on_different_hosts(self):
        status, out, err = self.run_job(f"{OTHER}:2,{HERE}:2", "--hosts", f"{HERE},{PEER}")
        self.assertEqual(status, 0, err)
        self.check_said(err, 2)
        self.assertEqual(self.places(out), {0: [OTHER, OTHER], 1: [HERE, HERE]})

    def test_posted_regions_hide_the_way(self):
        """200 regions that depend on each other, 20 ms away: they would take 4 s if each were waited for."""
        self.addCleanup(hosts.netem, PEER)
        hosts.netem(PEER, delay_ms=20)
        status, out, err = self.run_job(PEER, program=(POSTED, "time", "0", "1"))
        self.assertEqual(status, 0, err)
        self.check_said(err, 1)
        seconds, count = map(float, out.split())
        self.assertEqual(count, 203)
        self.assertLess(seconds, min(scaled(2), 3.5))

    def test_unknown_host(self):
        status, out, err = self.run_job(f"{PEER},nowhere")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("cannot reach host nowhere", err)

    def test_killed_diomp_run(self):
        process, found = self.ready(f"{PEER},{OTHER}", "wait")
        self.assertEqual(found, {0: [PEER, OTHER]})
        process.kill()
        process.wait(timeout=hosts.LIMIT_S)  # tearDown looks

    def test_killed_service(self):
        process, _ = self.ready(f"{PEER},{OTHER}", "wait")
        hosts.console(OTHER, "pkill -9 -o -x diomp-deviced")
        _, err = process.communicate(timeout=hosts.LIMIT_S)
        self.assertEqual(process.returncode, 1)
        self.assertIn(f"the device service of host {OTHER} is gone", err)

    def test_cable_that_is_pulled(self):
        process, _ = self.ready(f"{PEER},{OTHER}", "again")
        hosts.cable(PEER, "out")
        _, err = process.communicate("go\n", timeout=60)
        hosts.cable(PEER, "in")
        self.assertEqual(process.returncode, 128 + signal.SIGABRT)
        self.assertRegex(err, rf"on {PEER} is lost: it has not answered for {TIMEOUT_S} s")

    def test_devices_that_lose_each_other(self):
        """The hosts of two devices do not reach each other any more, but the program reaches both."""
        process, _ = self.ready(f"{PEER},{OTHER}", "pass")
        self.assertEqual(process.stdout.readline(), "passed\n")
        for host, other in ((PEER, OTHER), (OTHER, PEER)):
            self.assertEqual(hosts.on(host, f"ip route add blackhole $(getent ahostsv4 {other} | cut -d' ' -f1 | head -1)")
                             .returncode, 0)
            self.addCleanup(hosts.console, host, "ip route del blackhole $(ip route show type blackhole | cut -d' ' -f2)")
        began = time.monotonic()
        _, err = process.communicate("go\n", timeout=60)
        self.assertEqual(process.returncode, 128 + signal.SIGABRT, err)  # the copy has failed, which it returns
        self.assertIn("remote device 1: the network has failed a transfer", err)
        self.assertLess(time.monotonic() - began, END_LIMIT_S, err)


if __name__ == "__main__":
    unittest.main()
