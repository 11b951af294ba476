#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""DIOMP_STATS=callsites names functions and lines of a program in C, C++ or Fortran.

    call_sites.py PROGRAM BIN_DIR

A comment "CALLS function count" is on the line of each call. Ends with 77 without addr2line and llvm-symbolizer.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, BIN = os.path.abspath(sys.argv[1]), sys.argv[2]
COMPILER = {".c": ["diompcc"], ".cpp": ["diompcxx", "-std=c++20"], ".f90": ["diompfc"]}[os.path.splitext(SOURCE)[1]]
ROW = re.compile(r"^  (\S+) .*?(\d+) +\d+ +[\d.]+ +[\d.]+ +[\d.]+\n    at (.+)\+0x[0-9a-f]+ \((.*)\+0x[0-9a-f]+\)( .*)?$",
                 re.M)


def expected_calls():
    """Of each function the lines and numbers of calls, sorted."""
    calls = {}
    with open(SOURCE) as file:
        for number, line in enumerate(file, 1):
            if match := re.search(r"(?:!|//|/\*) CALLS (\w+) (\d+)", line):
                calls.setdefault(match[1], []).append((f" {os.path.basename(SOURCE)}:{number}", int(match[2])))
    return {function: sorted(places) for function, places in calls.items()}


class call_sites_test(unittest.TestCase):
    def table(self, directory, options, path=None):
        program = os.path.join(directory, "call_sites")
        subprocess.run([os.path.join(BIN, COMPILER[0]), *COMPILER[1:], *options, SOURCE, "-o", program], cwd=directory, check=True)
        environment = {**os.environ, "DIOMP_STATS": "callsites"}
        if path is not None:
            environment["PATH"] = path
        text = subprocess.run([os.path.join(BIN, "diomp-run"), "-n", "1", "--timeout", "60", program],
                              env=environment, text=True, capture_output=True, check=True).stderr
        rows = ROW.findall(text)
        for _, _, name, path, _ in rows:
            self.assertEqual(os.path.realpath(path), os.path.realpath(program), text)
            self.assertRegex(name, r"^(heavy|main|MAIN__)", text)
        return text, rows

    def check_table(self, *options):
        with tempfile.TemporaryDirectory() as directory:
            text, rows = self.table(directory, options)
            found = {}
            for function, count, _, _, line in rows:  # a loop that was unrolled has several rows
                lines = found.setdefault(function, {})
                lines[line] = lines.get(line, 0) + int(count)
            self.assertEqual({function: sorted(calls.items()) for function, calls in found.items()}, expected_calls(),
                             text)

    def test_without_optimisation(self):
        self.check_table("-g", "-O0")

    def test_optimised(self):
        if SOURCE.endswith(".cpp") and shutil.which("llvm-symbolizer") is None:
            self.skipTest("addr2line omits some calls that were inlined")
        self.check_table("-g", "-O2")

    def test_without_debug_information_there_are_names_alone(self):
        with tempfile.TemporaryDirectory() as directory:
            text, rows = self.table(directory, ["-O1"])
            self.assertTrue(rows, text)
            self.assertEqual({line for *_, line in rows}, {""}, text)

    def test_without_a_tool_there_are_names_alone(self):
        with tempfile.TemporaryDirectory() as directory:
            text, rows = self.table(directory, ["-g", "-O1"], path=directory)
            self.assertTrue(rows, text)
            self.assertEqual({line for *_, line in rows}, {""}, text)


if __name__ == "__main__":
    if shutil.which("addr2line") is None and shutil.which("llvm-symbolizer") is None:
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
