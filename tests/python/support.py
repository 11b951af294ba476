# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests share: this rank, its neighbours, and a main that ends at the first failure.

A rank that fails ends with an error, and diomp-run then ends the others, which may wait for it.
"""
import contextlib
import sys
import unittest

import diomp

ME = diomp.rank()
SIZE = diomp.num_ranks()
RIGHT = (ME + 1) % SIZE
LEFT = (ME - 1) % SIZE

# The dtypes that C has, but for bfloat16, which is not NumPy's own.
DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "longlong", "float16", "float32",
          "float64", "longdouble", "complex64", "complex128")


class TestCase(unittest.TestCase):
    """A test of all ranks; the barriers keep one test's transfers out of the next."""

    def setUp(self):
        diomp.barrier()

    def tearDown(self):
        diomp.barrier()

    @contextlib.contextmanager
    def fails(self, status, *texts):
        """The block raises diomp.Error with this status and with these texts in its sentence."""
        with self.assertRaises(diomp.Error) as caught:
            yield
        self.assertEqual(caught.exception.status, status)
        for text in texts:
            self.assertIn(text, str(caught.exception))


def main():
    """unittest.main() that prints on rank 0, or where a test fails."""
    program = unittest.main(module="__main__", exit=False, failfast=True, verbosity=2 if ME == 0 else 0,
                            testRunner=None if ME == 0 else quiet_runner)
    sys.exit(0 if program.result.wasSuccessful() and program.result.testsRun > 0 else 1)


class quiet_runner(unittest.TextTestRunner):
    """Prints failures only."""

    def run(self, test):
        result = unittest.TestResult()
        result.failfast = True
        test(result)
        for _, text in result.failures + result.errors:
            print(f"rank {ME}:\n{text}", file=sys.stderr)
        return result
