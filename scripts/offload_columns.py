# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What offload-conformance.py and offload-vv.py share: libraries and devices that the same tests run with, side by side."""
import functools
import os
import re
import secrets
import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent


class Llvm:
    """A version of LLVM: its packaged compiler and libraries, and what they call the host as a device."""

    def __init__(self, major):
        self.major = major
        self.soname = f"libomptarget.so.{major}.1"
        self.target = "x86_64-pc-linux-gnu" if major < 20 else "x86_64-unknown-linux-gnu"

    def output_of(self, script, *words):
        return subprocess.run([SCRIPTS / script, "--llvm", str(self.major), *words], check=True, capture_output=True,
                              text=True).stdout.strip()

    @functools.cached_property
    def folder(self):
        return Path(self.output_of("llvm-toolchain.sh", "--folder"))

    @functools.cached_property
    def source(self):
        return Path(self.output_of("fetch-llvm.sh", "--folder"))


def add_llvm_argument(parser):
    parser.add_argument("--llvm", type=int, help="version of LLVM; by default the first one that the build is for")


def chosen_llvm(arguments):
    """That of --llvm, or the one whose libomptarget the build has without a version in the name."""
    found = arguments.build and re.search(r"[.]so[.](\d+)", (arguments.build / "lib/diomp/libomptarget.so").resolve().name)
    return Llvm(arguments.llvm or (int(found[1]) if found else 19))


class Service:
    """A device service: with four devices, as LLVM has host devices, or with those of a plugin."""

    def __init__(self, build, devices):
        self.token = secrets.token_hex(16)
        self.process = subprocess.Popen(
            [build / "bin/diomp-deviced", "--port", "0", "--print-port", "--devices", devices, "--end-with-parent",
             "--memory", "4G"],
            env=dict(os.environ, DIOMP_TOKEN=self.token, OMP_NUM_THREADS="4",  # tests want two and more
                     LD_LIBRARY_PATH=search_path(build, build / "lib/diomp")),
            stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def environment(self):
        return {"DIOMP_REMOTE_DEVICES": f"localhost:{self.port}", "DIOMP_LOCAL_DEVICES": "off",
                "DIOMP_TOKEN": self.token}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def require(*files):
    for needed in files:
        if not needed.exists():
            sys.exit(f"{Path(sys.argv[0]).name}: {needed.name} is missing")


def search_path(build, library):
    """A bundle has libraries that the machine may lack."""
    return f"{library}:{(build / 'lib').resolve()}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":")


def measure(build, run, llvm, packaged, devices="4"):
    """{column: what `run(folder of libomptarget, environment)` gives}"""
    ours = (build / "lib/diomp").resolve()
    runtime = (build / "lib/libdiomp.so").resolve()
    require(ours / llvm.soname, runtime)
    columns = {
        "packaged": run(packaged, {}),
        "ours": run(ours, {}),
        "ours, runtime": run(ours, {"LD_PRELOAD": str(runtime)}),
    }
    with Service(build, devices) as service:
        columns["remote"] = run(ours, service.environment())
    return columns


def report(columns, passes, shared_memory):
    """Prints tests whose code is one of `passes` with the packaged library and another one with ours; remote devices
    need not pass those that `shared_memory` matches. The exit status."""
    worse = 0
    for name, code in columns["packaged"].items():
        lost = [column for column in columns if code in passes and columns[column].get(name) != code
                and not (column == "remote" and shared_memory.search(name))]
        if lost:
            worse += 1
            print(f"{name}: passes with the packaged library, not with: {', '.join(lost)}")
    for column, codes in columns.items():
        count = {code: list(codes.values()).count(code) for code in sorted(set(codes.values()))}
        print(f"{column:14} " + ", ".join(f"{number} {code.lower()}" for code, number in count.items()))
    print(f"{worse} tests are worse with ours")
    return 1 if worse else 0
