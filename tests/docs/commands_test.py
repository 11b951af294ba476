#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A newcomer's walk: runs the commands of README.md, docs/install.md, docs/tutorial.md and docs/launch.md as they stand there.

    commands_test.py     with what DIOMP_TEST_SOURCE and DIOMP_TEST_BUILD name

This build is installed to a folder that stands for /opt/diomp. Every line of commands is in COMMANDS, in the order of the
page: with what it needs and must print, or with the reason why it is not run here. The batch scripts of docs/launch.md
and docs/slurm.md are run by hosts.batch.*, the programs in the pages by docs_examples.*.
"""
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from dataclasses import dataclass

import examples

SOURCE, BUILD = os.environ["DIOMP_TEST_SOURCE"], os.environ["DIOMP_TEST_BUILD"]
PREFIX = "/opt/diomp"
LIMIT_S = 120


@dataclass
class run:
    """A line that is run, in a shell that has read env.sh."""
    prints: str = ""  # a pattern in its output
    then: str = ""  # a further command, whose output is looked at, too
    needs: str = ""  # a program without which the line is not run


@dataclass
class elsewhere:
    """A line that is not run here."""
    why: str


OTHER_LAUNCHER = elsewhere("launch_under_*: needs that launcher, started as its system does")
BUILDS = elsewhere("builds the tree again; this test installs what has been built, and fresh_machine.ways_* runs the line")
SYSTEM = elsewhere("changes the system; in a new Debian: fresh_machine.demo_*, scripts/fresh-machine.sh check")
PACKAGES = elsewhere("changes the system; packages.bookworm does it in a new Debian")
SPACK = elsewhere("packages.spack asks Spack about the recipe where there is one; a build takes as long as all of DiOMP's")
CONTAINER = elsewhere("packages.container builds the image by buildah and runs the example in it")
MODULES = elsewhere("the test modulefile loads it, under Lmod or Environment Modules")
STEP = elsewhere("lines of a batch script, which hosts.batch.* runs")
EIGHT = r"sum of halos 12"

COMMANDS = {
    "README.md": {
        "make demo": SYSTEM,
        "make check": SYSTEM,
        "diompcc halo.c -o halo && diomp-run -n 4 ./halo": run(prints=EIGHT),
    },
    "docs/install.md": {
        "make demo": SYSTEM,
        "make check": SYSTEM,
        "make install PREFIX=/opt/diomp": BUILDS,
        "scripts/fetch-llvm.sh": BUILDS,
        "cmake --preset release -DCMAKE_INSTALL_PREFIX=/opt/diomp": BUILDS,
        "cmake --build --preset release": BUILDS,
        "cmake --install build/release": BUILDS,
        "make deb": PACKAGES,
        "apt-get install ./build/deb/*.deb": PACKAGES,
        "spack repo add contrib/spack": SPACK,
        "spack dev-build --source-path . diomp@main": SPACK,
        "spack load diomp": SPACK,
        "spack test run diomp": SPACK,
        "podman build -f contrib/container/Containerfile -t diomp .": CONTAINER,
        'podman run --rm -v "$PWD:/work" -w /work diomp sh -c "diompcc app.c -o app && diomp-run -n 4 ./app"': CONTAINER,
        "diomp-info --doctor": run(prints="A job can run here"),
        ". /opt/diomp/env.sh": run(then="command -v diomp-run", prints=r"/bin/diomp-run$"),
        "module use /opt/diomp/share/modulefiles": MODULES,
        "module load diomp": MODULES,
        "diompcc app.c -o app": run(then="diomp-run -n 4 ./app", prints=EIGHT),
        "cc -fopenmp app.c -o app $(pkg-config --cflags --libs diomp)":
            run(then="diomp-run -n 4 ./app", prints=EIGHT, needs="pkg-config"),
        "cc app.c -o app $(pkg-config --cflags --libs diomp)":
            run(then="diomp-run -n 2 ./app", prints="plain 2", needs="pkg-config"),
        "diompcc -fno-openmp app.c -o app": run(then="diomp-run -n 2 ./app", prints="plain 2"),
    },
    "docs/tutorial.md": {
        "diompcc -O3 rod.c -o rod": run(),
        "diomp-run -n 4 ./rod": run(prints=EIGHT),
    },
    "docs/launch.md": {
        "mpirun -n 4 ./app": OTHER_LAUNCHER,
        "srun --mpi=pmix -n 4 ./app": OTHER_LAUNCHER,
        "mpiexec.hydra -n 4 ./app": OTHER_LAUNCHER,
        "srun --mpi=pmi2 -n 4 ./app": OTHER_LAUNCHER,
        "bash gaspi_run -n 4 ./app": OTHER_LAUNCHER,
        "gaspi_run -m machines ./app": OTHER_LAUNCHER,
        "diomp-run --hosts a,b,c -n 12 ./app": run(prints="12 ranks"),
        "diomp-run --hosts a:2,b:4 ./app": run(prints="6 ranks"),
        "diomp-run --hostfile machines -n 64 ./app": run(prints="64 ranks"),
        """ssh -x -o BatchMode=yes HOST "exec '/path/of/diomp-run' --agent\"""":
            elsewhere("what diomp-run does, not what a user types"),
        'step="srun --nodes=1 --ntasks=1 --cpus-per-task=$SLURM_CPUS_ON_NODE --overlap --mpi=none --cpu-bind=none"': STEP,
        """export DIOMP_RSH="sh -c 'exec $step --nodelist=\\$0 sh -c \\"\\$1\\"'\"""": STEP,
        "ulimit -c unlimited": run(),
        "DIOMP_CORE=own diomp-run -n 4 ./app": run(prints=EIGHT),
    },
}
# Programs of install.md's second part must not need OpenMP.
PLAIN = """#include <diomp.h>
#include <stdio.h>
int main(void) {
    long *u = ompx_alloc(sizeof *u, 0, OMPX_MEM_SYMMETRIC);
    ompx_barrier();
    if (ompx_rank_num() == 0)
        printf("plain %d\\n", ompx_num_ranks());
    return ompx_free(u);
}
"""


