#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Remote devices whose data goes by UCX, which is there on every network that this machine has."""
import unittest

from services import remote_case, service


class remote_network_test(remote_case):
    def test_processors(self):
        err = self.exercise(service(self, devices=2), 0, 2, DIOMP_NETWORK="ucx", DIOMP_LOG="info")
        self.assertRegex(err, "is reached by ucx")


if __name__ == "__main__":
    unittest.main()
