#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs LLVM's own tests of libomptarget, on host devices, with the packaged library and with ours.

    scripts/offload-conformance.py BUILD_DIR [--llvm VERSION] [--only PATTERN] [--jobs N]

Four columns: the packaged libomptarget; ours; ours with the DiOMP runtime in the process, so that device memory comes
from a segment; ours with four devices of a device service instead of the host devices. The tests are those of the source that
scripts/fetch-llvm.sh fetched, run by LLVM's lit. VERSION is the first one that the build is for, unless --llvm names another.
Exit status 1 if a test that passes with the packaged library does not pass with ours.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import offload_columns
LIT = "llvm/utils/lit/lit.py"
SITE = """
config.bin_llvm_tools_dir = "{llvm}/bin"
config.test_c_compiler = "{llvm}/bin/clang"
config.test_cxx_compiler = "{llvm}/bin/clang++"
config.test_fortran_compiler = ""
config.test_compiler_features = ["clang"]
config.test_openmp_flags = "-fopenmp"
config.test_extra_flags = ""
config.cuda_path = ""
config.cuda_libdir = ""
config.cuda_test_arch = ""
config.amdgpu_test_arch = ""
config.libomptarget_obj_root = "{scratch}"
config.library_dir = "{library}"
config.llvm_library_dir = "{llvm}/lib"
config.llvm_library_intdir = "{library}"
config.omp_header_directory = "{llvm}/lib/clang/{major}/include"
config.omp_host_rtl_directory = "{llvm}/lib"
config.llvm_lib_directory = "{llvm}/lib"
config.operating_system = "Linux"
config.libomptarget_all_targets = ["{target}"]
config.libomptarget_current_target = "{target}"
config.libomptarget_filecheck = "{llvm}/bin/FileCheck"
config.libomptarget_not = "{llvm}/bin/not"
config.libomptarget_debug = False
config.libomptarget_test_pgo = False
config.offload_device_info = "{llvm}/bin/llvm-offload-device-info"
config.offload_tblgen = ""
config.has_libomptarget_ompt = True
config.libomptarget_has_libc = False
config.environment.update({environment!r})
lit_config.load_config(config, "{tests}/lit.cfg")
"""


# The regions of these use host memory or functions by their address: they need a device that shares memory with the host, which GPUs
# need not and other hosts never do.
SHARED_MEMORY = re.compile(r"unified_shared_memory|force-usm|managed_memory|host_pinned_memory|"
                           r"target_derefence_array_pointrs|omp_indirect_call")


def run(llvm, source, library, environment, arguments):
    """{test name: "PASS" and the like} of one configuration."""
    with tempfile.TemporaryDirectory() as scratch:
        site = Path(scratch) / "site"
        site.mkdir()
        # The compiler looks for the devices' runtimes beside libomptarget.
        beside = Path(scratch) / "lib"
        beside.mkdir()
        for name in ("libomptarget.so", llvm.soname):
            (beside / name).symlink_to(library / llvm.soname)
        # The packaged library looks for LLVM beside itself where it is only unpacked.
        for needed in (llvm.folder / "lib").glob("libLLVM.so*"):
            (beside / needed.name).symlink_to(needed)
        (beside / "libomptarget.devicertl.a").symlink_to(llvm.folder / "lib/libomptarget.devicertl.a")
        (site / "lit.site.cfg").write_text(SITE.format(
            llvm=llvm.folder, major=llvm.major, scratch=f"{scratch}/run", library=beside, target=llvm.target,
            environment=environment, tests=source / "offload/test"))
        results = Path(scratch) / "results.json"
        command = [sys.executable, str(source / LIT), "-q", f"-j{arguments.jobs}", "-o", str(results), str(site)]
        if arguments.only:
            command += ["--filter", arguments.only]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=900)
        if not results.exists():
            sys.exit(f"offload-conformance.py: lit did not run: {' '.join(command)}")
        return {each["name"].split(" :: ")[-1]: each["code"] for each in json.loads(results.read_text())["tests"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--only", help="regular expression on test names")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    offload_columns.add_llvm_argument(parser)
    arguments = parser.parse_args()
    llvm = offload_columns.chosen_llvm(arguments)
    source = llvm.source
    offload_columns.require(source / "offload/test/lit.cfg", source / LIT)
    columns = offload_columns.measure(
        arguments.build, lambda library, environment: run(llvm, source, library, environment, arguments), llvm,
        llvm.folder / "lib")
    return offload_columns.report(columns, ("PASS", "XFAIL"), SHARED_MEMORY)


if __name__ == "__main__":
    sys.exit(main())