def text_of(page):
    with open(os.path.join(SOURCE, page), encoding="utf-8") as file:
        return file.read()


def is_output(line):
    """What a program prints stands in the pages like what is typed; so do fragments of programs."""
    return re.match(r"(diomp: |outside of the|outside the world|return |  )", line) is not None


def commands_of(page):
    """The lines of the page's indented blocks, without the comments behind them."""
    found, fenced = [], False
    for line in text_of(page).splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and line.startswith("    ") and not is_output(line[4:]):
            found.append(re.sub(r"( {2,}#.*| {4,}.*| +same, and.*)$", "", line[4:]).strip())
    return found


class rules(unittest.TestCase):
    def test_every_command_is_known(self):
        for page, known in COMMANDS.items():
            self.assertEqual(commands_of(page), list(known), f"{page}: add the line to COMMANDS")


class walk(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.prefix = os.path.join(cls.folder.name, "opt", "diomp")
        subprocess.run(["cmake", "--install", BUILD, "--prefix", cls.prefix], check=True, stdout=subprocess.DEVNULL)
        cls.place = os.path.join(cls.folder.name, "walk")
        os.mkdir(cls.place)
        (example, *_) = [each for each in examples.parse("README.md", text_of("README.md")) if each.kind == "program"]
        for name in ("halo.c", "app.c", "rod.c"):
            cls.write(name, example.source)
        cls.write("machines", "a slots=32\nb slots=32\n")
        # A remote shell that stays here.
        cls.write("rsh", '#!/bin/sh\nshift\nexec sh -c "$*"\n')
        os.chmod(os.path.join(cls.place, "rsh"), 0o755)

    @classmethod
    def write(cls, name, text):
        with open(os.path.join(cls.place, name), "w", encoding="utf-8") as file:
            file.write(text)

    def shell(self, script, shell="bash"):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("DIOMP_") and name != "LD_LIBRARY_PATH"}
        environment.update(DIOMP_RSH=os.path.join(self.place, "rsh"), DIOMP_SEGMENT_SIZE="64M", OMP_NUM_THREADS="1")
        done = subprocess.run([shell, "-c", script], cwd=self.place, env=environment, text=True, timeout=LIMIT_S,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False)
        self.assertEqual(done.returncode, 0, f"{script}\n{done.stdout}")
        return done.stdout

    def walk(self, page, commands):
        for line, how in commands.items():
            if isinstance(how, elsewhere) or (how.needs and shutil.which(how.needs) is None):
                continue
            with self.subTest(line):
                words = [f". {self.prefix}/env.sh", line.replace(PREFIX, self.prefix), how.then]
                out = self.shell("\n".join(["set -e", *words]))
                self.assertRegex(out, re.compile(how.prints, re.M), page)

    def test_readme(self):
        self.walk("README.md", COMMANDS["README.md"])

    def test_install(self):
        lines = COMMANDS["docs/install.md"]
        plain = {line: how for line, how in lines.items() if "plain" in getattr(how, "prints", "")}
        self.walk("docs/install.md", {line: how for line, how in lines.items() if line not in plain})
        with open(os.path.join(self.place, "app.c"), encoding="utf-8") as file:
            before = file.read()
        self.write("app.c", PLAIN)
        self.walk("docs/install.md", plain)
        self.write("app.c", before)

    def test_tutorial(self):
        self.walk("docs/tutorial.md", COMMANDS["docs/tutorial.md"])

    def test_launch(self):
        self.shell(f". {self.prefix}/env.sh; diompcc app.c -o app")
        self.walk("docs/launch.md", COMMANDS["docs/launch.md"])

    def test_cmake(self):
        """The first block of CMake in install.md is enough for a project."""
        block = re.search(r"^```cmake\n(.*?)^```$", text_of("docs/install.md"), re.M | re.S)[1]
        self.write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.20)\nproject(app C)\nadd_executable(app halo.c)\n" + block)
        out = self.shell(f". {self.prefix}/env.sh; cmake -B made -DCMAKE_PREFIX_PATH={self.prefix} && cmake --build made && "
                         "diomp-run -n 4 made/app")
        self.assertRegex(out, EIGHT)

    def test_lines_for_start_up_files(self):
        """The table of install.md's section on completion."""
        rows = dict(re.findall(r"^\| (bash|zsh|fish) \| `([^`]+)`", text_of("docs/install.md"), re.M))
        self.assertEqual(sorted(rows), ["bash", "fish", "zsh"])
        asks = {"bash": "complete -p diomp-run", "zsh": "autoload -U compinit && compinit -u -d dump && print $_comps[diomp-run]",
                "fish": "complete -C 'diomp-run --bind'"}
        for shell, line in rows.items():
            if shutil.which(shell):
                with self.subTest(shell):
                    words = f"PATH={self.prefix}/bin:$PATH; " if shell != "fish" else f"set -p PATH {self.prefix}/bin; "
                    self.assertIn("diomp" if shell != "fish" else "--bind-to",
                                  self.shell(words + line.replace(PREFIX, self.prefix) + "\n" + asks[shell], shell))

    def test_manual_pages(self):
        if shutil.which("man") is None:
            self.skipTest("man is not installed")
        for page in ("diomp-run", "diompcc", "diomp-trace", "ompx_put", "diomp"):
            self.assertIn("opt/diomp/share/man", self.shell(f". {self.prefix}/env.sh; man -w {page}"))


if __name__ == "__main__":
    unittest.main()
