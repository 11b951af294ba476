#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the structure of src/ and tools/, and fails where a measure is worse than its limit.

    scripts/house-check.py            one line per measure: value, limit, goal
    scripts/house-check.py --list     also what counts: the classes, the types, the comments

A limit is today's value where the goal has not been reached: lower it with each change that improves the measure.
The reader of C++ below is a scanner of braces and statements, not a compiler: it sees classes, their members and virtual
functions as they are written, without macros and templates' specialisations.
"""
import argparse
import collections
import re
import statistics
import sys

from source_text import ROOT, compiled, tracked

# measure: (limit, goal)
LIMITS = {
    "virtual calls of the largest interface below api": (13, 13),
    "classes with more than 25 functions": (0, 0),
    "classes with more than 12 data members": (0, 0),
    "types declared under one name in several modules": (19, 20),
    "project headers that a source sees, median": (15, 15),
    "project headers that a source sees, maximum": (50, 50),
    "doc comments that begin with a reference to another": (0, 0),
    "lines of src and tools": (108525, 67700),
}

# Large classes that stay as they are, and why: at most five.
LARGE = {
    "arena": "the geometry of one mapping, set once and read by every put: one object in one cache line pair",
    "segment": "two heaps and the table that other ranks read from shared memory; they are published together",
    "local_launcher": "one connection to diomp-run and what it has received",
}

COMMENT_OR_STRING = compiled()
TYPE = re.compile(r"\b(class|struct)\s+(?:\[\[[^\]]*\]\]\s*|alignas\([^)]*\)\s*)*([A-Za-z_]\w*)\s*(?:final\s*)?(?::[^;{]*)?$")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
OPENINGS = re.compile(r"^/// ?(The same|As above|As [`a-z_]+(::\w+)?[,.:]|Those\b|Likewise|Ditto|Apart\b|Of |With |Without )")


def without_comments(text):
    """The code alone, with as many lines as before; strings become empty ones."""
    def blank(match):
        token = match.group(0)
        return "\n" * token.count("\n") + ("" if token.startswith("/") else '""')
    text = COMMENT_OR_STRING.sub(blank, text)
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", "", text, flags=re.MULTILINE)


def closing(text, at):
    """The offset after the brace that closes the one at `at`."""
    depth = 0
    for offset in range(at, len(text)):
        if text[offset] == "{":
            depth += 1
        elif text[offset] == "}":
            depth -= 1
            if depth == 0:
                return offset + 1
    return len(text)


class found_type:
    """A class or struct: its functions (no constructors, destructors, assignments), virtual ones, data members."""

    def __init__(self, name, file):
        self.name, self.file = name, file
        self.functions, self.virtuals, self.members = [], [], []

    def add(self, statement, has_body):
        text = re.sub(r"\[\[[^\]]*\]\]", "", statement)
        text = re.sub(r"^\s*(?:(?:public|private|protected)\s*:\s*)+", "", text).strip()
        text = re.sub(r"^template\s*<[^{;]*?>\s*(?=[a-zA-Z~\[])", "", text)
        if not text or re.match(r"(using|friend|typedef|static_assert|enum|struct|class|union)\b", text):
            return
        head = re.split(r"(?<![=!<>])=(?!=)", text)[0]
        head_without_arguments = re.sub(r"<[^<>()]*(?:<[^<>]*>[^<>()]*)*>", "", head)
        call = re.search(r"([A-Za-z_~]\w*|operator\s*\S+?)\s*\(", head_without_arguments)
        if call and "alignas" not in call.group(1) and "function_ref" not in call.group(1):
            name = call.group(1)
            if name.lstrip("~") == self.name or name.startswith("operator"):
                return
            self.functions.append(name)
            if "virtual" in text.split("(")[0].split():
                self.virtuals.append(name)
        elif not has_body or re.search(r"\w\s*$", head):
            if not re.match(r"static\b|constexpr\b|inline static\b", text):
                names = re.findall(r"(\w+)\s*(?:\[[^\]]*\])*\s*(?:,|$)", re.sub(r"\(.*", "", head_without_arguments))
                self.members += names[-1:] if "," not in head_without_arguments else names


def types_in(text, file):
    """All types that `text` (code without comments) declares outside of functions, nested ones included."""
    found, at, start = [], 0, 0
    while at < len(text):
        character = text[at]
        if character in ";}":
            start = at + 1
        elif character == "{":
            head = text[start:at]
            end = closing(text, at)
            match = TYPE.search(head.strip())
            if match and "enum" not in head.split():
                found += read_type(match.group(2), text[at + 1:end - 1], file)
                at = end - 1
            elif re.search(r"\bnamespace\b|extern\s*\"\"", head):
                at += 1
                start = at
                continue
            else:
                at = end - 1
            start = at + 1
        at += 1
    return found


def read_type(name, body, file):
    this, nested = found_type(name, file), []
    at = start = depth = 0
    while at < len(body):
        character = body[at]
        if character in "(":
            depth += 1
        elif character in ")":
            depth -= 1
        elif character == ";" and depth == 0:
            this.add(body[start:at], False)
            start = at + 1
        elif character == "{" and depth == 0:
            head = body[start:at]
            end = closing(body, at)
            match = TYPE.search(re.sub(r"^\s*(?:(?:public|private|protected)\s*:\s*)+", "", head).strip())
            if match and "enum" not in head.split():
                nested += read_type(match.group(2), body[at + 1:end - 1], file)
                following = body[end:].lstrip()
                if not following.startswith(";"):
                    this.members.append(following.split(";")[0].strip())
                end = body.find(";", end) + 1 or len(body)
            elif re.search(r"\b(enum|union)\b", head):
                end = body.find(";", end) + 1 or len(body)
            else:
                is_function = re.search(r"\)\s*(const|noexcept|override|final|->[^;{]*|:\s[^;]*|\s)*$", head) is not None
                if not is_function:  # a member with a brace initialiser
                    this.add(head, False)
                    end = body.find(";", end) + 1 or len(body)
                elif re.search(r"\)\s*(?:noexcept\s*)?:\s", head) and not body[end:].lstrip().startswith(("}", "[", "public", "private")) \
                        and body[end:].lstrip()[:1] in ",{":
                    # a constructor's list of initialisers with braces: its body is still to come
                    while body[end:].lstrip()[:1] in (",",):
                        end = closing(body, body.find("{", end))
                    if body[end:].lstrip()[:1] == "{":
                        end = closing(body, body.find("{", end))
                    this.add(head, True)
                else:
                    this.add(head, True)
            at = end - 1
            start = end
        at += 1
    return [this, *nested]


def module_of(file):
    parts = file.split("/")
    return "/".join(parts[:2]) if parts[0] in ("src", "tools") else parts[0]


def headers_seen(sources):
    """For each source, how many headers of the project its includes reach."""
    direct = {}

    def includes(file):
        if file not in direct:
            direct[file] = set()
            for name in INCLUDE.findall((ROOT / file).read_text(encoding="utf-8")):
                beside = str((ROOT / file).parent.joinpath(name).resolve().relative_to(ROOT)) if \
                    (ROOT / file).parent.joinpath(name).is_file() else None
                for candidate in (beside, f"src/{name}", f"include/{name}", f"tools/{name}"):
                    if candidate and (ROOT / candidate).is_file():
                        direct[file].add(candidate)
                        break
        return direct[file]

    counts = {}
    for source in sources:
        reached, open_files = set(), [source]
        while open_files:
            for header in includes(open_files.pop()):
                if header not in reached:
                    reached.add(header)
                    open_files.append(header)
        counts[source] = len(reached)
    return counts


def measure():
    files = [name for name in tracked("src", "tools") if name.endswith((".h", ".cpp", ".c", ".cu"))]
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in files}
    types = [each for name, text in texts.items() for each in types_in(without_comments(text), name)]
    modules = collections.defaultdict(set)
    for each in types:
        modules[each.name].add(module_of(each.file))
    seen = headers_seen([name for name in files if name.endswith(".cpp")])
    interfaces = [each for each in types if each.virtuals and not each.file.startswith(("src/api", "tools"))]
    comments = []
    for name, text in texts.items():
        previous = ""
        for number, line in enumerate(text.split("\n"), 1):
            stripped = line.strip()
            if stripped.startswith("///") and not stripped.startswith("///<") and not previous.startswith("///"):
                if OPENINGS.match(stripped):
                    comments.append(f"{name}:{number}: {stripped[:80]}")
            previous = stripped
    described = lambda each, what: f"{each.file}: {each.name} {len(what)}"
    large = {each.name for each in types} & set(LARGE)
    many_functions = [each for each in types if len(each.functions) > 25 and each.name not in large]
    many_members = [each for each in types if len(each.members) > 12 and each.name not in large]
    shared_names = sorted(name for name, where in modules.items() if len(where) > 1)
    return {
        "virtual calls of the largest interface below api":
            (max((len(each.virtuals) for each in interfaces), default=0),
             [described(each, each.virtuals) for each in interfaces if len(each.virtuals) > 8]),
        "classes with more than 25 functions": (len(many_functions), [described(each, each.functions) for each in many_functions]),
        "classes with more than 12 data members": (len(many_members), [described(each, each.members) for each in many_members]),
        "types declared under one name in several modules":
            (len(shared_names), [f"{name}: {' '.join(sorted(modules[name]))}" for name in shared_names]),
        "project headers that a source sees, median": (int(statistics.median(seen.values())), []),
        "project headers that a source sees, maximum":
            (max(seen.values()), [f"{name} {count}" for name, count in sorted(seen.items(), key=lambda row: -row[1])[:10]]),
        "doc comments that begin with a reference to another": (len(comments), comments),
        "lines of src and tools": (sum(text.count("\n") for text in texts.values()), []),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--list", action="store_true", help="also what counts")
    options = parser.parse_args()
    failed = 0
    for name, (value, details) in measure().items():
        limit, goal = LIMITS[name]
        failed += value > limit
        print(f"{name:56} {value:6}   limit {limit:6}   goal {goal:6}{'   WORSE' if value > limit else ''}")
        if options.list:
            for line in details:
                print(f"    {line}")
    print(f"house: {failed} measures worse than their limit")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
