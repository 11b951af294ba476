#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A job over UCX on two of three hosts: at which addresses its ports are, and from which hosts they can be reached."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import hosts

LISTENING = os.environ["DIOMP_TEST_LISTENING"]
TRIES = 200
# Connects TRIES times to each "address port"; prints how many connections exist. Waits for all at once.
CONNECT = """
import select, socket, sys
made = []
for i in range(1, len(sys.argv), 2):
    for _ in range(%d):
        each = socket.socket()
        each.setblocking(False)
        each.connect_ex((sys.argv[i], int(sys.argv[i + 1])))
        made.append(each)
poll = select.poll()
for each in made:
    poll.register(each, select.POLLOUT)
there = set()
while len(there) < len(made):
    ready = poll.poll(1500)
    for fd, event in ready:
        poll.unregister(fd)
        there.add(fd)
    if not ready:
        break
print(sum(each.fileno() in there and each.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0 for each in made))
""" % TRIES


class ucx_security_test(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.getcwd())  # each host has a /tmp of its own
        self.addCleanup(folder.cleanup)
        self.fifos = [os.path.join(folder.name, name) for name in ("first", "second")]
        for path in self.fifos:
            os.mkfifo(path)
        self.connect = os.path.join(folder.name, "connect.py")
        with open(self.connect, "w") as file:
            file.write(CONNECT)
        self.members, self.outsider = hosts.HOSTS[:2], hosts.HOSTS[2]

    @staticmethod
    def listening_at(host):
        script = os.path.join(os.path.dirname(hosts.__file__), "listeners.py")
        done = hosts.on(host, f"'{sys.executable}' -B '{script}'")
        return {(each["where"], each["port"]) for each in json.loads(done.stdout) if each["what"] == "tcp"}

    @staticmethod
    def addresses_of(host, interface):
        status, output = hosts.console(host, f"ip -json addr show dev {interface}")
        assert status == 0, output
        return {each["local"] for link in json.loads(output) for each in link.get("addr_info", [])}

    def run_job(self, check, **settings):
        """Calls `check` with {host: {(address, port)}} while the ranks run."""
        before = {host: self.listening_at(host) for host in self.members}
        exports = [word for name, value in {"DIOMP_NETWORK": "ucx", **settings}.items() for word in ("-x", f"{name}={value}")]
        job = subprocess.Popen(
            [os.environ["DIOMP_TEST_RUN"], "-n", "2", "--hosts", ",".join(f"{host}:1" for host in self.members), "--rsh",
             hosts.RSH, "--bind-to", "none", *exports, "--", LISTENING, *self.fifos],
            text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(job.stdout.close)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        for _ in self.members:
            self.assertRegex(job.stdout.readline(), "^joined ")
        held = []
        self.addCleanup(lambda: [os.close(each) for each in held])
        held.append(os.open(self.fifos[0], os.O_RDWR))
        self.assertRegex(job.stdout.readline(), "^worked ")
        check({host: self.listening_at(host) - before[host] for host in self.members})
        held.append(os.open(self.fifos[1], os.O_RDWR))
        self.assertEqual(job.wait(timeout=hosts.LIMIT_S), 0)
        self.assertEqual(job.stdout.read(), "")

    def num_connected(self, source, found):
        words = " ".join(f"{where} {port}" for where, port in sorted(found))
        done = hosts.on(source, f"'{sys.executable}' -B '{self.connect}' {words}")
        self.assertEqual(done.returncode, 0, done.stderr)
        return int(done.stdout)

    def test_ports_are_at_interfaces_that_lead_to_the_job(self):
        hosts.share_address()

        def check(found):
            for host in self.members:
                self.assertTrue(found[host])
                self.assertTrue({where for where, _ in found[host]} <= self.addresses_of(host, "eth0"), found)
        self.run_job(check)

    def test_hosts_that_are_not_of_the_job_do_not_connect(self):
        def check(found):
            first = found[self.members[0]]
            self.assertEqual(self.num_connected(self.outsider, first), 0)
            self.assertEqual(self.num_connected(self.members[1], first), TRIES * len(first))
        self.run_job(check)

    def test_without_the_limit_every_host_connects(self):
        """The control of the test above."""
        def check(found):
            eth0 = self.addresses_of(self.members[0], "eth0")
            reachable = {each for each in found[self.members[0]] if each[0] in eth0}
            self.assertEqual(self.num_connected(self.outsider, reachable), TRIES * len(reachable))
        self.run_job(check, DIOMP_UCX_ACCESS="any")


if __name__ == "__main__":
    unittest.main()
