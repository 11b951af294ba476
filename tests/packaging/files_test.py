#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The folder debian/ says what the tree says: the version, the exported names, the version of LLVM, the packages of setup.sh.

    files_test.py     with the tree in DIOMP_TEST_SOURCE
"""
import os
import re
import unittest

SOURCE = os.environ["DIOMP_TEST_SOURCE"]


def text_of(name):
    with open(os.path.join(SOURCE, name), encoding="utf-8") as file:
        return file.read()


def build_depends(optional=""):
    """The packages that the build needs; or those that it needs with the profile `optional`."""
    block = re.search(r"^Build-Depends:\n((?: .*\n)+)", text_of("debian/control"), re.M)[1]
    wanted = re.compile(rf"<{optional}>" if optional else r"^[^<]*$|<!")
    return {re.match(r" ([a-z0-9.+-]+)", line)[1] for line in block.splitlines() if wanted.search(line)}


class folder(unittest.TestCase):
    def test_version(self):
        version = re.search(r"^project\(DiOMP VERSION ([0-9.]+)", text_of("CMakeLists.txt"), re.M)[1]
        newest = re.match(r"diomp \(([0-9.]+)-[0-9]+\) ", text_of("debian/changelog"))[1]
        self.assertEqual(newest, version, "debian/changelog: add an entry for the version of CMakeLists.txt")

    def test_each_node_of_the_map_is_in_the_symbols(self):
        nodes = re.findall(r"^(DIOMP_[0-9.]+) \{", text_of("src/diomp.map"), re.M)
        named = re.findall(r"^ \(symver\)(\S+) [0-9.]+$", text_of("debian/libdiomp1.symbols"), re.M)
        self.assertEqual(named, nodes, "debian/libdiomp1.symbols: a line for each node of src/diomp.map")

    def test_names_without_a_version_are_those_that_the_map_lists(self):
        comment = re.search(r"passes on for all others: ([\w, ]*)\. They", re.sub(r"\s*\n# *", " ", text_of("src/diomp.map")))[1]
        listed = {"__libc_start_main", *comment.split(", ")}
        (library, *_) = text_of("debian/libdiomp1.symbols").split("libdiomp-shmem.so")
        self.assertEqual(set(re.findall(r"^ (\w+)@Base ", library, re.M)), listed)

    def test_llvm(self):
        major = re.search(r"^major=(\d+)$", text_of("scripts/fetch-llvm.sh"), re.M)[1]
        names = re.findall(r"^Package: diomp-offload-(\d+)$", text_of("debian/control"), re.M)
        self.assertEqual(names[0], major)
        self.assertLessEqual({f"clang-{major}", f"llvm-{major}-dev", f"libomp-{major}-dev"}, build_depends())
        for name in names[1:]:
            about = re.search(rf"^Package: diomp-offload-{name}\n((?:.+\n)+)", text_of("debian/control"), re.M)[1]
            self.assertIn(f"Build-Profiles: <pkg.diomp.llvm{name}>\n", about)
            self.assertRegex(about, rf"\nDepends: .*libllvm{name}\b")
            self.assertTrue(os.path.exists(os.path.join(SOURCE, f"llvm/versions/{name}/version.cmake")))

    def test_flang_is_of_the_version_of_clang(self):
        names = re.findall(r"^Package: diomp-(flang-\d+)$", text_of("debian/control"), re.M)
        self.assertEqual(build_depends("pkg.diomp.flang"), set(names))
        major = re.search(r"^major=(\d+)$", text_of("scripts/fetch-llvm.sh"), re.M)[1]
        self.assertEqual(names, [f"flang-{major}"])
        self.assertTrue(os.path.exists(os.path.join(SOURCE, f"debian/diomp-flang-{major}.install")))

    def test_setup_installs_what_the_build_depends_on(self):
        names = set(re.findall(r"^([a-z0-9.+-]+) {2,}\S", text_of("scripts/setup.sh"), re.M))
        implied = {"debhelper-compat", "dh-sequence-installsysusers", "dh-sequence-numpy3", "dh-sequence-python3", "python3"}
        self.assertIn("build-essential", names, "dpkg-buildpackage needs it, without being told")
        self.assertEqual(build_depends() - names - implied, set(), "scripts/setup.sh: what debian/control needs")


if __name__ == "__main__":
    unittest.main()
