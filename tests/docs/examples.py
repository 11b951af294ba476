# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples of README.md and docs/*.md, as a comment in front of each says what they are.

A fenced block of C, C++ or Fortran comes right after an HTML comment, which renderers do not show:

    <!-- example program            a complete program; it prints this, and nothing else, on so many ranks
    prints 2: 2 ranks, sum 2
    prints 4: 4 ranks, sum 12
    -->

    A line "remote devices" in it gives each rank a remote device and no other.

    <!-- example fragment           part of a program; the example stands where the line "@" is
    void f(double *u, int n) {
    @
    }
    -->

A page whose blocks are together the declarations of one header has, once and before the first of them,

    <!-- example declarations       what has to come before them
    #include <stddef.h>
    -->
"""
import re
from dataclasses import dataclass, field

LANGUAGES = {"c": "c", "cpp": "cpp", "c++": "cpp", "fortran": "f90"}
KINDS = ("program", "fragment", "declarations")
TOKEN = re.compile(r"^<!-- example (?P<kind>\w+) *\n(?P<body>.*?)^-->\n|^```(?P<fence>\S+)\n(?P<text>.*?)^```$", re.M | re.S)
PRINTS = re.compile(r"prints (\d+): (.*)")
# What fragments need not say.
BEGINNING = {"c": "#include <diomp.h>\n", "cpp": "#include <diomp.hpp>\n", "f90": ""}


class page_error(Exception):
    """A page that does not keep to the rules above."""


@dataclass
class example:
    where: str  # page:line, of the block
    suffix: str
    kind: str
    source: str
    prints: dict = field(default_factory=dict)  # {ranks: text}
    is_remote: bool = False


def parse(page, text):
    """All examples of a page, in order; of declarations one, at the place of the first block."""
    found, kind, body, end = [], None, "", 0
    declarations = None
    for match in TOKEN.finditer(text):
        where = f"{page}:{text.count(chr(10), 0, match.start()) + 1}"
        if match["kind"]:
            kind, body, end = match["kind"], match["body"], match.end()
            if kind not in KINDS:
                raise page_error(f"{where}: '{kind}' is not a kind of example: {', '.join(KINDS)}")
            if kind == "declarations":
                declarations = example(where, "c", kind, body)
                found.append(declarations)
        elif match["fence"] in LANGUAGES:
            if declarations is not None:
                declarations.source += match["text"]
            elif kind is None or text[end : match.start()].strip():
                raise page_error(f"{where}: an example without a kind: put a comment before it (tests/docs/examples.py)")
            else:
                found.append(make(where, LANGUAGES[match["fence"]], kind, body, match["text"]))
            kind = None
    return found


def make(where, suffix, kind, body, code):
    if kind == "program":
        prints = {int(ranks): text + "\n" for ranks, text in PRINTS.findall(body)}
        if set(prints) != {2, 4}:
            raise page_error(f"{where}: a program says what it prints on 2 and on 4 ranks")
        return example(where, suffix, kind, code, prints, "remote devices\n" in body)
    before, at, after = ("\n" + body).partition("\n@\n")
    if not at:
        raise page_error(f"{where}: the comment of a fragment has a line '@' where the fragment stands")
    return example(where, suffix, kind, BEGINNING[suffix] + before + "\n" + code + after)
