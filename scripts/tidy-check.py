#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs clang-tidy, as .clang-tidy says, over the sources of src/ and tools/.

    scripts/tidy-check.py BUILD_DIR              every one in BUILD_DIR/compile_commands.json
    scripts/tidy-check.py BUILD_DIR FILE...      only these
    scripts/tidy-check.py BUILD_DIR --changed    only what differs from main, through headers too
    scripts/tidy-check.py BUILD_DIR --seconds 150
                                                 stop after so long; files that are left then are a failure

A build with -DDIOMP_BATCH=16 compiles 16 sources at once, and clang-tidy then reads their headers once instead of
16 times: a fifth of the time. FILE is then checked with the others of its batch.

What was clean is remembered, by the hash of its sources, of every header of ours that they include, of the command and of
.clang-tidy, in the user's cache directory. A run that passes its time budget (--seconds) says what is left, and fails;
what was clean by then stays remembered.
"""
import argparse
import concurrent.futures
import dataclasses
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
# Sources that a batch includes are looked at as headers are, and to include them is no mistake.
BATCH_OPTIONS = [r"--header-filter=(^|/)(src|include|tools|apps|bench)/.*\.(h|hpp|c|cpp)$",
                 "--checks=-bugprone-suspicious-include"]
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


@dataclasses.dataclass
class Unit:
    """One call of clang-tidy: a source, or a batch of them that CMake compiles as one."""

    file: Path
    command: str
    sources: list  # relative to ROOT

    def is_batch(self):
        return self.file.parent.name == "Unity"

    def name(self):
        return f"{self.sources[0]} and {len(self.sources) - 1} more" if self.sources[1:] else self.sources[0]


def read_units(build):
    """The units of the compilation database whose sources are ours."""
    path = build / "compile_commands.json"
    if not path.is_file():
        sys.exit(f"tidy-check: {path} is missing; configure the build first")
    units = {}
    for entry in json.loads(path.read_text(encoding="utf-8")):
        file = (Path(entry["directory"]) / entry["file"]).resolve()
        included = INCLUDE.findall(file.read_text(encoding="utf-8")) if file.parent.name == "Unity" else [str(file)]
        sources = [str(Path(s).relative_to(ROOT)) for s in included if Path(s).is_relative_to(ROOT)]
        # A source that several targets compile is checked once.
        sources = [s for s in sources if s.startswith(("src/", "tools/")) and s.endswith((".c", ".cpp"))]
        if sources:
            units.setdefault(tuple(sources), Unit(file, entry["command"], sources))
    return list(units.values())


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


def key_of(unit, common):
    digest = hashlib.sha256(common)
    # The checkout's and the build's place do not matter, so that a fresh clone finds what another one has checked.
    digest.update(re.sub(r"\S*/", "", unit.command).encode())
    for included in sorted(set().union(*(own_includes(s, set()) for s in unit.sources))):
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
    units = read_units(options.build)
    if options.files:
        wanted = {str(Path(f).resolve().relative_to(ROOT)) for f in options.files}
        missing = wanted - {s for u in units for s in u.sources}
        if missing:
            sys.exit(f"tidy-check: not compiled in {options.build}: {', '.join(sorted(missing))}")
        units = [u for u in units if wanted & set(u.sources)]
    if options.changed:
        changed = changed_files()
        units = [u for u in units if any(own_includes(s, set()) & changed for s in u.sources)]

    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    common = version + (ROOT / ".clang-tidy").read_bytes()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "diomp-checks"
    cache.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + options.seconds

    def run(unit):
        mark = cache / key_of(unit, common)
        if mark.exists():
            return "known", ""
        left = deadline - time.monotonic()
        if left <= 0:
            return "late", f"{unit.name()}: not looked at, the time is up\n"
        try:
            done = subprocess.run([TIDY, "--quiet", "-p", str(options.build), *(BATCH_OPTIONS * unit.is_batch()),
                                   str(unit.file)],
                                  cwd=ROOT, capture_output=True, text=True, timeout=left, check=False)
        except subprocess.TimeoutExpired:
            return "late", f"{unit.name()}: not finished, the time is up\n"
        if done.returncode == 0:
            mark.touch()
            return "clean", ""
        return "bad", done.stdout or done.stderr

    # The largest first, so that no core is left alone with a long one at the end.
    units.sort(key=lambda u: -sum((ROOT / s).stat().st_size for s in u.sources))
    printed = set()
    counts = {"known": 0, "clean": 0, "bad": 0, "late": 0}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for verdict, text in pool.map(run, units):
            counts[verdict] += 1
            # A finding in a header comes once from each file that includes it.
            for finding in re.split(r"\n(?=\S+:\d+:\d+: (?:error|warning))", text):
                if finding and finding not in printed:
                    printed.add(finding)
                    print(finding, flush=True)
    print(f"tidy: {sum(len(u.sources) for u in units)} files in {len(units)} units: {counts['clean']} clean, {counts['known']} clean before, "
          f"{counts['bad']} with findings, {counts['late']} out of time")
    return 1 if counts["bad"] or counts["late"] else 0


if __name__ == "__main__":
    sys.exit(main())
