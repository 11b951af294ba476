# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the checks of sources share: which files there are, and where comments and strings lie in C++."""
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# A comment, a string or a character of C++.
COMMENT_OR_STRING = r'//[^\n]*|/\*.*?\*/|R"([^\s()\\]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''


def tracked(*patterns):
    """Files below these paths (default: all) that git knows or would add."""
    names = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns],
                           cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\n")
    return sorted(name for name in names if name and (ROOT / name).is_file())


def compiled(*alternatives):
    """One pattern of COMMENT_OR_STRING and `alternatives`, over several lines."""
    return re.compile("|".join((COMMENT_OR_STRING, *alternatives)), re.DOTALL)
