#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Jobs over TCP whose ports processes connect to that do not know the job's secret."""
import os
import random
import resource
import struct
import subprocess
import sys
import tempfile
import unittest

import jobs
import ports
import processes

RANKS = 4
# Each job suffers ROUNDS of an attack on each port before its ranks connect.
ROUNDS = 40
JOBS = int(os.environ.get("DIOMP_TEST_JOBS", "5"))
CONNECTIONS = 20  # to each port, of a round
HELD = 800  # of all that stay open, the newest


class unauthenticated_test(jobs.jobs):
    def setUp(self):
        super().setUp()
        wanted = HELD + RANKS * CONNECTIONS + 256
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(wanted, hard)), hard))
        self.random = random.Random(1)

    def run_beside(self, approach, rounds=1):
        """A job whose ranks first talk to each other after so many calls of approach(port) for each of their ports."""
        with tempfile.TemporaryDirectory() as folder:
            go = os.path.join(folder, "go")
            process = self.start(RANKS, "talk_late",
                                 settings={"DIOMP_CONDUIT": "tcp", "TEST_GO": go})
            for _ in range(RANKS):
                self.assertIn("waits", process.stdout.readline())
            found = ports.listening(processes.carrying(*self.mark))
            self.assertGreaterEqual(len(found), RANKS)
            held = []
            for _ in range(rounds):
                held += [made for port in found for made in approach(port)]
                for each in held[:-HELD]:
                    each.close()
                del held[:-HELD]
            with open(go, "w"):
                pass
            _, err = process.communicate(timeout=jobs.LIMIT_S)
            self.assertEqual(process.returncode, 0, err)
            for each in held:
                self.assertEqual(ports.received(each), b"", "an unauthenticated connection got bytes")
                each.close()
            return err

    def run_jobs_beside(self, approach):
        for _ in range(JOBS):
            self.run_beside(approach, ROUNDS)

    def test_idle_connections_do_not_harm_a_job(self):
        self.run_jobs_beside(lambda port: [ports.connect(port) for _ in range(CONNECTIONS)])

    def test_closed_connections_do_not_harm_a_job(self):
        def approach(port):
            for _ in range(CONNECTIONS):
                with ports.connect(port) as made:
                    made.sendall(b"GE")
            return []
        self.run_jobs_beside(approach)

    def send_garbage(self, port):
        made = [ports.connect(port) for _ in range(CONNECTIONS)]
        for each in made:
            try:
                each.sendall(self.random.randbytes(self.random.choice([1, 31, 88, 89, 5000])))
            except ConnectionError:
                pass  # closed after the first 88 bytes
        return made

    def test_garbage_connections_do_not_harm_a_job(self):
        self.run_jobs_beside(self.send_garbage)

    def test_garbage_connections_do_not_harm_a_job_on_a_busy_machine(self):
        spinners = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(os.cpu_count())]
        try:
            self.run_jobs_beside(self.send_garbage)
        finally:
            for each in spinners:
                each.kill()
                each.wait()

    def test_a_rank_in_name_only_is_refused_and_reported(self):
        # The first bytes of a connection as releases before the handshake sent them.
        greeting = struct.pack("<QII32s", 0x32504354504d4f44, 1, 0, b"x" * 32)

        def approach(port):
            made = ports.connect(port)
            made.sendall(greeting + bytes(88))
            return [made]
        err = self.run_beside(approach)
        self.assertIn("does not prove that it knows the secret", err)

    def test_reports_about_many_connections_are_few(self):
        def approach(port):
            for _ in range(100):
                made = ports.connect(port)
                made.sendall(bytes(88))
                self.assertEqual(ports.received(made), b"")
                made.close()
            return []
        err = self.run_beside(approach)
        # The launcher's own port is not among those of ranks.
        self.assertLessEqual(err.count("does not prove"), RANKS * 4)


if __name__ == "__main__":
    unittest.main()
