#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the directions of includes, by path alone, and that the headers of types that sources name are included.

A module (folder of src/) includes itself and the modules named beside it below. Headers that lie in a module's folder
are public; those in its subfolders (internal/, common/, tcp/, ...) are its own, but for the subfolders in OPEN, which are
modules of their own. Tools, apps, bench and examples are users: they see include/ only, except for the pairs in GRANTS.
A source or header that writes TYPE:: sees a header that declares the type: builds that compile several sources as one
(DIOMP_BATCH) would not notice that it does not. Vendor headers stay in the folder of their vendor. Functions and types of a vendor that are declared by this project,
without a header, are named in the folders of SYMBOLS only.

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

from source_text import ROOT, compiled, tracked

# From the bottom up. `runtime` is the object that owns all modules; it stands just below api.
MAY_INCLUDE = {
    "base": [],
    "config": ["base"],
    "launch": ["base"],
    "stacks": ["base", "launch"],
    "transport": ["base", "launch", "launch/gasnet", "launch/gaspi"],
    "messaging": ["base", "launch", "stacks", "transport"],
    "device": ["base", "launch", "transport"],
    "memory": ["base", "launch", "transport", "messaging"],
    "rma": ["base", "launch", "transport", "messaging", "memory"],
    "sync": ["base", "launch", "transport", "messaging", "memory", "rma"],
    "channels": ["base", "launch", "transport", "messaging", "memory", "rma"],
    "cart": ["base", "channels"],
    "group": ["base", "launch", "transport", "messaging", "memory", "rma", "sync"],
    "coll": ["base", "launch", "transport", "messaging", "device", "memory", "rma", "sync", "group"],
    "offload": ["base", "config", "launch", "transport", "messaging", "device", "memory", "rma"],
    "offload/remote": ["base", "launch", "transport", "messaging", "device", "memory", "offload"],
    "offload/service": ["base", "launch", "transport", "messaging", "device", "memory", "offload", "offload/remote"],
    "device_coll": ["base", "config", "launch", "messaging", "device", "rma", "sync", "group", "coll", "offload"],
    "runtime": ["base", "config", "launch", "stacks", "transport", "messaging", "device", "memory", "rma", "sync", "channels", "cart",
                "group", "coll", "offload", "device_coll"],
    "api": ["base", "config", "launch", "stacks", "transport", "messaging", "memory", "rma", "sync", "channels", "cart", "group", "coll",
            "offload", "offload/remote", "device_coll", "runtime"],
}

# Subfolders whose headers others may include: the ends of a protocol, and libraries that start once per process, for
# launcher and network.
OPEN = {"base/secure", "launch/local", "launch/gasnet", "launch/gaspi", "offload/remote", "offload/service"}

# Folders outside src/ that may see parts of it, and why.
GRANTS = {
    # prints the table of settings; --doctor asks where segments lie; --topology what devices can do, and who would drive them;
    # --coll-tuning which algorithms there are
    "tools/diomp-info": ["base", "config", "transport", "device", "coll", "offload", "runtime"],
    # drives devices of other hosts below OpenMP, by the table that libomptarget uses
    "tools/diomp-bench": ["base", "offload"],
    # a service of devices: its session is a rank of the client's world
    "tools/diomp-deviced": ["base", "base/secure", "config", "launch", "offload", "offload/remote", "offload/service"],
    # ranks of the library as actors of a simulation: it builds them from the parts that a process has one of
    "bench/simulation": ["base", "transport", "messaging", "sync", "group", "coll"],
    "bench/handshake": ["base", "base/secure"],  # both sides of a handshake without sockets
    "fortran": ["api"],  # errors of the module, told as the runtime tells them
    "llvm/plugin": ["offload"],  # libomptarget's side of offload/table.h
    "llvm/prototype": ["offload"],
    "tools/diomp-run": ["base", "base/secure", "launch", "launch/local"],  # the other end of the launcher's socket
}

# Vendor headers and the only folders that may name them.
VENDOR = {
    r"hwloc": ["tools/"],
    r"mpi\.h|shmem\.h": ["apps/", "bench/"],
    r"ucp/|ucs/": ["src/transport/ucx/"],
    r"gasnet": ["src/transport/gasnet/", "src/launch/gasnet/"],
    r"gaspi|GASPI": ["src/transport/gaspi/", "src/launch/gaspi/"],
    r"pmix": ["src/launch/pmix/"],
    r"sodium": ["src/base/secure/"],
}

