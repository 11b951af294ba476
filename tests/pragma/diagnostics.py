#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Wrong directives and what the compiler says about them, where.

    diagnostics.py SOURCE_DIR PLUGIN COMPILER     COMPILER is clang's name without ++

A case is some lines of a function. Each @ in them is taken out, and the next of the case's messages must be reported just
there. Nothing else may be reported.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from cases import CASES

MESSAGE = re.compile(r"^([^:]+):(\d+):(\d+): (warning|error|note): (.*)$")

BEFORE = """#include <diomp.h>
struct point { double x, y; };
void test(double *p, ompx_group_t g, int n, struct point *s, const double *fixed) {
    double a[10]; int i = 0; int b[10]; struct point t; %s yes = 0;
    (void)p; (void)g; (void)n; (void)s; (void)fixed; (void)a; (void)i; (void)b; (void)t; (void)yes;
"""
C_ONLY = "float _Complex z = 0; (void)z;\n"
# Takes a while to compile.
LIBRARY = "#include <string>\n#include <vector>\n"
CXX_ONLY = "std::vector<double> v; std::string text; (void)v; (void)text;\n"


def around(case, language):
    """The lines before a case's own."""
    if case.whole:
        return ""
    if language == "c":
        return BEFORE % "_Bool" + C_ONLY
    if case.languages == ("c++",):
        return LIBRARY + BEFORE % "bool" + CXX_ONLY
    return BEFORE % "bool"


def unmark(text):
    """The text without marks, and their places as (line, column), from 1."""
    places = []
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        while "@" in line:
            places.append((number, line.index("@") + 1))
            line = line.replace("@", "", 1)
        lines[number - 1] = line
    return "\n".join(lines), places


def accepted(message):
    """The beginnings that a message may have."""
    return message if isinstance(message, tuple) else (message,)


def compile_case(case, language, folder, command):
    suffix = ".c" if language == "c" else ".cpp"
    text = around(case, language) + case.text + ("" if case.whole else "\n}\n")
    text, places = unmark(text)
    path = folder / ("case" + suffix)
    path.write_text(text, encoding="utf-8")
    done = subprocess.run([*command, *case.options, path.name], cwd=folder, capture_output=True, text=True, check=False)
    said = []
    for line in done.stderr.split("\n"):
        match = MESSAGE.match(line)
        if match:
            said.append((match[1], int(match[2]), int(match[3]), f"{match[4]}: {match[5]}"))
    # Notes may point back; what is reported at one place keeps its order.
    said.sort(key=lambda message: message[1:3])
    wanted = [(path.name, *place, accepted(message)) for place, message in zip(places, case.messages, strict=True)]
    failed = any(accepted(message)[0].startswith("error") for message in case.messages)
    problems = []
    if len(said) != len(wanted) or any(
            s[:3] != w[:3] or not s[3].startswith(w[3]) for s, w in zip(said, wanted)):
        problems.append("wanted:\n" + "".join(f"  {w}\n" for w in wanted) + "got:\n" + "".join(f"  {s}\n" for s in said))
    if (done.returncode != 0) != failed or "PLEASE submit a bug report" in done.stderr:
        problems.append(f"exit status {done.returncode}\n{done.stderr}")
    return [f"FAILED: {case.name} ({language})\n{problem}" for problem in problems]


def main():
    source, plugin, compiler = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    only = sys.argv[4:]
    failures = 0
    count = 0
    with tempfile.TemporaryDirectory() as name:
        for case in CASES:
            if only and case.name not in only:
                continue
            for language in case.languages:
                program = compiler if language == "c" else re.sub(r"clang([^/]*)$", r"clang++\1", compiler)
                command = [program, f"-fplugin={plugin}", "-I", str(source / "include"), "-fsyntax-only", "-Wall", "-Wextra",
                           "-fno-caret-diagnostics", "-fno-color-diagnostics"]
                if case.openmp:
                    command.append("-fopenmp")
                if language == "c++":
                    command.append("-std=c++20")
                count += 1
                for problem in compile_case(case, language, Path(name), command):
                    failures += 1
                    print(problem)
    print(f"diagnostics: {count} compilations, {failures} failed")
    return 1 if failures or not count else 0


if __name__ == "__main__":
    sys.exit(main())
