#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What bench/compare-conduits reads from GASNet-EX's and GPI-2's own tests, from stand-ins that print what those print:
own_tests_test.py BENCH_DIRECTORY"""

import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv.pop(1))
from comparison import own_tests  # noqa: E402

# Only one rank prints, and none of them ends by itself.
GPI2_PROGRAM = """#!/usr/bin/env python3
import os, sys, time
rank = int(os.environ["GASPI_RANK"])
with open(os.environ["GASPI_MFILE"]) as file:
    assert file.read() == "127.0.0.1\\n127.0.0.1\\n"
assert os.environ["GASPI_SOCKET"] == str(rank) and os.environ["GASPI_NRANKS"] == "2"
with open(os.path.join(os.path.dirname(__file__), "pids"), "a") as file:
    print(os.getpid(), file=file)
if rank == PRINTS:
    print("-" * 35 + "%12s\\t%5s" % ("Bytes", "LatBW"))
    for i in range(1, LAST):
        print("%12d\\t%4.2f" % (2 ** i, FIGURE * 2 ** i) + MORE)
    print("   31\\t1", end="")
if LAST > 8:
    time.sleep(600)
"""
TESTSMALL = """#!/bin/sh
echo "A:  0 -          8 byte :    2000 iters, latency      23000 us total,    11.500 us ave. (PutBlocking latency)"
echo "A:  0 -          8 byte :    2000 iters, latency      25000 us total,    12.500 us ave. (GetBlocking latency)"
echo "A:  0 -         16 byte :    2000 iters, latency      27000 us total,    13.500 us ave. (GetBlocking latency)"
echo done.
"""
TESTLARGE = """#!/bin/sh
echo "P0:   65536 byte : 200 iters, throughput   64000.0 KB/sec (PutNB throughput)"
echo "P0:   65536 byte : 200 iters, throughput   32000.0 KB/sec (GetNB throughput)"
echo done.
"""


def rows_of(test, latency_sizes, window_sizes):
    return [row for part in test.parts(latency_sizes, window_sizes) for row in part()]


class OwnTests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def add(self, name, text, **values):
        for key, value in values.items():
            text = text.replace(key, repr(value))
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)

    def gpi2(self):
        return own_tests.Gpi2(self.folder, None, dict(os.environ))

    def test_gasnet(self):
        self.add("testsmall", TESTSMALL)
        self.add("testlarge", TESTLARGE)
        test = own_tests.Gasnet(self.folder, "env A=B {program}", dict(os.environ))
        self.assertEqual(rows_of(test, [8, 64], [65536]),
                         [("put_event", 8, 11.5), ("get", 8, 12.5), ("put_window", 65536, 1000.0), ("get_window", 65536, 2000.0)])

    def test_gasnet_that_fails(self):
        self.add("testsmall", "#!/bin/sh\necho no network >&2\n")
        with self.assertRaisesRegex(SystemExit, "testsmall: no network"):
            rows_of(own_tests.Gasnet(self.folder, "{program}", dict(os.environ)), [8], [65536])

    def test_gpi2(self):
        self.add("write_notify_lat.bin", GPI2_PROGRAM, PRINTS=0, LAST=24, FIGURE=0.5, MORE="")
        self.add("read_lat.bin", GPI2_PROGRAM, PRINTS=1, LAST=24, FIGURE=0.25, MORE="")
        self.add("write_bw.bin", GPI2_PROGRAM, PRINTS=0, LAST=24, FIGURE=0.125, MORE="\t\t0.0208")
        self.add("read_bw.bin", GPI2_PROGRAM, PRINTS=0, LAST=24, FIGURE=0.0625, MORE="\t\t0.0208")
        rows = rows_of(self.gpi2(), [8, 1024], [4096, 65536])
        # A bandwidth in proportion to the size is the same time for all.
        self.assertEqual(rows, [("signal", 8, 4.0), ("signal", 1024, 512.0), ("get", 8, 2.0), ("get", 1024, 256.0),
                                ("put_window", 65536, 1e6 / 2**17),
                                ("get_window", 4096, 1e6 / 2**16), ("get_window", 65536, 1e6 / 2**16)])
        pids = (self.folder / "pids").read_text().split()
        self.assertGreaterEqual(len(pids), 4)  # the rank that prints nothing may be ended before it comes so far
        self.assertEqual([pid for pid in pids if Path("/proc", pid).exists()], [])

    def test_gpi2_without_a_program(self):
        self.add("read_bw.bin", GPI2_PROGRAM, PRINTS=0, LAST=24, FIGURE=0.0625, MORE="\t\t0.0208")
        self.assertEqual([row[0] for row in rows_of(self.gpi2(), [8], [4096])], ["get_window"])

    def test_gpi2_without_any_program(self):
        with self.assertRaisesRegex(SystemExit, "no microbenchmarks of GPI-2 in"):
            rows_of(self.gpi2(), [8], [4096])

    def test_gpi2_that_ends_early(self):
        self.add("read_lat.bin", GPI2_PROGRAM, PRINTS=1, LAST=6, FIGURE=0.25, MORE="")
        with self.assertRaisesRegex(SystemExit, "read_lat: 31"):
            rows_of(self.gpi2(), [8, 1024], [4096])

    def test_gpi2_by_a_launcher(self):
        self.add("read_lat.bin", "#!/bin/sh\nprintf '%12d\\t%4.2f\\n' 8 3.5\n")
        test = own_tests.Gpi2(self.folder, "env A=B {program}", dict(os.environ))
        self.assertEqual(rows_of(test, [8], []), [("get", 8, 3.5)])


if __name__ == "__main__":
    unittest.main()
