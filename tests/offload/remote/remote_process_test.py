#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that fork, close descriptors, crash after they have printed, or require shared memory."""
import os
import unittest

from services import LIMIT_S, PROCESS, remote_case, service


class remote_process_test(remote_case):
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


if __name__ == "__main__":
    unittest.main()
