#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the manual pages of section 3 from the comments in include/diomp.h and what it includes from include/diomp/.

    scripts/api-man.py FOLDER     writes FOLDER/ompx_put.3 and so on, and FOLDER/diomp.3 with the conventions

Functions that share a comment share a page, with a reference to it under each name.
"""
import importlib.util
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
FUNCTION = re.compile(r"\b(ompx_\w*[^_\W])\(")
# The forms with a variable number of arguments, which are macros in C.
FORM = re.compile(r"^#define (ompx_\w+)\(\.\.\.\) (ompx_\w+)\(", re.M)
SUMMARY_COLUMNS = 110
RELATED = 12


def reference():
    """scripts/api-reference.py, which knows how to read the headers."""
    spec = importlib.util.spec_from_file_location("api_reference", HERE / "api-reference.py")
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(module)
    return module


@dataclass
class manual_page:
    section: str
    comment: str
    declarations: list = field(default_factory=list)
    names: list = field(default_factory=list)
    notes: list = field(default_factory=list)

    def add(self, declaration):
        self.declarations.append(declaration)
        self.names += [name for name in names_of(declaration) if name not in self.names]


def names_of(declaration):
    """Functions that a declaration declares; none for types and constants."""
    if declaration.startswith(("typedef", "enum")):
        return []
    if match := re.match(r"#define (ompx_\w+)\(", declaration):
        return [match[1]]
    # The name is what the first parenthesis follows.
    return [match[1] for line in declaration.split("\n") if (match := FUNCTION.search(line))]


def pages_of(header, body):
    """A declaration without a comment belongs to the one before it, or to the note of its section. A function's earlier name
    is no place to belong to, and the forms of ompx_atomic_fetch() belong to that."""
    pages, section, notes, open_page = [], "", [], None
    for kind, *rest in header.parse(body):
        if kind == "section":
            section, notes, open_page = rest[0], [], None
        elif kind == "note":
            notes, open_page = [*notes, rest[0]], None
        else:
            comment, declaration = rest
            if not comment and "\nint ompx_atomic_fetch_" in declaration:
                next(page for page in pages if "ompx_atomic_fetch" in page.names).add(declaration)
                continue
            page = open_page
            if comment or page is None:
                page = manual_page(section, comment or (notes[-1] if notes else ""), notes=notes if comment else notes[:-1])
                pages.append(page)
            page.add(declaration)
            if not comment.startswith("Earlier name of"):
                open_page = page
    return [page for page in pages if page.names]


def plain(text):
    """Text that troff prints as it is."""
    return re.sub(r"^(?=[.'])", r"\\&", text.replace("\\", r"\e").replace("-", r"\-"), flags=re.M)


def marked(text, own):
    """A paragraph: functions with their section, arguments in italics."""
    text = plain(text)
    text = re.sub(r"\b(ompx_\w*[^_\W])\(\)", lambda found: found[1] if found[1] in own else rf"\fB{found[1]}\fR(3)", text)
    return re.sub(r"`([^`\n]*)`", r"\\fI\1\\fR", text)


def description(comment, own):
    out = []
    for line in re.sub(r"\n{3,}", "\n\n", comment.strip("\n")).split("\n"):
        if not line.strip():
            out.append(".PP")
        elif match := re.match(r"\s*(- |\(\d+\) )(.*)", line):
            if out[-1:] == [".PP"]:
                out.pop()
            out += [rf'.IP "{plain(match[1].strip())}" 4' if match[1] != "- " else r".IP \(bu 2", marked(match[2], own)]
        else:
            out.append(marked(line.strip(), own))
    return "\n".join(out)


def summary(comment):
    """The first sentence, for the line by which apropos finds the page."""
    text = re.sub(r"\s+", " ", comment.replace("`", "")).strip()
    sentence = re.split(r"(?<!fig)(?<=[^.]{3})[.;](?: |$)|(?<=.{50}):(?: |$)", text)[0]
    if len(sentence) > SUMMARY_COLUMNS:
        sentence = sentence[:SUMMARY_COLUMNS].rsplit(" ", 1)[0].rstrip(",") + " ..."
    if not re.match(r"[A-Z][A-Z_0-9]|DiOMP|OpenMP", sentence):
        sentence = sentence[:1].lower() + sentence[1:]
    return sentence


def related_names(page, pages):
    """The pages nearest to this one in its section, in the order of the header."""
    same = [each for each in pages if each.section == page.section]
    place = same.index(page)
    nearest = sorted((each for each in same if each is not page), key=lambda each: abs(same.index(each) - place))[:RELATED]
    return [each.names[0] for each in same if each in nearest]


def text_of(page, pages):
    see_also = ["diomp", *related_names(page, pages)]
    own = set(page.names)
    return "\n".join([
        r'.\" SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception',
        r'.\" Made by scripts/api-man.py from include/diomp.h; change the header.',
        f'.TH {plain(page.names[0].upper())} 3 "" "DiOMP" "DiOMP Programmer\'s Manual"',
        ".SH NAME", plain(", ".join(page.names)) + r" \- " + plain(summary(page.comment)),
        ".SH SYNOPSIS", ".nf", ".B #include <diomp.h>", ".PP", *(plain(each) for each in page.declarations), ".fi",
        ".SH DESCRIPTION", description(page.comment, own),
        ".PP", "Return values, errors, threads and the names of remote locations, unless this page differs:",
        ".BR diomp (3).",
        *([".SH NOTES", "\n.PP\n".join(description(note, own) for note in page.notes)] if page.notes else []),
        ".SH SEE ALSO", ",\n".join(rf".BR {plain(name)} (3)" for name in see_also)]) + "\n"


def conventions(head, pages):
    title, _, rest = head.partition("\n")
    sections = []
    for section in dict.fromkeys(page.section for page in pages):
        names = ", ".join(rf"\fB{plain(name)}\fR(3)" for page in pages if page.section == section for name in page.names[:1])
        sections += [".TP", plain(section), names]
    return "\n".join([
        r'.\" SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception',
        r'.\" Made by scripts/api-man.py from include/diomp.h; change the header.',
        '.TH DIOMP 3 "" "DiOMP" "DiOMP Programmer\'s Manual"',
        ".SH NAME", r"diomp \- conventions and contents of DiOMP's C interface",
        ".SH SYNOPSIS", ".B #include <diomp.h>", ".PP", r"diompcc \fIfile\fR...", ".SH DESCRIPTION", description(title, set()),
        ".PP", description(rest.strip(), set()), ".SH FUNCTIONS", *sections,
        ".SH SEE ALSO", ".BR diomp (7),", ".BR diompcc (1),", ".BR diomp\\-run (1)"]) + "\n"


def write_pages(folder):
    header = reference()
    source = header.whole_header()
    head = header.comment_text(re.search(r"/\*\*\n \* @file diomp\.h\n(.*?)\*/", source, re.S)[1].split("\n"))
    pages = pages_of(header, source[source.index("/* ---- Status"):])
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.3"):
        old.unlink()
    for form, function in FORM.findall(source):
        for page in pages:
            if function in page.names and form not in page.names:
                page.names.insert(0, form)
    for page in pages:
        (folder / f"{page.names[0]}.3").write_text(text_of(page, pages), encoding="utf-8")
    for page in pages:
        for name in page.names[1:]:
            alias = folder / f"{name}.3"
            if not alias.exists():
                alias.write_text(f".so man3/{page.names[0]}.3\n", encoding="utf-8")
    (folder / "diomp.3").write_text(conventions(head, pages), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: api-man.py FOLDER")
    write_pages(Path(sys.argv[1]))
