#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Remote devices whose data goes by UCX, which is there on every network that this machine has."""
import unittest

from services import remote_case, service


class remote_network_test(remote_case):
    def test_processors(self):
        err = self.exercise(service(self, devices=2), 0, 2, DIOMP_NETWORK="ucx", DIOMP_LOG="info")
        self.assertRegex(err, "is reached by ucx")

    def test_a_session_that_prints_before_it_is_there(self):
        """What it logs while its world starts comes to the client, as all that it prints."""
        lender = service(self, memory="1T", DIOMP_LOG="info")  # more than can be registered
        err = self.exercise(lender, 0, 1, "devices", DIOMP_NETWORK="ucx")
        self.assertRegex(err, "diomp: service.*too large to be registered")


if __name__ == "__main__":
    unittest.main()
