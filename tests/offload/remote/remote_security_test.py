#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the token of a service can be seen, where services and sessions listen, and connections that prove nothing."""
import contextlib
import hashlib
import os
import resource
import secrets
import signal
import socket
import threading
import time
import unittest
from pathlib import Path

import listeners
import ports
import processes
from services import LIMIT_S, MISUSE, remote_case, service

CROWD = 2000  # connections to each port


def key_of(token):
    """As secret::from_text."""
    return hashlib.blake2b(token.encode(), digest_size=32, key=b"DiOMP secret from text").digest()


def memory_of(pid):
    """What a process can write: its mappings one by one."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            words = line.split()
            begin, end = (int(word, 16) for word in words[0].split("-"))
            if words[1].startswith("rw") and end - begin < 1 << 28:
                with contextlib.suppress(OSError, OverflowError):
                    memory.seek(begin)
                    yield memory.read(end - begin)


class crowd:
    """Holds connections to ports until the end; what is closed there is opened again."""

    def __init__(self, find_ports):
        self.find_ports = find_ports
        self.held = []
        self.num_made = 0
        self.is_over = False
        self.thread = threading.Thread(target=self.serve)
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    def serve(self):
        while not self.is_over:
            for port in self.find_ports():
                for _ in range(CROWD // 10):
                    with contextlib.suppress(OSError):
                        self.held.append(socket.create_connection(("127.0.0.1", port), 1))
                        self.num_made += 1
            for each in self.held[:-3 * CROWD]:
                each.close()
            del self.held[:-3 * CROWD]

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.thread.join()
        for each in self.held:
            each.close()


class remote_security_test(remote_case):
    # ---- The token

    def check_token_is_nowhere(self, lender, token):
        client = self.start_client(lender, [MISUSE, "busy"], {"DIOMP_TOKEN": token})
        session = self.session_of(client)
        for pid in lender.process.pid, session:
            for name in "environ", "cmdline":
                self.assertNotIn(token.encode(), Path(f"/proc/{pid}/{name}").read_bytes(), name)
            for part in memory_of(pid):
                self.assertNotIn(token.encode(), part)
                if pid == session:
                    self.assertNotIn(key_of(token), part)
        client.kill()
        self.assert_gone(session)
        self.assertEqual(lender.end(), 0)
        self.assertNotIn(token, lender.process.stdout.read() + lender.process.stderr.read())

    def test_the_token_of_the_environment_is_nowhere_later(self):
        token = secrets.token_hex(24)
        self.check_token_is_nowhere(service(self, token=token, DIOMP_LOG="debug"), token)

    def test_the_token_of_a_file_is_nowhere_later(self):
        token = secrets.token_hex(24)
        path = Path(self.folder, "token")
        path.write_text(token)
        path.chmod(0o600)
        self.check_token_is_nowhere(service(self, token="", DIOMP_TOKEN_FILE=str(path), DIOMP_LOG="debug"), token)

    def test_the_token_of_systemd_is_nowhere_later(self):
        token = secrets.token_hex(24)
        path = Path(self.folder, "diomp-token")
        path.write_text(token + "\n")
        path.chmod(0o400)
        self.check_token_is_nowhere(service(self, token="", CREDENTIALS_DIRECTORY=self.folder), token)

    # ---- Ports

    def test_all_ports_of_one_machine_are_at_loopback(self):
        lender = service(self, devices=2)
        client = self.start_client(lender, [MISUSE, "busy"], {"DIOMP_NETWORK": "tcp"})
        session = self.session_of(client)
        self.assertGreaterEqual(len(lender.sessions()), 2)
        found = [each for each in listeners.of_processes(processes.carrying(*self.mark)) if each.what != "unix"]
        self.assertIn(lender.port, [each.port for each in found])
        self.assertEqual({each.where for each in found}, {"127.0.0.1"}, found)
        client.kill()
        self.assert_gone(session)

    # ---- Connections that prove nothing

    def test_a_crowd_at_each_port_keeps_no_client_waiting(self):
        """During the start of services and clients and during their regions."""
        lender = service(self, devices=2)
        mine = os.getpid()
        with crowd(lambda: ports.listening(pid for pid in processes.carrying(*self.mark) if pid != mine)) as others:
            self.wait_until(lambda: others.num_made >= CROWD, "a crowd")
            for _ in range(3):
                self.exercise(lender, 0, 2, "many_chains", "copies_between", DIOMP_NETWORK="tcp")
            busy = self.start_client(lender, [MISUSE, "busy"], {"DIOMP_NETWORK": "tcp"})
            session = self.session_of(busy)
            before = others.num_made
            self.wait_until(lambda: others.num_made >= before + CROWD, "a crowd at a client that runs")
            self.assertIsNone(busy.poll())
            begin = time.monotonic()
            self.assert_serves(lender)
            self.assertLess(time.monotonic() - begin, LIMIT_S / 4)
            busy.send_signal(signal.SIGKILL)
            self.assert_gone(session)
        self.assertEqual(lender.end(), 0)


if __name__ == "__main__":
    unittest.main()
