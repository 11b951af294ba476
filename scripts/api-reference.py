#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes docs/api.md from the comments in include/diomp.h and what it includes from include/diomp/.

    scripts/api-reference.py           writes the page
    scripts/api-reference.py --check   exits 1 if the page is not what the header says
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = ROOT / "include/diomp.h"
PAGE = ROOT / "docs/api.md"
ORDER = ("status", "types", "process", "memory", "transfer", "atomic", "group", "nonblocking", "wait", "sync", "lock", "channel", "cart",
         "collective", "device", "target", "target_collective", "plan")

SECTION = re.compile(r"^/\* ---- (.*?) ---- \*/$")


def comment_text(lines):
    """The words of a comment, its line breaks kept."""
    text = []
    for line in lines:
        line = re.sub(r"^\s*(/\*\*?<?|\*/|\*)\s?", "", line)
        text.append(re.sub(r"\s*\*/\s*$", "", line).rstrip())
    return "\n".join(text).strip()


def declaration(text):
    """One declaration as a reader wants it: without attributes, on one line unless it has a body."""
    text = re.sub(r"OMPX_API_\s*|\s*OMPX_NOEXCEPT_|__attribute__\(\(\w+\)\)\s*", "", text)
    if "{" in text:
        return text
    return re.sub(r"\s+", " ", text).strip()


def parse(source):
    """Yields ("section", title), ("note", text), ("entry", comment, [declarations])."""
    lines = source.split("\n")
    comment, i = "", 0
    while i < len(lines):
        line = lines[i]
        if match := SECTION.match(line):
            yield ("section", match.group(1))
            comment = ""
        elif line.startswith(("/**", "/*")):
            start = i
            while "*/" not in lines[i]:
                i += 1
            text = comment_text(lines[start : i + 1])
            if line.startswith("/**"):
                comment = text
            elif start > 0 and not text.startswith("SPDX") and len(text) > 80:
                yield ("note", text)
        elif re.match(r"#define \w*[^_\W](?=[( ])(?!\(\.\.\.)", line):
            yield ("entry", comment, re.sub(r"\s+", " ", line))
            comment = ""
        elif line.startswith("static inline "):
            start = i
            while "{" not in lines[i]:
                i += 1
            head = "\n".join(lines[start : i + 1]).removeprefix("static inline ").split("{")[0]
            yield ("entry", comment, declaration(head) + ";")
            comment = ""
        elif re.match(r"^(OMPX_API_|typedef |enum \{)", line):
            start, depth = i, 0
            while True:
                depth += lines[i].count("{") - lines[i].count("}")
                if lines[i].split("/**<")[0].rstrip().endswith(";") and depth == 0:
                    break
                i += 1
            block = "\n".join(lines[start : i + 1])
            trailing = re.search(r"; /\*\*< (.*?) \*/", lines[i])
            if trailing and "{" not in block:
                comment = (comment + "\n" + trailing.group(1)).strip()
                block = re.sub(r" /\*\*<.*?\*/", "", block)
            if not re.search(r"_\(", declaration(block)):  # names that end so are for the header itself
                yield ("entry", comment, declaration(block))
            comment = ""
        elif line.startswith("OMPX_ATOMIC_FORM_("):
            name = line[len("OMPX_ATOMIC_FORM_(") :].split(",")[0]
            yield ("entry", comment, f"int ompx_atomic_{name}(int rank, void *target, const void *operand, ompx_type_t type);\n"
                   f"int ompx_atomic_fetch_{name}(int rank, void *target, const void *operand, void *result, ompx_type_t type);")
            comment = ""
        i += 1


def whole_header():
    """diomp.h with the headers that it includes, in the order of the page."""
    text = HEADER.read_text()
    included = re.findall(r'^#include "diomp/(\w+)\.h"$', text, flags=re.M)
    assert sorted(included) == sorted(ORDER), "diomp.h includes other headers than ORDER has"
    parts = "\n".join((ROOT / f"include/diomp/{name}.h").read_text() for name in ORDER)
    first = text.index('#include "diomp/')
    return text[:first] + parts + text[first:]


def missing(source, made):
    """Names that the header gives to programs and the page does not have."""
    code = re.sub(r"/\*.*?\*/", "", source, flags=re.S)
    return sorted(set(re.findall(r"\b(?:ompx|OMPX)_\w*[^_\W]\b", code)) - set(re.findall(r"\w+", made)))


def page(source):
    head = comment_text(re.search(r"/\*\*\n \* @file diomp\.h\n(.*?)\*/", source, re.S).group(1).split("\n"))
    out = ["<!-- SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception -->",
           "<!-- Made by scripts/api-reference.py from include/diomp.h; change the header. -->",
           "<!-- example declarations", "#include <omp.h>", "#include <stddef.h>", "#include <stdint.h>", "-->",
           "# C interface", "", head, ""]
    pending = []

    def flush():
        if pending:
            out.extend(["```c", *pending, "```", ""])
            pending.clear()

    body = source[source.index("/* ---- Status"):]
    for item in parse(body):
        if item[0] == "section":
            flush()
            out.extend([f"## {item[1]}", ""])
        elif item[0] == "note":
            flush()
            out.extend(["```text", item[1], "```", ""])
        else:
            if item[1]:
                flush()
                out.extend([item[1], ""])
            pending.append(item[2])
    flush()
    return "\n".join(out).rstrip() + "\n"


def main():
    source = whole_header()
    made = page(source)
    if lost := missing(source, made):
        print(f"docs/api.md does not show {', '.join(lost)}: scripts/api-reference.py does not see them", file=sys.stderr)
        return 1
    if "--check" in sys.argv[1:]:
        if not PAGE.exists() or PAGE.read_text() != made:
            print("docs/api.md is not what include/diomp.h says: run scripts/api-reference.py", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
