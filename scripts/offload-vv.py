#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the OpenMP Validation & Verification suite, on host devices and remote ones, with the packaged library and with ours.

    scripts/offload-vv.py BUILD_DIR SUITE_DIR [--llvm VERSION] [--only PATTERN] [--jobs N]
    scripts/offload-vv.py --pack FOLDER --gpu sm_90 SUITE_DIR     here, for a machine with a GPU and without a compiler
    python3 FOLDER/offload-vv.py BUNDLE FOLDER                    there; BUNDLE is that of scripts/gpu-check.sh

SUITE_DIR is a checkout of github.com/OpenMP-Validation-and-Verification/OpenMP_VV. Its C and C++ tests that clang compiles
run in four columns: the packaged libomptarget; ours; ours with the DiOMP runtime in the process; ours with four devices of a
device service instead of the host devices. Packed tests are compiled for a GPU, which takes the place of the host devices, also
in the service; the packaged library comes along. Exit status 1 if a test that passes with the packaged library does not pass with ours.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import offload_columns

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 60  # as the suite has it
LIST = "programs.json"  # of packed tests
# Of the folders whose version is not clang's default.
VERSIONS = {"5.2": 52, "6.0": 60}
# Part of another test.
PARTS = {"qmcpack_target_static_lib.c"}
# These require unified_shared_memory, and run on the host then, or use an object of the host's by its address.
SHARED_MEMORY = re.compile(r"requires_unified_shared_memory|/unified_shared_mem/|test_virtual_function_map|"
                           r"test_target_map_.*self|test_target_update_iterator")


def target_options(llvm, gpu):
    if not gpu:
        return ["-fopenmp", f"-fopenmp-targets={llvm.target}"]
    flags = subprocess.run([ROOT / "scripts/gpu-toolchain.sh", "--flags", gpu], capture_output=True, text=True, check=True)
    return [word for line in flags.stdout.splitlines() for word in line.split(" ")]


def compile_test(llvm, suite, source, program, options):
    version = VERSIONS.get(source.relative_to(suite / "tests").parts[0], 51)
    compiler = llvm.folder / "bin" / ("clang++" if source.suffix == ".cpp" else "clang")
    words = [compiler, "-O1", "-w", f"-fopenmp-version={version}", *options, f"-I{suite / 'ompvv'}", source, "-o", program,
             "-lm", "-s"]
    # clang 22 never ends with some tests of OpenMP 6.0. timeout ends the processes that clang starts, too.
    words = ["timeout", str(5 * LIMIT_S), *words]
    return subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def compile_suite(llvm, suite, folder, only, gpu, pool):
    """{name of a test that is compiled: its program}"""
    suite = suite.resolve()
    offload_columns.require(suite / "ompvv/ompvv.h", suite / "tests")
    sources = {str(path.relative_to(suite / "tests")): path for path in sorted((suite / "tests").rglob("*.c*"))
               if path.suffix in (".c", ".cpp") and path.name not in PARTS}
    sources = {name: path for name, path in sources.items() if re.search(only, name)}
    programs = {name: folder / str(i) for i, name in enumerate(sources)}
    options = target_options(llvm, gpu)
    compiled = pool.map(lambda name: compile_test(llvm, suite, sources[name], programs[name], options), sources)
    found = {name: programs[name] for name, is_there in zip(sources, compiled) if is_there}
    print(f"{len(found)} of {len(sources)} tests are compiled")
    return found


def pack(llvm, folder, suite, only, gpu, pool):
    folder.mkdir(parents=True)
    programs = compile_suite(llvm, suite, folder, only, gpu, pool)
    (folder / LIST).write_text(json.dumps({name: path.name for name, path in programs.items()}))
    (folder / "packaged").mkdir()
    for library in (llvm.soname, "libomp.so.5"):
        shutil.copy(llvm.folder / "lib" / library, folder / "packaged")
    # What that needs, but glibc, which the other machine has.
    needed = subprocess.run(["ldd", llvm.folder / "lib" / llvm.soname], capture_output=True, text=True, check=True).stdout
    for name, path in re.findall(r"(\S+) => (/\S+)", needed):
        if not re.match(r"(libc|libm|libdl|libpthread|librt|libresolv|libgcc_s|libstdc\+\+)\.so", name):
            shutil.copy(path, folder / "packaged" / name)
    (folder / "packaged/libomp.so").symlink_to("libomp.so.5")
    for script in ("offload-vv.py", "offload_columns.py"):
        shutil.copy(ROOT / "scripts" / script, folder)
    return 0


def link_driver(folder):
    """The packaged library wants the driver by a name that only some installations have."""
    listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"libcuda\.so\.1 .* => (\S+)", listed)
    if found and not (folder / "libcuda.so").exists():
        (folder / "libcuda.so").symlink_to(found[1])


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
    parser.add_argument("build", type=Path, nargs="?")
    parser.add_argument("suite", type=Path)
    parser.add_argument("--only", default="", help="regular expression on test names")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--pack", type=Path, help="a new folder for compiled tests")
    parser.add_argument("--gpu", help="architecture to compile for")
    offload_columns.add_llvm_argument(parser)
    arguments = parser.parse_args()
    llvm = offload_columns.chosen_llvm(arguments)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(arguments.jobs) as pool:
        if arguments.pack:
            return pack(llvm, arguments.pack, arguments.suite, arguments.only, arguments.gpu, pool)
        packed = arguments.suite / LIST
        if packed.exists():
            programs = {name: (arguments.suite / file).resolve() for name, file in json.loads(packed.read_text()).items()
                        if re.search(arguments.only, name)}
        else:
            programs = compile_suite(llvm, arguments.suite, Path(scratch), arguments.only, arguments.gpu, pool)
        names = list(programs)

        def run(library, environment):
            variables = dict(environment, LD_LIBRARY_PATH=offload_columns.search_path(arguments.build, library))
            return dict(zip(names, pool.map(lambda name: run_test(programs[name], name, variables, scratch), names)))

        packaged = (arguments.suite / "packaged").resolve() if packed.exists() else llvm.folder / "lib"
        if packed.exists():
            link_driver(packaged)
        columns = offload_columns.measure(arguments.build, run, llvm, packaged, "cuda" if packed.exists() else "4")
    return offload_columns.report(columns, ("PASS", "PASS ON HOST"), SHARED_MEMORY)


if __name__ == "__main__":
    sys.exit(main())
