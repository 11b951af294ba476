#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the processes of a job on one machine listen: the table of docs/security.md; and what other users' connections
there do to the job."""
import errno
import os
import resource
import select
import socket
import stat
import tempfile
import unittest

import listeners
from job_tools import LIMIT_S, RUN, job_case

PROGRAM = os.environ["DIOMP_TEST_LISTENING"]
HAVE_UCX = os.environ["DIOMP_TEST_HAVE_UCX"] == "1"
RANKS = 4
# Unauthenticated connections at each port, as far as the limit of open files allows.
MOST_CONNECTIONS = 2000
HELLO_BYTES = 88


def connect(address, port):
    """A connection that does not block, or None."""
    made = socket.socket()
    made.setblocking(False)
    code = made.connect_ex((address, port))
    if code in (0, errno.EINPROGRESS):
        return made
    made.close()
    return None


def send(connection, data):
    try:
        connection.send(data)
    except OSError:
        pass  # it has been closed already


class listeners_test(job_case):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.held = []
        self.addCleanup(lambda: [os.close(fd) for fd in self.held])
        self.number = 0

    def fifo(self):
        self.number += 1
        path = os.path.join(self.folder, f"fifo {self.number}")
        os.mkfifo(path)
        return path

    def open_fifo(self, path, readers):
        """Lets all go on that wait for it, now or later."""
        def is_open():
            try:
                self.held.append(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
                return True
            except OSError as failure:
                self.assertEqual(failure.errno, errno.ENXIO)
                return False
        self.wait_until(is_open, f"{readers} at {path}")

    def start_ranks(self, *words, ranks=RANKS, **settings):
        """A job whose ranks have joined and not connected to each other; (process, both FIFOs)"""
        self.environment.update(settings)
        fifos = self.fifo(), self.fifo()
        process = self.start(*words, PROGRAM, *fifos)
        self.assertEqual({process.stdout.readline() for _ in range(ranks)}, {f"joined {i}\n" for i in range(ranks)})
        return process, fifos

    def work(self, process, fifos):
        """Seconds that the ranks took."""
        self.open_fifo(fifos[0], "ranks")
        line = process.stdout.readline()
        self.assertRegex(line, r"^worked [0-9.]+$")
        return float(line.split()[1])

    def finish(self, process, fifos):
        self.open_fifo(fifos[1], "ranks")
        out, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual((process.returncode, out), (0, ""), err)
        return err

    def listening(self):
        return listeners.of_processes(self.marked())

    # ---- Where

    def test_ranks_in_shared_memory_listen_nowhere(self):
        process, fifos = self.start_ranks("-n", str(RANKS), DIOMP_CONDUIT="shm")
        self.assertEqual(self.listening(), [])
        self.work(process, fifos)
        self.assertEqual(self.listening(), [])
        self.assertEqual(self.finish(process, fifos), "")

    def check_ranks_over_tcp(self, **settings):
        process, fifos = self.start_ranks("-n", str(RANKS), **settings)
        found = self.listening()
        self.assertEqual({(each.what, each.where) for each in found}, {("tcp", "127.0.0.1")}, found)
        self.assertEqual(len({each.pid for each in found}), RANKS)
        self.assertEqual(len(found), RANKS)
        self.work(process, fifos)
        self.wait_until(lambda: self.listening() == [], "ports that close when all ranks are connected")
        self.assertEqual(self.finish(process, fifos), "")

    def test_ranks_over_tcp_listen_on_loopback_until_all_are_connected(self):
        self.check_ranks_over_tcp(DIOMP_CONDUIT="tcp")

    def test_ranks_over_ucx_listen_on_loopback(self):
        if not HAVE_UCX:
            self.skipTest("built without UCX")
        process, fifos = self.start_ranks("-n", str(RANKS), DIOMP_CONDUIT="ucx", UCX_TLS="tcp")
        for _ in range(2):
            found = [each for each in self.listening() if each.what != "unix"]
            self.assertEqual({(each.what, each.where) for each in found}, {("tcp", "127.0.0.1")}, found)
            self.assertEqual(len({each.pid for each in found}), RANKS)
            if len(self.held) == 0:
                self.work(process, fifos)
        self.assertEqual(self.finish(process, fifos), "")

    def test_nodes_of_one_machine_listen_on_loopback_until_all_are_connected(self):
        self.check_ranks_over_tcp(DIOMP_NODE_SIZE="1", DIOMP_NETWORK="tcp")

    def test_nodes_of_several_ranks_wait_for_ranks_of_other_nodes_only(self):
        self.check_ranks_over_tcp(DIOMP_NODE_SIZE="2", DIOMP_ENCRYPT="all")

    def waiting_head(self, *words):
        """Where the head of hosts listens whose agents do not come, and go on as soon as it is known."""
        fifo = self.fifo()
        agent = os.path.join(self.folder, "agent")
        with open(agent, "w") as file:
            file.write(f"#!/bin/sh\nread line <'{fifo}'\nexec '{RUN}' \"$@\"\n")
        os.chmod(agent, stat.S_IRWXU)
        process = self.start("--hosts", "localhost:2", "--agent-program", agent, *words, "true")
        self.wait_until(self.listening, "the head's port")
        found = self.listening()
        self.open_fifo(fifo, "the agent")
        os.write(self.held[-1], b"go\n")
        out, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual((process.returncode, out, err), (0, "", ""))
        self.assertEqual({each.what for each in found}, {"tcp"}, found)
        return {each.where for each in found}

    def test_head_of_this_machine_listens_on_loopback(self):
        self.assertEqual(self.waiting_head(), {"127.0.0.1"})

    def test_head_of_other_hosts_listens_everywhere_or_where_it_is_told(self):
        shell = os.path.join(self.folder, "shell")
        with open(shell, "w") as file:
            file.write('#!/bin/sh\nshift\nexec sh -c "$*"\n')
        os.chmod(shell, stat.S_IRWXU)
        self.assertTrue(self.waiting_head("--rsh", shell) <= {"::", "0.0.0.0"})
        self.assertEqual(self.waiting_head("--rsh", shell, "--head-address", "lo"), {"127.0.0.1"})

    # ---- Against whom

    def attack(self, found):
        """Connections that stay open, at every port: most say nothing, some send what a rank would not."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = MOST_CONNECTIONS * len(found) + 200
        if soft < wanted:
            soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        count = min(MOST_CONNECTIONS, (soft - 200) // len(found))
        made = []
        for each in found:
            made += filter(None, (connect(each.where, each.port) for _ in range(count)))
        last = select.poll()
        last.register(made[-1], select.POLLOUT)
        last.poll(1000 * LIMIT_S)
        for number, each in enumerate(made):
            if number % 4 == 0:
                send(each, os.urandom(HELLO_BYTES if number % 8 == 0 else 1000))
        return made

    def time_of_work(self, is_attacked):
        process, fifos = self.start_ranks("-n", str(RANKS), DIOMP_CONDUIT="tcp", DIOMP_TIMEOUT="20")
        made = self.attack(self.listening()) if is_attacked else []
        seconds = self.work(process, fifos)
        self.finish(process, fifos)
        for each in made:
            each.close()
        return seconds, len(made)

    def test_2000_connections_at_each_port_do_not_slow_the_job(self):
        times = {False: [], True: []}
        for is_attacked in (False, True) * 3:
            seconds, count = self.time_of_work(is_attacked)
            times[is_attacked].append(seconds)
        self.assertGreater(count, RANKS * 100)
        alone, beside = min(times[False]), min(times[True])
        print(f"{alone:.3f} s alone, {beside:.3f} s beside {count} connections: {beside / alone:.2f}")
        # The aim is 1.1; a busy machine needs more.
        self.assertLess(beside, 2 * alone, times)


if __name__ == "__main__":
    unittest.main()
