# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The stub of the module, and the package's names and numbers, against the module and diomp.h.

    stub_test.py PACKAGE_DIR SOURCE_DIR
"""
import ast
import pathlib
import re
import sys

import diomp
from diomp import _core


def names_of(stub):
    """Names that a stub defines at its top level."""
    found = set()
    for node in ast.parse(stub).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


def annotated(stub):
    """Functions of the stub without a type for an argument or the result."""
    for node in ast.walk(ast.parse(stub)):
        if isinstance(node, ast.FunctionDef):
            arguments = [each for each in node.args.args if each.arg not in ("self", "cls")]
            if node.returns is None or any(each.annotation is None for each in arguments):
                yield node.name


def constants(header, prefix):
    """Numbers of an enumeration's constants in the headers."""
    return {name: int(value) for name, value in re.findall(rf"OMPX_{prefix}(\w+) = (-?\d+)", header)}


def main():
    package, source = map(pathlib.Path, sys.argv[1:3])
    stub = (package / "_core.pyi").read_text()
    public = {name for name in dir(_core) if not name.startswith("_")}
    assert public == names_of(stub), public ^ names_of(stub)
    assert not list(annotated(stub)), list(annotated(stub))
    assert (package / "py.typed").exists()

    include = source.parent / "include"
    header = "".join((include / name).read_text() for name in ("diomp/status.h", "diomp/sync.h", "diomp/types.h"))
    for enumeration, prefix in ((diomp.Status, "ERR_"), (diomp.Cmp, "CMP_"), (diomp.MemKind, "MEM_"),
                                (diomp.Signal, "SIGNAL_"), (diomp.Rma, "RMA_")):
        known = {name.removeprefix("ERR_"): int(each) for name, each in enumeration.__members__.items()}
        known.pop("SUCCESS", None)
        assert known == constants(header, prefix), (enumeration, known, constants(header, prefix))
    for op in diomp.Op:
        assert f"OMPX_{op.name} = {int(op)}" in header, op

    version = re.search(r"project\(DiOMP VERSION (\S+)", (source.parent / "CMakeLists.txt").read_text()).group(1)
    assert diomp.__version__ == version
    assert f'version = "{version}"' in (source / "pyproject.toml").read_text()
    internal = {"allocate", "dropped", "free_marked", "Block", "TrackedBlock", "lock", "unlock", "try_lock", "thread_lock",
                "thread_unlock", "thread_try_lock", "ForeignBlock", "to_dlpack", "export_device", "layout_device", "return_errors", "stop_operators"}
    assert public - internal <= set(diomp.__all__), public - internal - set(diomp.__all__)
    print(f"{len(public)} names of the module are in the stub")


if __name__ == "__main__":
    main()
