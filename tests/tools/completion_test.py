#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What bash, zsh and fish complete: every option that a tool's --help has, values, subcommands, the program's own words.

    completion_test.py BIN_DIR COMPLETION_DIR SHELL [unittest arguments]
Ends with 77 where the shell is not installed.
"""
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

BIN, SCRIPTS, SHELL = (os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3])
TOOLS = [tool for tool in ("diomp-run", "diomp-info", "diomp-bench", "diomp-deviced", "diomp-trace", "diompcc", "diompcxx", "diompfc")
         if os.path.exists(os.path.join(BIN, tool))]
LIMIT_S = 30


def environment(folder):
    return {"PATH": f"{BIN}:/usr/bin:/bin:/usr/sbin", "HOME": folder, "TERM": "dumb", "LC_ALL": "C.UTF-8"}


class bash:
    """What _diomp leaves in COMPREPLY."""

    def __init__(self, folder):
        self.folder = folder

    def complete(self, line):
        script = f"""
            source {SCRIPTS}/diomp.bash
            COMP_LINE=$1 COMP_POINT=${{#1}}
            [[ $(complete -p {os.path.basename(line.split()[0])}) == *" -F _diomp "* ]] || exit 1
            _diomp {line.split()[0]}
            printf '%s\\n' "${{COMPREPLY[@]}}" """
        asked = subprocess.run(["bash", "-c", script, "bash", line], cwd=self.folder, env=environment(self.folder),
                               capture_output=True, text=True, timeout=LIMIT_S, check=True)
        assert asked.stderr == "", asked.stderr
        found = set(asked.stdout.split("\n")) - {""}
        # As readline puts it behind what is left of the last colon.
        stem = line.split(" ")[-1]
        return {stem[:stem.rindex(":") + 1] + each for each in found} if ":" in stem else found

    def close(self):
        pass


class fish:
    def __init__(self, folder):
        self.folder = folder

    def complete(self, line):
        # From an installed prefix, where each tool has a file under its own name.
        script = f"set -p fish_complete_path {SCRIPTS}/fish; complete -C $argv[1]"
        asked = subprocess.run(["fish", "--no-config", "-c", script, line], cwd=self.folder,
                               env=environment(self.folder), capture_output=True, text=True, timeout=LIMIT_S, check=True)
        assert asked.stderr == "", asked.stderr
        return {each.split("\t")[0] for each in asked.stdout.split("\n")} - {""}

    def close(self):
        pass


class zsh:
    """A zsh with a terminal; compadd also writes what it gets to a file."""
    START = r"""
PS1='' PS2='' RPS1='' fpath=({scripts} $fpath)
autoload -Uz compinit && compinit -D -u
compadd () {{
    if [[ ${{@[1,(i)(-|--)]}} != *-(O|A|D)\ * ]]; then
        typeset -a hits
        builtin compadd -A hits "$@"
        print -rl -- $hits >>{folder}/found
    fi
    builtin compadd "$@"
}}
finished () {{ compstate[list]='' compstate[insert]=''; touch {folder}/done }}
complete_line () {{ BUFFER=$(<{folder}/line); CURSOR=$#BUFFER; comppostfuncs=(finished); zle complete-word; BUFFER= }}
zle -N complete_line; bindkey '^X^X' complete_line
touch {folder}/ready
"""

    def __init__(self, folder):
        self.folder = folder
        with open(f"{folder}/start", "w", encoding="utf-8") as file:
            file.write(self.START.format(scripts=SCRIPTS, folder=folder))
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            os.execvpe("zsh", ["zsh", "-f", "-i"], environment(folder))
        self.type(f". {folder}/start\n")
        self.wait_for("ready")

    def type(self, text):
        os.write(self.terminal, text.encode())

    def wait_for(self, name):
        """Reads the terminal until zsh has made this file."""
        path, end, shown = f"{self.folder}/{name}", time.monotonic() + LIMIT_S, b""
        while not os.path.exists(path):
            if select.select([self.terminal], [], [], 0.02)[0]:
                shown += os.read(self.terminal, 4096)
            if time.monotonic() > end:
                raise RuntimeError(f"zsh does not answer: {shown!r}")
        os.remove(path)

    def complete(self, line):
        with open(f"{self.folder}/line", "w", encoding="utf-8") as file:
            file.write(line)
        self.type("\x18\x18")
        self.wait_for("done")
        try:
            with open(f"{self.folder}/found", encoding="utf-8") as file:
                found = set(file.read().split("\n")) - {""}
            os.remove(f"{self.folder}/found")
        except FileNotFoundError:
            return set()
        return {each.replace("\\:", ":") for each in found}

    def close(self):
        os.close(self.terminal)
        os.waitpid(self.process, 0)


def options_of_help(tool):
    text = subprocess.run([os.path.join(BIN, tool), "--help"], capture_output=True, text=True, timeout=LIMIT_S,
                          check=True).stdout
    return {name for names in re.findall(r"^  (-\S+)", text, re.M) for name in names.split(",")}


class completion_test(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        for name in ("input.dat", "my_program"):
            with open(f"{cls.folder.name}/{name}", "w", encoding="utf-8"):
                os.chmod(f"{cls.folder.name}/{name}", 0o755)
        cls.shell = {"bash": bash, "zsh": zsh, "fish": fish}[SHELL](cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.shell.close()
        cls.folder.cleanup()

    def complete(self, line):
        return self.shell.complete(line)

    def test_every_option_of_help(self):
        for tool in TOOLS:
            options = options_of_help(tool)
            self.assertIn("--help", options, tool)
            self.assertLessEqual(options, self.complete(f"{tool} -"), tool)
            long = {name for name in options if name.startswith("--")}
            self.assertLessEqual(long, self.complete(f"{tool} --"), tool)

    def test_only_what_begins_so(self):
        self.assertEqual(self.complete("diomp-run --out"), {"--output-dir"})
        self.assertEqual(self.complete("diomp-run --zzz"), set())
        self.assertLessEqual({"--showme:compile", "--showme:link"}, self.complete("diompcc --showme:"))

    def test_words_for_values(self):
        self.assertEqual(self.complete("diomp-run -n 2 --bind-to "), {"core", "none"})
        self.assertEqual(self.complete("diomp-run --bind-to c"), {"core"})
        self.assertIn("core", " ".join(self.complete("diomp-run --bind-to=c")))
        self.assertIn("core", self.complete(f"{BIN}/diomp-run --bind-to c"))
        self.assertLessEqual({"off", "available", "required"}, self.complete("diomp-deviced --confine "))
        self.assertIn("DIOMP_SEGMENT_SIZE", self.complete("diomp-run -x DIOMP_SEG"))
        self.assertIn("HOME", self.complete("diomp-run -n 2 -x HO"))

    def test_subcommands(self):
        found = self.complete("diomp-bench ")
        self.assertLessEqual({"put", "allreduce", "startup"}, found)
        self.assertEqual(self.complete("diomp-bench --repeat 3 allr"), {"allreduce"})

    def test_program_of_diomp_run(self):
        if SHELL != "bash":  # where readline completes files
            self.assertIn("my_program", " ".join(self.complete("diomp-run -n 2 ./my")))
            self.assertIn("input.dat", self.complete("diomp-run -n 2 ./my_program inp"))
            self.assertIn("input.dat", self.complete("diomp-run --hostfile inp"))
            self.assertIn("input.dat", " ".join(self.complete("diomp-run --hostfile=inp")))
        self.assertIn("my_program", self.complete("diomp-run -n 2 my_prog"))
        self.assertIn("sort", self.complete("diomp-run -n 2 sor"))
        for line in ("diomp-run -n 2 ./my_program --ti", "diomp-run -n 2 -- ./my_program --ti", "diomp-run ./x -n --ti"):
            self.assertNotIn("--timeout", self.complete(line), line)
        self.assertIn("--timeout", self.complete("diomp-run -n 2 -x A=1 --ti"))

    def test_options_of_diompcc_come_first(self):
        self.assertIn("--showme", self.complete("diompcc --dpu --sh"))
        self.assertNotIn("--showme", self.complete("diompcc -O2 --sh"))
        self.assertNotIn("--showme", self.complete("diompcc a.c --sh"))


if __name__ == "__main__":
    if shutil.which(SHELL) is None:
        print(f"{SHELL} is not installed")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
