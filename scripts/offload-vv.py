#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the OpenMP Validation & Verification suite, on host devices and remote ones, with the packaged library and with ours.

    scripts/offload-vv.py BUILD_DIR SUITE_DIR [--only PATTERN] [--jobs N]

SUITE_DIR is a checkout of github.com/OpenMP-Validation-and-Verification/OpenMP_VV. Its C and C++ tests that clang-19 compiles
run in four columns: the packaged libomptarget; ours; ours with the DiOMP runtime in the process; ours with four devices of a
device service instead of the host devices. Exit status 1 if a test that passes with the packaged library does not pass with ours.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import offload_columns
from offload_columns import LLVM, TARGET

LIMIT_S = 60  # as the suite has it
# Of the folders whose version is not clang's default.
VERSIONS = {"5.2": 52, "6.0": 60}
# Part of another test.
PARTS = {"qmcpack_target_static_lib.c"}
# These require unified_shared_memory, and run on the host then, or use an object of the host's by its address.
SHARED_MEMORY = re.compile(r"requires_unified_shared_memory|/unified_shared_mem/|test_virtual_function_map")


def compile_test(suite, source, program):
    version = VERSIONS.get(source.relative_to(suite / "tests").parts[0], 51)
    compiler = LLVM / "bin" / ("clang++" if source.suffix == ".cpp" else "clang")
    words = [compiler, "-O1", "-w", "-fopenmp", f"-fopenmp-version={version}", f"-fopenmp-targets={TARGET}",
             f"-I{suite / 'ompvv'}", source, "-o", program, "-lm"]
    return subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def run_test(program, name, variables, folder):
    """"PASS", "PASS ON HOST", "FAIL", "SKIPPED" or "TIMEOUT"."""
    environment = dict(os.environ, **variables)
    setting = re.search(r"test_([^/]*)_env_([^./]*)\.", name)  # the suite's way to say what a test needs
    if setting:
        environment[setting[1].upper()] = setting[2]
    try:
        done = subprocess.run([program], env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return "TIMEOUT"
    if b"Test skipped" in done.stdout:
        return "SKIPPED"
    if done.returncode != 0:
        return "FAIL"
    return "PASS ON HOST" if b"passed on the host" in done.stdout else "PASS"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("suite", type=Path)
    parser.add_argument("--only", default="", help="regular expression on test names")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    suite = arguments.suite.resolve()
    offload_columns.require(suite / "ompvv/ompvv.h", suite / "tests")
    sources = {str(path.relative_to(suite / "tests")): path for path in sorted((suite / "tests").rglob("*.c*"))
               if path.suffix in (".c", ".cpp") and path.name not in PARTS}
    sources = {name: path for name, path in sources.items() if re.search(arguments.only, name)}
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(arguments.jobs) as pool:
        programs = {name: Path(scratch, str(i)) for i, name in enumerate(sources)}
        compiled = pool.map(lambda name: compile_test(suite, sources[name], programs[name]), sources)
        names = [name for name, is_there in zip(sources, compiled) if is_there]
        print(f"{len(names)} of {len(sources)} tests are compiled")

        def run(library, environment):
            variables = dict(environment, LD_LIBRARY_PATH=str(library))
            return dict(zip(names, pool.map(lambda name: run_test(programs[name], name, variables, scratch), names)))

        columns = offload_columns.measure(arguments.build, run)
    return offload_columns.report(columns, ("PASS", "PASS ON HOST"), SHARED_MEMORY)


if __name__ == "__main__":
    sys.exit(main())
