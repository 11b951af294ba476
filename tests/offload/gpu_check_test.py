#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scripts/gpucheck/run.sh on programs of this build, which have host devices where a bundle's have a GPU's.

    gpu_check_test.py SOURCE_DIR BUILD_DIR
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE, BUILD = Path(sys.argv[1]), Path(sys.argv[2])
LLVM = Path("/usr/lib/llvm-19/lib")
PROGRAMS = ("bin/diomp-run", "bin/minimod-target", "tests/offload/offload_plain", "tests/offload/offload_target",
            "tests/offload/offload_shared_device",
            "tests/device/device_real_test", "tests/device/device_reduce_test")


class GpuCheck(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bundle = Path(folder.name) / "bundle"
        self.out = Path(folder.name) / "out"
        self.driver = Path(folder.name) / "driver"
        for part in ("bin", "lib/diomp", "libc"):
            (self.bundle / part).mkdir(parents=True)
        self.driver.mkdir()
        for program in PROGRAMS:
            shutil.copy(BUILD / program, self.bundle / "bin")
        shutil.copy(BUILD / "lib/libdiomp.so.1", self.bundle / "lib")
        shutil.copy((BUILD / "lib/diomp/libomptarget.so").resolve(), self.bundle / "lib/diomp")
        shutil.copy(LLVM / "libomp.so.5", self.bundle / "lib")
        (self.bundle / "lib/libomp.so").symlink_to("libomp.so.5")
        for part in ("run.sh", "report.awk", "expect.sh", "host-of-each.sh"):
            shutil.copy(SOURCE / "scripts/gpucheck" / part, self.bundle)
        (self.bundle / "about").write_text("commit none\nglibc 2.28\narchs host\n")

    def run_check(self, **environment):
        done = subprocess.run(["sh", self.bundle / "run.sh"], capture_output=True, text=True, timeout=240, check=False,
                              env={**os.environ, "OUT": str(self.out), "OMP_NUM_THREADS": "1", **environment})
        report = json.loads((self.out / "gpu-check.json").read_text())
        self.assertEqual((self.out / "gpu-check.txt").read_text(), done.stdout)
        return done, report, {test["name"]: test for test in report["tests"]}

    def with_stand_in(self):
        shutil.copy(BUILD / "tests/device/libfake_cuda.so", self.driver / "libcuda.so.1")
        return {"LD_LIBRARY_PATH": str(self.driver)}

    @unittest.skipIf(Path("/usr/lib/x86_64-linux-gnu/libcuda.so.1").exists(), "there is a driver")
    def test_without_a_driver_nothing_counts_as_tested(self):
        done, report, tests = self.run_check()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(report["verdict"], "no GPU was tested: no libcuda.so.1")
        self.assertEqual(report["passed"], 1)
        self.assertEqual(tests["host.minimod.np2"]["outcome"], "passed")
        self.assertIn("Gpoints/s", [figure["unit"] for figure in tests["host.minimod.np2"]["figures"]])
        self.assertEqual({test["reason"] for test in tests.values() if test["outcome"] == "skipped"}, {"no libcuda.so.1"})
        self.assertIn("offload.target.np4", tests)

    def test_with_a_driver_tests_run_and_figures_are_gathered(self):
        done, report, tests = self.run_check(**self.with_stand_in(), GPU_CHECK_ONLY="backend|alone|target.np2|collectives.np2")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(report["verdict"], "passed")
        self.assertEqual(sorted(tests), ["backend.device", "backend.kernels", "figures.collectives.np2", "host.minimod.np2", "offload.target.np2",
                                         "plain.alone"])
        self.assertEqual({test["outcome"] for test in tests.values()}, {"passed"})
        figures = {(figure["what"], figure["bytes"]): figure for figure in tests["backend.device"]["figures"]}
        self.assertEqual(figures["pool-copy", 1024]["unit"], "us")
        self.assertGreater(figures["pinned-to-device", 8]["value"], 0)
        self.assertEqual({figure["what"] for figure in tests["figures.collectives.np2"]["figures"]},
                         {"allreduce-per-rank", "bcast-per-rank", "copy-on-device", "device-to-global", "device-to-malloc",
                          "global-to-device", "malloc-to-device"})
        self.assertRegex(done.stdout, r"\| collectives of a group of 2 endpoints: native, since device 0 of rank 0 is not a GPU")

    def test_what_fails_or_hangs_stops_nothing_and_is_told(self):
        (self.bundle / "bin/offload_plain").write_text("#!/bin/sh\nprintf 'a \"word\"\\\\\\tand a tab\\n'\nexit 3\n")
        (self.bundle / "bin/device_real_test").write_text("#!/bin/sh\nsleep 100\n")
        (self.bundle / "bin/minimod-target").write_text("#!/bin/sh\n")
        done, report, tests = self.run_check(**self.with_stand_in(), GPU_CHECK_ONLY="backend|plain|target.np1",
                                             GPU_CHECK_SECONDS="20")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(report["verdict"], "failed")
        self.assertRegex(tests["backend.device"]["reason"], "^not done within [0-9]+ s$")
        # It has taken the time of all that come after it.
        self.assertEqual(tests["offload.target.np1"]["reason"], "no time left (GPU_CHECK_SECONDS=20)")
        _, report, tests = self.run_check(**self.with_stand_in(), GPU_CHECK_ONLY="plain.alone")
        self.assertEqual(tests["plain.alone"]["reason"], "status 3")
        self.assertEqual(tests["plain.alone"]["tail"], ['a "word"\\ and a tab'])
        self.assertTrue((self.out / "gpu-check-debug.txt").exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
