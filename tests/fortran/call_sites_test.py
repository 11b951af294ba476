#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""DIOMP_STATS=callsites names the lines of a Fortran program: call_sites_test.py PROGRAM.f90 BIN_DIR"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE, BIN = os.path.abspath(sys.argv[1]), sys.argv[2]
ROW = re.compile(r"^  (\S+) .*?(\d+) +\d+ +[\d.]+ +[\d.]+ +[\d.]+\n    at (\S+) \((.*)\+(0x[0-9a-f]+)\)$", re.M)


def expected_calls():
    """Of each function the lines and numbers of calls, sorted."""
    calls = {}
    with open(SOURCE) as file:
        for number, line in enumerate(file, 1):
            if match := re.search(r"! CALLS (\w+) (\d+)$", line):
                calls.setdefault(match[1], []).append((number, int(match[2])))
    return calls


def line_of(program, address):
    place = subprocess.run(["addr2line", "-e", program, address], text=True, capture_output=True, check=True).stdout
    return int(re.match(r".*:(\d+)", place)[1])


class call_sites_test(unittest.TestCase):
    def check_table(self, *options):
        with tempfile.TemporaryDirectory() as directory:
            program = os.path.join(directory, "call_sites")
            subprocess.run([os.path.join(BIN, "diompfc"), *options, SOURCE, "-o", program], cwd=directory, check=True)
            table = subprocess.run([os.path.join(BIN, "diomp-run"), "-n", "1", "--timeout", "60", program],
                                   env={**os.environ, "DIOMP_STATS": "callsites"},
                                   text=True, capture_output=True, check=True).stderr
            found = {}
            for function, count, name, path, address in ROW.findall(table):
                self.assertEqual(os.path.realpath(path), os.path.realpath(program), table)
                self.assertRegex(name, r"^(heavy|MAIN__)", table)
                found.setdefault(function, []).append((line_of(program, address), int(count)))
            self.assertEqual({function: sorted(calls) for function, calls in found.items()}, expected_calls(), table)

    def test_without_optimisation(self):
        self.check_table("-g", "-O0")

    def test_optimised(self):
        self.check_table("-g", "-O2")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
