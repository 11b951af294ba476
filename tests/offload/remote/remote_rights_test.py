#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What regions may do on the host of their device: --confine of a service."""
import signal
import socket
import sys
import tempfile
import unittest
from pathlib import Path

from services import EXERCISE, LIMIT_S, MISUSE, RIGHTS, SERVICE, remote_case, service

ALLOWED = ("file_in_own_folder", "write_to_dev_null", "read_a_file", "bind_any_port", "unix_socket", "memory_and_threads")
# What refuses an attempt: which of them need a part that a kernel or a build may lack.
BY_LANDLOCK = ("file_in_tmp", "file_in_dev_shm", "rename_a_file", "trace", "read_memory")
BY_NEWER_LANDLOCK = {"before Linux 6.7": ("bind_a_port",), "before Linux 6.12": ("signal",)}
BY_SECCOMP = ("packet_socket", "raw_socket", "namespace", "namespace_by_clone", "umount", "bpf")
REFUSALS = ("EACCES", "EPERM", "EXDEV")


def may_trace():
    """Whether this process could trace another one of its user: CAP_SYS_PTRACE."""
    effective = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff:"))
    return int(effective.split()[1], 16) >> 19 & 1


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class remote_rights_test(remote_case):
    def setUp(self):
        super().setUp()
        self.bystander = self.start([sys.executable, "-c", "import signal; print(flush=True); signal.pause()"], {})
        self.bystander.stdout.readline()
        self.addCleanup(self.bystander.kill)

    def attempts(self, lender, other=None):
        """What regions may do, among it to process `other`, this test's own by default."""
        with tempfile.NamedTemporaryFile(prefix="rename-me-", delete=False) as file:
            self.addCleanup(lambda: [Path(file.name + end).unlink(missing_ok=True) for end in ("", ".moved")])
        status, out, err = self.run_client(lender, [RIGHTS, str(other or self.bystander.pid), str(free_port()), file.name])
        self.assertEqual(status, 0, err)
        return dict(line.split() for line in out.splitlines())

    def test_sessions_have_the_rights_of_the_service_by_default(self):
        found = self.attempts(service(self))
        traced = ("trace", "read_memory") if may_trace() else ()
        for name in (*ALLOWED, "file_in_tmp", "file_in_dev_shm", "rename_a_file", "signal", "bind_a_port", *traced):
            self.assertEqual(found[name], "allowed", name)

    def test_confined_sessions_have_few(self):
        lender = service(self, "--confine", "available")
        found = self.attempts(lender)
        lender.end()
        lacks = lender.process.stderr.read()
        if "no Landlock" in lacks:
            self.skipTest(lacks)
        refused = [*BY_LANDLOCK, *(() if "seccomp" in lacks else BY_SECCOMP)]
        for what, names in BY_NEWER_LANDLOCK.items():
            refused += () if what in lacks else names
        for name in ALLOWED:
            self.assertEqual(found[name], "allowed", name)
        for name in refused:
            self.assertIn(found[name], REFUSALS, name)

    def test_the_next_service_removes_folders_of_a_killed_one(self):
        def folders():
            return sorted(path.name for path in Path(self.folder).glob("diomp-session-*"))
        killed = service(self, "--confine", "available", devices=2)
        clients = [self.start_client(f"{killed.name}@{i}*1", [MISUSE, "busy"]) for i in range(2)]
        for client in clients:
            self.session_of(client)
        self.assertEqual(len(folders()), 2)
        lender = service(self, "--confine", "available")
        client = self.start_client(lender, [MISUSE, "busy"])
        self.session_of(client)
        self.assertEqual(len(folders()), 3, "those of a service that is there stay")
        killed.end(signal.SIGKILL)
        for each in clients:
            each.communicate(timeout=LIMIT_S)
        self.assertEqual(len(folders()), 3)
        third = service(self, "--confine", "available")
        self.wait_until(lambda: len(folders()) == 1, "the removal of two folders")
        client.kill()
        self.wait_until(lambda: not folders(), "the removal of the last one")
        self.assertEqual((third.end(), lender.end()), (0, 0))

    def test_confined_sessions_have_no_access_to_each_other(self):
        lender = service(self, "--confine", "available", devices=2)
        sibling = self.start_client(lender, [MISUSE, "busy"])
        session = self.session_of(sibling)
        found = self.attempts(lender, session)
        self.assertIsNone(sibling.poll())
        sibling.kill()
        self.assert_gone(session)
        lender.end()
        lacks = lender.process.stderr.read()
        if "no Landlock" in lacks:
            self.skipTest(lacks)
        for name in ("trace", "read_memory", *(() if "before Linux 6.12" in lacks else ("signal",))):
            self.assertIn(found[name], REFUSALS, name)

    def test_what_is_required_and_missing_is_an_error(self):
        lender = self.start([SERVICE, "--port", "0", "--confine", "required", "--print-port"], {"DIOMP_TOKEN": "a token"})
        if lender.stdout.readline():
            self.assertEqual(lender.poll(), None)  # this machine has everything
            return
        self.assertEqual(lender.wait(LIMIT_S), 1)
        self.assertRegex(lender.stderr.read(), "--confine required: .*remedy: use --confine available")

    def test_a_confined_session_leaves_no_files(self):
        lender = service(self, "--confine", "available")
        self.attempts(lender)
        self.wait_until(lambda: not lender.sessions(), "the end of the session")
        self.wait_until(lambda: not self.files(), f"an empty folder instead of {self.files()}")

    def test_confined_devices_work(self):
        lender = service(self, "--confine", "available", devices=2)
        self.exercise(lender, 0, 2)

    def test_confined_regions_make_calls(self):
        lender = service(self, "--confine", "available", devices=2, memory="1G")
        self.calls_in_regions(lender, 2, CONFINED="1")
        self.wait_until(lambda: not lender.sessions(), "the end of the sessions")
        self.wait_until(lambda: not self.files(), f"an empty folder instead of {self.files()}")

    def test_confined_sessions_share_no_memory(self):
        """Unlike others: a session of another client could take the memory."""
        for options, paths in ((["--confine", "available"], "by tcp.*; from own remote devices by tcp, service to service"),
                               ([], "by shm; from own remote devices by shm")):
            lender = service(self, *options, devices=2)
            self.assertRegex(self.paths(lender), f"remote device 0 {paths}")

    def test_a_crash_of_a_confined_session_is_reported(self):
        lender = service(self, "--confine", "available")
        status, _, err = self.run_client(lender, [MISUSE, "null"])
        self.assertNotEqual(status, 0)
        self.assertRegex(err, "signal 11|SIGSEGV|Segmentation")
        self.wait_until(lambda: not self.files(), "an empty folder")


if __name__ == "__main__":
    unittest.main()
