#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles every example of one page, and runs its programs often enough to see a race.

    examples_test.py PAGE      with what DIOMP_TEST_BIN names; a page without examples is an error
    examples_test.py --rules   of the pages and of this test

Programs run beside a busy process on each core, so that ranks are taken off their core at any place.
"""
import glob
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import unittest

import examples

SOURCE = os.environ["DIOMP_TEST_SOURCE"]
BIN = os.environ["DIOMP_TEST_BIN"]
RUNS = int(os.environ.get("DIOMP_TEST_RUNS", "8"))
LIMIT_S = 60
COMPILE_LIMIT_S = 300
# An example is short of what its surroundings would do; clang takes the handle of detach() for a value that is read.
QUIET = ["-Wno-unused-parameter", "-Wno-unused-variable", "-Wno-uninitialized", "-Wno-unused-command-line-argument"]
COMPILERS = {"c": ["diompcc", "-Wall", "-Wextra", "-Werror", *QUIET],
             "cpp": ["diompcxx", "-std=c++20", "-Wall", "-Wextra", "-Werror", *QUIET],
             "f90": ["diompfc", "-Wall", "-Wextra", "-Werror"]}
# Ends with its parent, however that ends.
BUSY = "import os\nparent = {}\nwhile os.getppid() == parent:\n    for _ in range(100000):\n        pass\n"


class busy_machine:
    """A process on each core that never sleeps."""

    def __enter__(self):
        self.processes = [subprocess.Popen([sys.executable, "-c", BUSY.format(os.getpid())])
                          for _ in os.sched_getaffinity(0)]

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


def has_regions(which):
    return which.kind == "program" and "#pragma omp target" in which.source


def compile_example(which, directory):
    """The program's path; that of a fragment or of declarations does not exist. AssertionError with what the compiler says."""
    name = which.where.replace("/", "_").replace(":", "_")
    source = os.path.join(directory, f"{name}.{which.suffix}")
    with open(source, "w") as file:
        file.write(which.source)
    compiler, *options = COMPILERS[which.suffix]
    command = [os.path.join(BIN, compiler), *options]
    environment = dict(os.environ)
    if uses_mpi(which):  # MPI's wrapper knows where its header is
        environment.update(OMPI_CC=" ".join(command), MPICH_CC=" ".join(command))
        command = [os.environ["DIOMP_TEST_MPICC"]]
    if has_regions(which):
        command += [f"-fopenmp-targets={platform.machine()}-pc-linux-gnu"]
    program = os.path.join(directory, name)
    command += ["-O2", source, "-o", program] if which.kind == "program" else ["-fsyntax-only", source]
    done = subprocess.run(command, text=True, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, cwd=directory,
                          env=environment, timeout=COMPILE_LIMIT_S, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{which.where} does not compile:\n{done.stdout}")
    return program


def uses_mpi(which):
    return "<mpi.h>" in which.source


def launcher(which, ranks):
    """The words before the program. A program that uses MPI needs a launcher that MPI knows."""
    if uses_mpi(which):
        return [os.environ["DIOMP_TEST_MPIRUN"], "-n", str(ranks), "--oversubscribe", "--bind-to", "none", "--timeout",
                str(LIMIT_S)]
    devices = ["--remote-devices", f"localhost:{ranks}"] if which.is_remote else []
    return [os.path.join(BIN, "diomp-run"), "-n", str(ranks), "--bind-to", "none", "--timeout", str(LIMIT_S), *devices]


def run_program(which, program, runs):
    """AssertionError if any run says something else than the page."""
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if which.is_remote:
        environment["DIOMP_LOCAL_DEVICES"] = "off"
    for ranks, expected in which.prints.items():
        wrong = {}
        for _ in range(runs):
            done = subprocess.run([*launcher(which, ranks), program], env=environment, text=True, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=2 * LIMIT_S, check=False)
            if (done.returncode, done.stdout, done.stderr) != (0, expected, ""):
                said = f"status {done.returncode}: {done.stdout}{done.stderr}"
                wrong[said] = wrong.get(said, 0) + 1
        if wrong:
            said = "".join(f"{count} times {text}" for text, count in wrong.items())
            raise AssertionError(f"{which.where}: {sum(wrong.values())} of {runs} runs with {ranks} ranks are wrong; "
                                 f"the page says: {expected}{said}")


def try_page(page, text, runs=RUNS):
    """Prints a line for each example. AssertionError or page_error if one is not as it should be, or if there is none."""
    found = examples.parse(page, text)
    if not found:
        raise AssertionError(f"{page} has no examples")
    with tempfile.TemporaryDirectory() as directory:
        programs = []
        for which in found:
            needed = ["DIOMP_TEST_MPICC"] + ["DIOMP_TEST_MPIRUN"] * (which.kind == "program")
            if uses_mpi(which) and not all(map(os.environ.get, needed)):
                print(f"{which.where}: SKIPPED, no MPI here that starts DiOMP's ranks too")
                continue
            if has_regions(which) and not os.path.exists(os.path.join(BIN, "../lib/diomp/libomptarget.so")):
                print(f"{which.where}: SKIPPED, no libomptarget here")
                continue
            programs.append((which, compile_example(which, directory)))
            print(f"{which.where}: {which.kind}, compiles", flush=True)
        with busy_machine():
            for which, program in programs:
                if which.kind == "program":
                    run_program(which, program, runs)
                    print(f"{which.where}: {runs} runs are right", flush=True)


def text_of(page):
    with open(os.path.join(SOURCE, page)) as file:
        return file.read()


def pages_with_code():
    """Of the whole tree, by the fences alone."""
    paths = ["README.md", *glob.glob("docs/*.md", root_dir=SOURCE), *glob.glob("examples/*.md", root_dir=SOURCE)]
    fences = tuple(f"```{language}\n" for language in examples.LANGUAGES)
    return {path for path in paths if any(line in fences for line in text_of(path).splitlines(keepends=True))}


PROGRAM = """\
<!-- example program
prints 2: {}
prints 4: 4
-->
```c
#include <diomp.h>
#include <stdio.h>
int main(void) {{
    if (ompx_rank_num() == 0)
        printf("%d\\n", ompx_num_ranks());
}}
```
"""


class rules(unittest.TestCase):
    def test_every_page_with_code_is_tested(self):
        self.assertEqual(pages_with_code(), set(os.environ["DIOMP_TEST_PAGES"].split(",")))
        self.assertGreaterEqual(len(pages_with_code()), 8)

    def test_pages_have_the_programs_that_readers_start_from(self):
        def programs(page):
            return [each for each in examples.parse(page, text_of(page)) if each.kind == "program"]
        self.assertEqual(len(programs("README.md")), 1)
        self.assertGreaterEqual(len(programs("docs/tutorial.md")), 4)
        self.assertGreaterEqual(len(programs("docs/cpp.md")), 1)
        self.assertGreaterEqual(len(programs("docs/fortran.md")), 1)

    def test_right_program(self):
        try_page("page", PROGRAM.format("2"), runs=2)

    def test_wrong_number(self):
        with self.assertRaisesRegex(AssertionError, r"page:5: 2 of 2 runs with 2 ranks are wrong; the page says: 3\n"
                                                    r"2 times status 0: 2\n"):
            try_page("page", PROGRAM.format("3"), runs=2)

    def test_program_that_does_not_compile(self):
        with self.assertRaisesRegex(AssertionError, "page:5 does not compile"):
            try_page("page", PROGRAM.format("2").replace("printf", "print"))

    def test_fragment_that_does_not_compile(self):
        fragment = "<!-- example fragment\nvoid f(void) {\n@\n}\n-->\n```c\nompx_bar();\n```\n"
        with self.assertRaisesRegex(AssertionError, "page:6 does not compile"):
            try_page("page", fragment)
        try_page("page", fragment.replace("bar", "barrier"))

    def test_example_without_a_kind(self):
        for text in ("```c\nint i;\n```\n", "<!-- example fragment\n@\n-->\nA word.\n```c\nint i;\n```\n",
                     PROGRAM.format("2") + "```c\nint i;\n```\n"):
            with self.assertRaisesRegex(examples.page_error, "without a kind"):
                examples.parse("page", text)

    def test_program_without_its_output(self):
        with self.assertRaisesRegex(examples.page_error, "on 2 and on 4 ranks"):
            examples.parse("page", PROGRAM.format("2").replace("prints 4", "print 4"))

    def test_page_without_examples(self):
        with self.assertRaisesRegex(AssertionError, "has no examples"):
            try_page("page", "```sh\nls\n```\n")


def main():
    if sys.argv[1] == "--rules":
        unittest.main(argv=sys.argv[:1])
    if not shutil.which(os.path.join(BIN, "diompfc")):
        COMPILERS.pop("f90")
    page = sys.argv[1]
    text = text_of(page)
    if "```fortran\n" in text and "f90" not in COMPILERS:
        print("no Fortran module in this build")
        sys.exit(77)
    try:
        try_page(page, text)
    except (AssertionError, examples.page_error) as failure:
        sys.exit(f"FAILED: {failure}")


if __name__ == "__main__":
    main()
