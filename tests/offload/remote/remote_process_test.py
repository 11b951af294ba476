#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that fork, close descriptors, load libraries late, crash after they have printed, or require shared memory."""
import os
import shutil
import signal
import unittest
from pathlib import Path

import processes
from services import LATE, LATE_LIBRARY, LIMIT_S, PROCESS, SHARED_MEMORY, remote_case, service


class remote_process_test(remote_case):
    def check_output(self, services, mode, expected, **variables):
        status, out, err = self.run_client(services, [PROCESS, mode], variables)
        self.assertEqual((status, sorted(out.splitlines())), (0, sorted(expected)), err)
        return err

    def test_a_child_that_exits_leaves_the_devices_alone(self):
        expected = ["parent 4", "child ended with 3", "parent 4"]
        self.assertEqual(self.check_output(service(self, devices=2), "child_exits", expected), "")

    def test_a_child_is_told_that_devices_are_its_parents(self):
        expected = ["parent 4", "child failed: 1", "parent 4"]
        err = self.check_output(service(self, devices=2), "child_uses_what_was_used", expected)
        self.assertRegex(err, "this process was forked by one that had used remote devices before.*remedy: use them in the child first")

    def test_children_have_sessions_of_their_own(self):
        lender = service(self, devices=2)
        self.assertEqual(self.check_output(lender, "children_use", ["parent 4"] * 2 + ["child 4"] * 3), "")
        self.wait_until(lambda: not lender.sessions(), "the end of all sessions")

    def test_children_on_devices_of_an_llvm_plugin(self):
        lender = service(self, devices="host")
        self.check_output(f"{lender.name}*2", "children_use", ["parent 4"] * 2 + ["child 4"] * 3)

    def test_a_session_ends_with_its_client_though_a_child_stays(self):
        client = self.start_client(service(self), [PROCESS, "child_stays"])
        session = self.session_of(client)
        _, child = client.stdout.readline().split()
        client.kill()
        self.assert_gone(session)
        os.kill(int(child), signal.SIGKILL)
        self.wait_until(lambda: int(child) not in processes.carrying(*self.mark), "the end of the child")

    def run_without(self, descriptors, services, mode):
        """(status, standard error) of a client that is started with descriptors that are closed."""
        client = self.start_client(services, [PROCESS, mode], preexec_fn=lambda: [os.close(each) for each in descriptors])
        out, err = client.communicate(timeout=LIMIT_S)
        self.assertEqual(out, "")
        return client.returncode, err

    def test_a_client_without_standard_output(self):
        lender = service(self, devices=2)
        self.assertEqual(self.run_without([1], lender, "closed_output"), (0, "answer 4\n"))
        self.assertEqual(self.run_without([0, 1], lender, "closed_output"), (0, "answer 4\n"))
        self.assertEqual(self.run_without([0, 1, 2], lender, "closed_output"), (0, ""))

    def test_a_service_without_standard_descriptors(self):
        port = service(self)  # its number is free once it has ended
        port.end()
        words = [port.process.args[0], "--port", str(port.port), "--memory", "512M"]
        self.start(words, {"DIOMP_TOKEN": "a token", "TMPDIR": self.folder},
                   preexec_fn=lambda: [os.close(each) for each in range(3)])
        self.wait_until(lambda: self.run_client(port, [PROCESS, "child_exits"])[1].startswith("parent 2"), "the service")
        status, out, err = self.run_client(port, [PROCESS, "closed_output"])
        self.assertEqual((status, len(out), err), (0, 1000 * 1000 + len("on the host\n"), "answer 2\n"))

    def test_what_a_region_printed_before_it_crashed(self):
        lender = service(self)
        for _ in range(5):
            client = self.start_client(lender, [PROCESS, "prints_and_crashes"])
            self.assert_ends_with_error(client, "^the last words\n")
            self.assertEqual(self.last_output, "of a region\n")

    def test_libraries_with_the_same_regions_that_are_loaded_late_and_again(self):
        """Each has its own variables on a device, and once more when it has been closed."""
        other = Path(self.folder, "another.so")
        shutil.copy(LATE_LIBRARY, other)
        words = [*LATE, LATE_LIBRARY, str(other)]
        expected = (0, "11 11 12\n" * 4, "")
        self.assertEqual(self.run_client("", words, {"DIOMP_LOCAL_DEVICES": "on"}), expected)
        self.assertEqual(self.run_client(service(self, devices=2), words), expected)
        self.assertEqual(self.run_client(f"{service(self, devices='host').name}*2", words), expected)

    def test_shared_memory_is_on_the_host(self):
        lender = service(self)
        status, out, err = self.run_client(lender, [SHARED_MEMORY])
        self.assertEqual((status, out), (0, "2 on the host\n"), err)
        self.assertEqual(err, "diomp: warning: remote devices are not used: the program requires unified_shared_memory\n")
        status, out, err = self.run_client(lender, [SHARED_MEMORY], {"OMP_TARGET_OFFLOAD": "MANDATORY"})
        self.assertNotEqual(status, 0)
        self.assertIn("offloading is mandatory", err)
        status, out, err = self.run_client(lender, [SHARED_MEMORY], {"DIOMP_LOCAL_DEVICES": "on"})
        self.assertEqual((status, out), (0, "2 on a device\n"), err)


if __name__ == "__main__":
    unittest.main()
