#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Jobs on two hosts as others on their network see them: where processes listen, what the wire shows, and addresses
that both hosts have."""
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

import hosts
from wiretap import wiretap

LISTENING = os.environ["DIOMP_TEST_LISTENING"]
FIRST_CONTACT = os.environ["DIOMP_TEST_FIRST_CONTACT"]
PHRASE = b"this text must not be on the wire"
ANY = {"::", "0.0.0.0"}


class security_test(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.getcwd())  # each host has a /tmp of its own
        self.addCleanup(folder.cleanup)
        self.fifos = [os.path.join(folder.name, name) for name in ("first", "second")]
        for path in self.fifos:
            os.mkfifo(path)
        self.before = {host: self.listening_at(host) for host in hosts.HOSTS}

    @staticmethod
    def listening_at(host):
        script = os.path.join(os.path.dirname(hosts.__file__), "listeners.py")
        done = hosts.on(host, f"'{sys.executable}' -B '{script}'")
        return {(each["pid"], each["what"], each["where"], each["port"]) for each in json.loads(done.stdout)}

    def new_at(self, host):
        """What the job has added, without the numbers of processes and ports."""
        return sorted((what, where) for _, what, where, _ in self.listening_at(host) - self.before[host])

    def start(self, per_host, **settings):
        process = subprocess.Popen(hosts.job("diomp-run", [LISTENING, *self.fifos], per_host, settings), text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        for _ in range(per_host * len(hosts.HOSTS)):
            self.assertRegex(process.stdout.readline(), "^joined ")
        return process

    def go_on(self, number):
        """Lets the ranks pass one of their waits: all that are there, and all that come later."""
        held = os.open(self.fifos[number], os.O_RDWR)
        self.addCleanup(os.close, held)

    def work(self, process):
        self.go_on(0)
        self.assertRegex(process.stdout.readline(), "^worked ")

    def finish(self, process):
        self.go_on(1)
        self.assertEqual(process.wait(timeout=hosts.LIMIT_S), 0)
        self.assertEqual(process.stdout.read(), "")

    def test_ports_are_those_of_ranks_and_close_when_all_are_connected(self):
        per_host = 2
        process = self.start(per_host)
        for host in hosts.HOSTS:
            found = self.new_at(host)
            self.assertEqual([what for what, _ in found], ["tcp"] * per_host, (host, found))
            self.assertTrue({where for _, where in found} <= ANY, (host, found))
        self.work(process)
        deadline = time.monotonic() + hosts.LIMIT_S
        while any(self.new_at(host) for host in hosts.HOSTS):
            self.assertLess(time.monotonic(), deadline, [self.new_at(host) for host in hosts.HOSTS])
        self.finish(process)

    def check_wire(self, encrypt):
        process = self.start(1, DIOMP_ENCRYPT=encrypt)
        with wiretap(PHRASE) as tap:
            self.work(process)
            self.finish(process)
        self.assertGreater(tap.num_bytes, 1 << 20, "the tap has seen too little")
        return tap.num_found

    def test_the_wire_shows_data_that_is_not_encrypted(self):
        self.assertGreater(self.check_wire("control"), 0)
        self.assertGreater(self.check_wire("off"), 0)

    def test_the_wire_does_not_show_encrypted_data(self):
        self.assertEqual(self.check_wire("all"), 0)

    def first_contact(self, choose, **settings):
        """Status and output of a job; `choose` is a shell command that sets variables of a rank."""
        script = f"{choose}; exec '{FIRST_CONTACT}' put"
        job = hosts.job("diomp-run", ["sh", "-c", script], 1, {"DIOMP_LOG": "debug", **settings})
        done = subprocess.run(job, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=hosts.LIMIT_S)
        self.assertNotIn("at 172.17.0.1", done.stdout)
        self.assertNotIn("at 127.0.0.1", done.stdout)
        return done.returncode, done.stdout

    def test_an_address_that_both_hosts_have_is_not_tried(self):
        hosts.share_address()
        status, output = self.first_contact(":")
        self.assertEqual(status, 0, output)
        self.assertRegex(output, r"tcp: connecting to .* at 1")

    def test_no_other_address_is_an_error_that_says_so(self):
        hosts.share_address()
        status, output = self.first_contact(":", DIOMP_TCP_INTERFACES="docker0,lo")
        self.assertNotEqual(status, 0)
        self.assertIn("cannot be reached at any of its 0 addresses", output)

    # The first host does not offer its bridge, and must know it all the same.
    def test_an_interface_that_is_not_offered_counts(self):
        hosts.share_address()
        status, output = self.first_contact(f'export DIOMP_TCP_INTERFACES=eth0; test "$(hostname)" = {hosts.HOSTS[0]} || '
                                            "export DIOMP_TCP_INTERFACES=docker0")
        if status != 0:
            self.assertIn("cannot be reached at any of its 0 addresses", output)


if __name__ == "__main__":
    unittest.main()