# Names of vendors' functions and the only folders of src/ that may say them.
SYMBOLS = {
    re.compile(r"\bnccl[A-Z]\w+"): "src/device_coll/vendor/",
    re.compile(r"\bcu[A-Z][a-z]\w+\("): "src/device/cuda/",
    re.compile(r"\bhip[A-Z][a-z]\w+\("): "src/device/hip/",
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SOURCES = (".h", ".hpp", ".c", ".cpp")


def folder_of(path):
    """src/transport/tcp/wire.h -> transport/tcp; include/diomp.h -> None."""
    parts = path.split("/")
    return "/".join(parts[1:-1]) if parts[0] == "src" and len(parts) > 2 else None


def module_of(path):
    """The module of a source: src/transport/tcp/wire.h -> transport, src/offload/remote/client.h -> offload/remote."""
    folder = folder_of(path)
    if folder is None:
        return None
    parts = folder.split("/")
    return "/".join(parts[:2]) if "/".join(parts[:2]) in OPEN else parts[0]


def owner_of(module):
    """launch/local -> launch; offload/remote, which has a list of its own, stays."""
    return module if module in MAY_INCLUDE else module.split("/", maxsplit=1)[0]


def resolve(including, name):
    """The repository path of an included project header, or None if it is not ours."""
    beside = os.path.normpath(os.path.join(os.path.dirname(including), name))
    for candidate in (beside, f"src/{name}", f"include/{name}"):
        if (ROOT / candidate).is_file():
            return candidate
    return None


def reason_against(including, included):
    """Why `including` may not include the project header `included`; None if it may."""
    target = module_of(included)
    if target is None:
        return None
    source = module_of(including)
    if including.startswith("tests/"):  # unit tests look inside
        return None
    if source is not None and owner_of(source) == owner_of(target):
        return None
    if source is None:
        allowed = [module for folder, modules in GRANTS.items() if including.startswith(folder + "/") for module in modules]
        if target not in allowed:
            return "only public headers may be used outside src/"
    else:
        own = owner_of(source)
        if own not in MAY_INCLUDE:
            return f"module '{own}' is not in the list of {Path(__file__).name}"
        allowed = [*MAY_INCLUDE[own], own]
        if target.startswith("base/"):
            allowed.append(target)
        if target not in allowed:
            return f"{own} may include only {', '.join(allowed)}"
    if folder_of(included) == target:
        return None
    return f"{included} is internal to {target}"


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


DECLARED = re.compile(r"^(?:template\s*<[^;{]*>\s*)?(?:class|struct|enum(?:\s+class)?|union)\s+([a-z_]\w*)\b(?!\s*;)|"
                      r"^using\s+([a-z_]\w*)\s*=", re.MULTILINE)
# Whatever a name can be besides: a nested type, an alias, a template parameter, a namespace.
ANY_NAME = re.compile(r"\b(?:class|struct|union|enum(?:\s+class)?|namespace|using|typename|concept)\s+([\w:]+)")
QUALIFIER = re.compile(r"(?<![\w.>:])([a-z_]\w*)::")
COMMENTS = compiled()


def check_named_types(files):
    """Types of one header before `::`, in sources of src/ and tools/ that do not see the header."""
    files = [name for name in files if name.startswith(("src/", "tools/")) and name.endswith((".h", ".cpp"))]
    text, includes = {}, {}
    for name in files:
        raw = (ROOT / name).read_text(encoding="utf-8")
        found = (INCLUDE.match(line) for line in raw.split("\n"))
        includes[name] = {resolve(name, match.group(2)) or f"tools/diomp-run/{match.group(2)}" for match in found if match}
        text[name] = COMMENTS.sub(" ", raw)
    names = {name: {part for said in ANY_NAME.findall(text[name]) for part in said.split("::")} for name in files}
    namespaces = {part for name in files for said in re.findall(r"\bnamespace\s+([\w:]+)", text[name])
                  for part in said.split("::")}
    headers = {}
    for name in files:
        for match in DECLARED.finditer(text[name]) if name.endswith(".h") else ():
            headers.setdefault(match.group(1) or match.group(2), set()).add(name)
    problems = []
    for name in files:
        seen, rest = set(), [name]
        while rest:
            one = rest.pop()
            if one in includes and one not in seen:
                seen.add(one)
                rest += includes[one]
        known = namespaces.union(*(names[one] for one in seen))
        problems += [f"{name}: {said}:: is declared in {' and '.join(sorted(headers[said]))}, which is not included"
                     for said in sorted(set(QUALIFIER.findall(text[name])) & headers.keys() - known)]
    return problems


# Headers of these folders need a package of their own, found by pkg-config; without it they are left out, as the
# build does.
OPTIONAL_PACKAGES = {"src/transport/ucx/": "ucx", "src/launch/pmix/": "pmix", "src/transport/gasnet/": "gasnet-smp-par",
                     "src/launch/gasnet/": "gasnet-smp-par", "src/transport/gaspi/": "GPI2", "src/launch/gaspi/": "GPI2"}


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
    files = [name for name in tracked() if name.endswith(SOURCES)]
    problems = check_arrows(files) + check_named_types(files)
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
