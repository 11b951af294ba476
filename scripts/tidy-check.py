#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs clang-tidy, as .clang-tidy says, over the sources of src/ and tools/.

    scripts/tidy-check.py BUILD_DIR              every one in BUILD_DIR/compile_commands.json
    scripts/tidy-check.py BUILD_DIR FILE...      only these
    scripts/tidy-check.py BUILD_DIR --changed    only what differs from main, through headers too
    scripts/tidy-check.py BUILD_DIR --seconds 150
                                                 stop after so long; files that are left then are a failure

A clean file is remembered, by the hash of itself, of every header of ours, of its command and of .clang-tidy, in the
user's cache directory; the headers count one by one, those it really includes. A run that passes its time budget
(--seconds) says what is left, and fails; what was clean by then stays remembered.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIDY = os.environ.get("CLANG_TIDY", "clang-tidy-19")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def read_commands(build):
    """Source path (relative) -> arguments, from the compilation database."""
    path = build / "compile_commands.json"
    if not path.is_file():
        sys.exit(f"tidy-check: {path} is missing; configure the build first")
    commands = {}
    for entry in json.loads(path.read_text(encoding="utf-8")):
        source = (Path(entry["directory"]) / entry["file"]).resolve()
        if source.is_relative_to(ROOT) and source.suffix in (".c", ".cpp"):
            name = str(source.relative_to(ROOT))
            if name.startswith(("src/", "tools/")):
                commands.setdefault(name, entry["command"])
    return commands


def own_includes(name, seen):
    """All project files that `name` includes, itself included, found by text: cheap and never too few."""
    if name in seen:
        return seen
    seen.add(name)
    text = (ROOT / name).read_text(encoding="utf-8")
    for included in INCLUDE.findall(text):
        beside = os.path.normpath(os.path.join(os.path.dirname(name), included))
        for candidate in (beside, included, f"src/{included}", f"include/{included}"):
            if (ROOT / candidate).is_file():
                own_includes(candidate, seen)
                break
    return seen


def key_of(name, command, common):
    digest = hashlib.sha256(common)
    # The checkout's and the build's place do not matter, so that a fresh clone finds what another one has checked.
    digest.update(re.sub(r"\S*/", "", command).encode())
    for included in sorted(own_includes(name, set())):
        digest.update(included.encode() + b"\0" + (ROOT / included).read_bytes())
    return digest.hexdigest()


def changed_files():
    base = subprocess.run(["git", "merge-base", "HEAD", "main"], cwd=ROOT, capture_output=True, text=True, check=False)
    since = base.stdout.strip() or "HEAD"
    listed = subprocess.run(["git", "diff", "--name-only", since], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(listed.stdout.split())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("--seconds", type=float, default=3600, help="time budget (default %(default)s)")
    options = parser.parse_args()
    commands = read_commands(options.build)
    names = sorted(commands)
    if options.files:
        wanted = {str(Path(f).resolve().relative_to(ROOT)) for f in options.files}
        if wanted - set(names):
            sys.exit(f"tidy-check: not compiled in {options.build}: {', '.join(sorted(wanted - set(names)))}")
        names = sorted(wanted)
    if options.changed:
        changed = changed_files()
        names = [n for n in names if own_includes(n, set()) & changed]

    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    common = version + (ROOT / ".clang-tidy").read_bytes()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "diomp-checks"
    cache.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + options.seconds

    def run(name):
        mark = cache / key_of(name, commands[name], common)
        if mark.exists():
            return "known", ""
        left = deadline - time.monotonic()
        if left <= 0:
            return "late", f"{name}: not looked at, the time is up\n"
        try:
            done = subprocess.run([TIDY, "--quiet", "-p", str(options.build), str(ROOT / name)],
                                  cwd=ROOT, capture_output=True, text=True, timeout=left, check=False)
        except subprocess.TimeoutExpired:
            return "late", f"{name}: not finished, the time is up\n"
        if done.returncode == 0:
            mark.touch()
            return "clean", ""
        return "bad", done.stdout or done.stderr

    # The largest first, so that no core is left alone with a long one at the end.
    names.sort(key=lambda n: -(ROOT / n).stat().st_size)
    printed = set()
    counts = {"known": 0, "clean": 0, "bad": 0, "late": 0}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for verdict, text in pool.map(run, names):
            counts[verdict] += 1
            # A finding in a header comes once from each file that includes it.
            for finding in re.split(r"\n(?=\S+:\d+:\d+: (?:error|warning))", text):
                if finding and finding not in printed:
                    printed.add(finding)
                    print(finding, flush=True)
    print(f"tidy: {len(names)} files: {counts['clean']} clean, {counts['known']} clean before, "
          f"{counts['bad']} with findings, {counts['late']} out of time")
    return 1 if counts["bad"] or counts["late"] else 0


if __name__ == "__main__":
    sys.exit(main())
