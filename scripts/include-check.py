#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keeps the arrows of the architecture pointing down.

A room (folder of src/) includes itself and the rooms named beside it below, each only through its main header
room/room.h; a room's other headers are its own, unless listed in SHARED. Tools, apps, bench and examples are users:
they see include/ only, except for the pairs in GRANTS. Vendor headers stay in the folder of their vendor.
Room/variant folders (conduit/shm, launch/local) belong to their room. Functions and types of a vendor that are declared
by ourselves, without a header, are named in the folders of SYMBOLS only.

With --compile every header is also compiled alone: those of src/ as C++20, include/*.h as C99, C11, C17, C++17 and
C++20 with gcc and clang, include/*.hpp as C++20 with both.
"""
import argparse
import concurrent.futures
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# From the bottom up. `runtime` is the object that owns all rooms; it stands just below api.
MAY_INCLUDE = {
    "base": [],
    "launch": ["base"],
    "stacks": ["base", "launch"],
    "conduit": ["base", "launch", "stacks"],
    "device": ["base", "launch", "conduit"],
    "memory": ["base", "launch", "conduit"],
    "rma": ["base", "launch", "conduit", "memory"],
    "sync": ["base", "launch", "conduit", "memory"],
    "group": ["base", "launch", "conduit", "memory", "rma", "sync"],
    "collective": ["base", "launch", "conduit", "device", "memory", "rma", "sync", "group"],
    "offload": ["base", "launch", "conduit", "device", "memory", "rma"],
    "runtime": ["base", "launch", "stacks", "conduit", "device", "memory", "rma", "sync", "group", "collective", "offload"],
    "api": ["base", "launch", "stacks", "conduit", "memory", "rma", "sync", "group", "collective", "offload", "runtime"],
}

# Headers beside room/room.h that other rooms may include. base has no main header: it is a box of small tools.
SHARED = {
    "src/stacks/waiting.h",  # what a thread that waits says about it
    "src/stacks/calls.h",  # which threads are in calls, when the runtime ends
    "src/stacks/symbols.h",  # names of the places that statistics are about
    "src/conduit/arena.h",  # the memory behind the segments
    "src/conduit/engine.h",  # active messages, progress, waiting
    "src/conduit/call.h",    # request and reply over them
    "src/conduit/registration.h",  # what hardware there is
    "src/conduit/pooled_completion.h",  # counts of transfers, waiting for them
    "src/launch/gasnet/client.h",  # libraries that start once per process, for launcher and conduit
    "src/launch/gaspi/process.h",
    "src/conduit/fd_exchange.h",  # descriptors of device memory travel as those of segments
    "src/device/binding.h",  # arithmetic without devices
    "src/device/numa.h",
    "src/device/stream_pool.h",  # copies side by side: the fence polls it
    "src/launch/same_node.h",  # whether loopback reaches a rank
    "src/launch/nodes.h",  # tests see one machine as several
    "src/memory/layout.h",
    "src/memory/segment.h",
    "src/memory/heap.h",  # segments of devices are managed alike
    "src/memory/directory.h",
    "src/rma/copy.h",  # the hot path of api, collectives' copies
    "src/rma/event.h",
    "src/sync/lock.h",  # its other main header is the barrier: two interfaces in one module
    "src/sync/call_signature.h",
    "src/sync/node_barrier.h",
    "src/group/registry.h",
    "src/collective/device_plan.h",  # who makes devices' memory reachable carries it out
    "src/collective/vendor/vendor_library.h",  # who owns a group's communicators, and hands out their id
    "src/collective/vendor/vendor_group.h",
    "src/collective/vendor/plan.h",  # which calls a library has
    "src/launch/host.h",  # names of nodes
    "src/launch/openmp_files.h",  # who reaps processes cleans up behind them
    "src/offload/remote/client.h",  # remote devices work without the runtime: api reaches them by themselves
    "src/offload/remote/observer.h",  # its events, for statistics
    "src/offload/remote/queue.h",
    "src/offload/remote/token.h",  # api reads the settings
    "src/offload/remote_table.h",  # seen from both sides of dlsym
    "src/offload/table.h",  # seen from both sides of dlsym
    "src/offload/device_names.h",  # the same
    "src/offload/variable_table.h",  # the same
    "src/runtime/rank_devices.h",  # when it is asked for, api decides; diomp-info shows it
}
OPEN_ROOMS = {"base"}

# Folders outside src/ that may see parts of it, and why.
GRANTS = {
    # prints the table of settings; --doctor asks where segments lie; --topology what devices can do, and who would drive them
    "tools/diomp-info": ["base", "conduit", "device", "offload", "runtime"],
    # drives devices of other hosts below OpenMP, by the table that libomptarget uses
    "tools/diomp-bench": ["base", "offload"],
    # a service of devices: its session is a rank of the client's world
    "tools/diomp-deviced": ["base", "launch", "offload"],
    "fortran": ["api"],  # errors of the module, told as the runtime tells them
    "llvm/plugin": ["offload"],  # libomptarget's side of offload/table.h
    "tools/diomp-run": ["base", "launch"],  # the other end of the launcher's socket
}

# Vendor headers and the only folders that may name them.
VENDOR = {
    r"hwloc": ["tools/"],
    r"mpi\.h|shmem\.h": ["apps/", "bench/"],
    r"ucp/|ucs/": ["src/conduit/ucx/"],
    r"gasnet": ["src/conduit/gasnet/", "src/launch/gasnet/"],
    r"gaspi|GASPI": ["src/conduit/gaspi/", "src/launch/gaspi/"],
    r"pmix": ["src/launch/pmix/"],
    r"sodium": ["src/base/secure/"],
}

# Names of vendors' functions and the only folders of src/ that may say them.
SYMBOLS = {
    re.compile(r"\bnccl[A-Z]\w+"): "src/collective/vendor/",
    re.compile(r"\bcu[A-Z][a-z]\w+\("): "src/device/cuda/",
    re.compile(r"\bhip[A-Z][a-z]\w+\("): "src/device/hip/",
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SOURCES = (".h", ".hpp", ".c", ".cpp")


def tracked():
    """All sources that git knows or would add."""
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\n")
    return sorted(n for n in names if n.endswith(SOURCES) and (ROOT / n).is_file())


def room_of(path):
    """src/conduit/shm/ring.h -> conduit; include/diomp.h -> None."""
    parts = path.split("/")
    return parts[1] if parts[0] == "src" and len(parts) > 2 else None


def resolve(including, name):
    """The repository path of an included project header, or None if it is not ours."""
    beside = os.path.normpath(os.path.join(os.path.dirname(including), name))
    for candidate in (beside, f"src/{name}", f"include/{name}"):
        if (ROOT / candidate).is_file():
            return candidate
    return None


def reason_against(including, included):
    """Why `including` may not include the project header `included`; None if it may."""
    target = room_of(included)
    if target is None:
        return None
    source = room_of(including)
    if source == target:
        return None
    if including.startswith("tests/"):
        return None  # unit tests look inside
    if source is None:
        for folder, rooms in GRANTS.items():
            if including.startswith(folder + "/") and target in rooms:
                return None
        return "only public headers may be used outside src/"
    if source not in MAY_INCLUDE:
        return f"room '{source}' is not in the list of {Path(__file__).name}"
    if target not in MAY_INCLUDE[source]:
        return f"{source} may include only {', '.join(MAY_INCLUDE[source]) or 'itself'}"
    if target in OPEN_ROOMS or included == f"src/{target}/{target}.h" or included in SHARED:
        return None
    return f"{included} is internal to {target}; include {target}/{target}.h"


def check_arrows(files):
    problems = []
    for name in files:
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").split("\n"), 1):
            for symbol, folder in SYMBOLS.items():
                said = symbol.search(line) if name.startswith("src/") and not name.startswith(folder) else None
                if said:
                    problems.append(f"{name}:{number}: {said.group(0)}: only {folder} may name this vendor")
            match = INCLUDE.match(line)
            if not match:
                continue
            included = match.group(2)
            for pattern, folders in VENDOR.items():
                if re.match(pattern, included) and not name.startswith(tuple(folders) + ("tests/",)):
                    problems.append(f"{name}:{number}: {included}: only {', '.join(folders)} may name this vendor")
            ours = resolve(name, included)
            why = ours and reason_against(name, ours)
            if why:
                problems.append(f"{name}:{number}: {included}: {why}")
    return problems


# Headers of these folders need a package of their own, found by pkg-config; without it they are left out, as the
# build does.
OPTIONAL_PACKAGES = {"src/conduit/ucx/": "ucx", "src/launch/pmix/": "pmix", "src/conduit/gasnet/": "gasnet-smp-par",
                     "src/launch/gasnet/": "gasnet-smp-par", "src/conduit/gaspi/": "GPI2", "src/launch/gaspi/": "GPI2"}


def package_flags(name):
    """Compiler flags for a header of src/, or None if its package is not installed."""
    for folder, package in OPTIONAL_PACKAGES.items():
        if name.startswith(folder):
            found = subprocess.run(["pkg-config", "--cflags", package], capture_output=True, text=True, check=False)
            return found.stdout.replace("-I", "-isystem ").split() if found.returncode == 0 else None
    return []


def compile_jobs(files):
    """(description, command) for every way that a header must compile alone."""
    clang, clangxx = "clang-19", "clang++-19"
    strict = ["-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", "include"]
    jobs = []
    for name in files:
        if name.startswith("src/") and name.endswith(".h"):
            flags = package_flags(name)
            if flags is not None:
                # Without a main file, `#pragma once` would be warned about.
                jobs.append((name, [clangxx, "-std=gnu++20", *strict, *flags, "-I", "src", "-include", name, "-x", "c++",
                                    "/dev/null"]))
        elif name.startswith("include/") and name.endswith(".h"):
            for compiler in (clang, "gcc"):
                for standard in ("c99", "c11", "c17"):
                    for openmp in ([], ["-fopenmp"]):
                        jobs.append((name, [compiler, f"-std={standard}", *openmp, *strict, "-include", name, "-x", "c", "/dev/null"]))
            for compiler in (clangxx, "g++"):
                for standard in ("c++17", "c++20"):
                    for openmp in ([], ["-fopenmp"]):
                        jobs.append((name, [compiler, f"-std={standard}", *openmp, *strict, "-include", name, "-x", "c++", "/dev/null"]))
        elif name.startswith("include/") and name.endswith(".hpp"):
            for compiler in (clangxx, "g++"):
                jobs.append((name, [compiler, "-std=c++20", "-fopenmp", *strict, "-include", name, "-x", "c++", "/dev/null"]))
    return [job for job in jobs if shutil.which(job[1][0])]


def check_compiles(files):
    """Compiles each header alone; a success is remembered until any header of ours changes."""
    everything = hashlib.sha256()
    for name in files:
        if name.endswith((".h", ".hpp")):
            everything.update(name.encode() + b"\0" + (ROOT / name).read_bytes())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "diomp-checks"
    cache.mkdir(parents=True, exist_ok=True)

    def run(job):
        name, command = job
        key = hashlib.sha256(" ".join(command).encode() + everything.digest()).hexdigest()
        if (cache / key).exists():
            return None
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            (cache / key).touch()
            return None
        return f"{name}: does not compile alone: {' '.join(command)}\n{done.stderr}"

    jobs = compile_jobs(files)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        problems = [text for text in pool.map(run, jobs) if text]
    return problems, len(jobs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--compile", action="store_true", help="also compile each header alone")
    options = parser.parse_args()
    files = tracked()
    problems = check_arrows(files)
    compiled = 0
    if options.compile:
        more, compiled = check_compiles(files)
        problems += more
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"includes: {len(files)} files, {compiled} compilations, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
