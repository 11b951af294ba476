#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where every program and library of an installation looks for others: beside itself only. An empty element stands for the
working directory, where any user may have put a library, and a folder of the build is gone or another user's.

    run_paths.py FOLDER|FILE...     looks at each ELF file in the folders; status 1 and a line for each wrong element
    run_paths.py --self-test        finds the faults in files that it makes
"""
import os
import re
import subprocess
import sys
import tempfile


def elf_files(names):
    for name in names:
        if os.path.isdir(name):
            inside = [os.path.join(top, file) for top, _, files in os.walk(name) for file in files]
        else:
            inside = [name]
        for path in inside:
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    if file.read(4) == b"\x7fELF":
                        yield path


def is_llvm(folder):
    """A version of LLVM that the loader does not find by itself (scripts/llvm-toolchain.sh)."""
    return os.path.isdir(folder) and any(name.startswith("libLLVM") for name in os.listdir(folder))


def faults_of(path):
    text = subprocess.run(["readelf", "-dW", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True).stdout
    for run_path in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", text):
        for element in run_path.split(":"):
            if not element:
                yield f"{path}: an empty element in [{run_path}]"
            elif not re.match(r"\$ORIGIN(/|$)", element) and not is_llvm(element):
                yield f"{path}: {element} in [{run_path}]"


def look_at(names):
    paths = list(elf_files(names))
    return paths, [fault for path in paths for fault in faults_of(path)]


def self_test():
    """Each run path of the table gives this many faults."""
    table = {"$ORIGIN": 0, "$ORIGIN/../lib:$ORIGIN": 0, "/somewhere/build/lib": 1, "$ORIGIN:": 1, ":::": 4, "$ORIGINAL": 1, "lib": 1}
    with tempfile.TemporaryDirectory() as folder:
        for run_path, expected in table.items():
            library = os.path.join(folder, "library.so")
            subprocess.run(["cc", "-shared", "-o", library, "-x", "c", "/dev/null", "-Xlinker", "-rpath", "-Xlinker", run_path],
                           check=True)
            _, faults = look_at([folder])
            if len(faults) != expected:
                sys.exit(f"{run_path}: expected {expected} faults, not {faults}")
    print(f"{len(table)} run paths judged")


if sys.argv[1:] == ["--self-test"]:
    self_test()
    sys.exit()
looked_at, wrong = look_at(sys.argv[1:])
if not looked_at:
    sys.exit("run_paths.py: no ELF file there")
print("\n".join(wrong) if wrong else f"{len(looked_at)} programs and libraries look beside themselves only")
sys.exit(bool(wrong))
