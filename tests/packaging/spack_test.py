#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The recipe in contrib/spack: what it says of the tree, and with a Spack in the PATH or in SPACK_ROOT what that says of it.

    spack_test.py     with the tree in DIOMP_TEST_SOURCE
"""
import ast
import os
import re
import shutil
import subprocess
import tempfile
import unittest

SOURCE = os.environ["DIOMP_TEST_SOURCE"]
REPOSITORY = os.path.join(SOURCE, "contrib", "spack")
RECIPE = os.path.join(REPOSITORY, "packages", "diomp", "package.py")
VARIANTS = {"llvm", "llvm_source", "ucx", "gasnet", "gpi2", "pmix", "cuda", "rocm", "python", "fortran"}
LIMIT_S = 300


def text_of(*name):
    with open(os.path.join(SOURCE, *name), encoding="utf-8") as file:
        return file.read()


def spack_program():
    root = os.environ.get("SPACK_ROOT")
    return os.path.join(root, "bin", "spack") if root else shutil.which("spack")


class recipe(unittest.TestCase):
    def setUp(self):
        self.text = text_of("contrib/spack/packages/diomp/package.py")
        (self.package,) = [node for node in ast.parse(self.text).body if isinstance(node, ast.ClassDef)]

    def directives(self, name):
        """The calls of a directive in the class, as (first arguments, options)."""
        calls = [node.value for node in self.package.body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
        return [(ast.literal_eval(call.args[0]) if call.args else None, {word.arg: word.value for word in call.keywords})
                for call in calls if call.func.id == name]

    def test_version(self):
        version = re.search(r"^project\(DiOMP VERSION ([0-9.]+)", text_of("CMakeLists.txt"), re.M)[1]
        self.assertIn(version, [name for name, _ in self.directives("version")])

    def test_variants(self):
        bases = {"CudaPackage": "cuda", "ROCmPackage": "rocm"}
        found = {name for name, _ in self.directives("variant")} | {bases[base.id] for base in self.package.bases if base.id in bases}
        self.assertEqual(found, VARIANTS)

    def test_cmake_knows_each_option(self):
        known = set()
        for folder in ("cmake", "src", "llvm", "python"):
            for top, _, names in os.walk(os.path.join(SOURCE, folder)):
                for name in names:
                    if name.endswith(("CMakeLists.txt", ".cmake")):
                        known |= set(re.findall(r"\b(?:option|set|find_program)\((DIOMP_\w+)", text_of(top, name)))
        used = set(re.findall(r'define(?:_from_variant)?\(\s*"(DIOMP_\w+)"', self.text))
        self.assertGreater(len(used), 10)
        self.assertEqual(used - known, set())

    def test_llvm(self):
        (options,) = [options for name, options in self.directives("variant") if name == "llvm"]
        for version in set(ast.literal_eval(options["values"])) - {"none"}:
            self.assertTrue(os.path.isdir(os.path.join(SOURCE, "llvm", "versions", version)), version)

    def test_its_tests_run_examples_that_exist(self):
        names = [function.name for function in self.package.body if isinstance(function, ast.FunctionDef)]
        self.assertGreaterEqual(len([name for name in names if name.startswith("test_")]), 2)
        for compiler, program, ranks in re.findall(r'compile_and_run\("(\w+)", "([\w.]+)", (\d+)\)', self.text):
            self.assertIn(f"diomp_compiler_wrapper({compiler} ", text_of("tools/diompcc/CMakeLists.txt"))
            self.assertTrue(text_of("examples", program))
            self.assertGreater(int(ranks), 0)


@unittest.skipUnless(spack_program(), "there is no Spack (in the PATH or in SPACK_ROOT)")
class with_spack(unittest.TestCase):
    def spack(self, *words):
        with tempfile.TemporaryDirectory() as own:
            environment = {**os.environ, "SPACK_USER_CONFIG_PATH": own, "SPACK_USER_CACHE_PATH": own}
            with open(os.path.join(own, "repos.yaml"), "w", encoding="utf-8") as file:
                file.write(f"repos: [{REPOSITORY}]\n")
            done = subprocess.run([spack_program(), *words], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_info(self):
        printed = self.spack("info", "diomp")
        for variant in VARIANTS:
            self.assertRegex(printed, rf"(?m)^ +{variant} \[")

    def test_audit(self):
        self.assertNotRegex(self.spack("audit", "packages", "diomp"), r"\d+ issues? found")


if __name__ == "__main__":
    unittest.main()
