#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The manual pages that scripts/api-man.py makes: one for every function of the headers, without errors of the language, and
found by man under every name.

    manual_pages_test.py SOURCE_DIR
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = sys.argv[1]
# What mandoc does not like, but is meant: no date, so that pages do not change with the day; references as on other systems.
EXPECTED = re.compile("missing date|so is fragile")
LIMIT_S = 120


def declared_functions():
    """Functions of diomp.h's own headers, by the names before parentheses in their declarations."""
    found = set()
    umbrella = os.path.join(SOURCE, "include/diomp.h")
    with open(umbrella, encoding="utf-8") as file:
        included = re.findall(r'^#include "(diomp/\w+\.h)"$', file.read(), re.M)
    for name in included:
        with open(os.path.join(SOURCE, "include", name), encoding="utf-8") as file:
            code = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
        found |= set(re.findall(r"^OMPX_API_ [\w *]*?\b(ompx_\w*[^_\W])\(", code, re.M))
    return found


class manual_pages_test(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.pages = os.path.join(cls.folder.name, "man3")
        subprocess.run([os.path.join(SOURCE, "scripts/api-man.py"), cls.pages], check=True, timeout=LIMIT_S)
        cls.names = {name.removesuffix(".3") for name in os.listdir(cls.pages)}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def text(self, name):
        with open(os.path.join(self.pages, f"{name}.3"), encoding="utf-8") as file:
            return file.read()

    def test_every_function_has_a_page(self):
        functions = declared_functions()
        self.assertGreater(len(functions), 150)
        self.assertEqual(functions - self.names, set())
        for name in ("diomp", "ompx_fence", "ompx_barrier", "ompx_atomic_add", "ompx_atomic_fetch_xor"):
            self.assertIn(name, self.names)

    def test_pages_show_what_they_are_named_for(self):
        for name in self.names - {"diomp"}:
            text = self.text(name)
            if reference := re.fullmatch(r"\.so man3/(\w+)\.3\n", text):
                text = self.text(reference[1])
            synopsis = text.split(".SH SYNOPSIS")[1].split(".SH")[0]
            shown = name if name not in ("ompx_fence", "ompx_barrier") else f"{name}_group"
            self.assertRegex(synopsis, rf"\b{shown}\(", name)
            description = text.split(".SH DESCRIPTION\n")[1].split("\n.PP\nReturn values")[0]
            self.assertGreater(len(description.strip()), 10, name)
            self.assertRegex(text.split(".SH NAME\n")[1].split("\n")[0], rf"\b{name}\b.* \\- \S.*", name)

    def test_a_page_has_the_words_of_the_header(self):
        self.assertIn("int ompx_put(int rank, void *dst, const void *src, size_t nbytes);", self.text("ompx_put"))
        self.assertIn("Returns when src may be reused", self.text("ompx_put"))
        self.assertEqual(self.text("ompx_get_nb"), ".so man3/ompx_put_nb.3\n")
        self.assertIn("BXOR", self.text("ompx_atomic_fetch"))
        self.assertEqual(self.text("ompx_atomic_add"), ".so man3/ompx_atomic_fetch.3\n")

    def test_related_pages_exist(self):
        for name in self.names:
            for other in re.findall(r"^\.BR (\S+) \(3\)", self.text(name), re.M):
                self.assertIn(other.replace("\\-", "-"), self.names, name)

    @unittest.skipUnless(shutil.which("mandoc"), "mandoc is not installed")
    def test_mandoc_finds_no_errors(self):
        pages = sorted(os.path.join(self.pages, f"{name}.3") for name in self.names)
        said = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *pages], cwd=self.folder.name, text=True,
                              capture_output=True, timeout=LIMIT_S, check=False).stdout
        self.assertEqual([line for line in said.splitlines() if not EXPECTED.search(line)], [])

    @unittest.skipUnless(shutil.which("man"), "man is not installed")
    def test_man_shows_pages_without_warnings(self):
        for name in ("diomp", "ompx_put", "ompx_get_nb", "ompx_target_reduce", "ompx_alloc", "ompx_atomic_add"):
            shown = subprocess.run(["man", "-l", "--warnings=w", os.path.join(self.pages, f"{name}.3")],
                                   cwd=self.folder.name, text=True, capture_output=True, timeout=LIMIT_S, check=True,
                                   env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "100", "MANPAGER": "cat"})
            self.assertEqual(shown.stderr, "", name)
            self.assertIn("SYNOPSIS", shown.stdout, name)
            self.assertNotIn("\\", shown.stdout, name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
