# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory control groups of a test's own, where the machine allows to make them."""
import contextlib
import os
import unittest
import uuid


def _write(path, text):
    with open(path, "w") as file:
        file.write(text)


def _version_1():
    """(folder of the memory hierarchy that this process is in, name of the limit)"""
    with open("/proc/self/cgroup") as file:
        for line in file:
            _, controllers, group = line.rstrip("\n").split(":", 2)
            if "memory" in controllers.split(","):
                return f"/sys/fs/cgroup/memory{group}", "memory.limit_in_bytes"
    return None


def _version_2():
    with contextlib.suppress(OSError), open("/sys/fs/cgroup/cgroup.subtree_control") as file:
        if "memory" in file.read().split():
            return "/sys/fs/cgroup", "memory.max"
    return None


@contextlib.contextmanager
def memory_cgroup(limit_bytes):
    """Gives a shell command that puts the shell into a group with this limit. Skips the test where there can be none."""
    found = _version_2() or _version_1()
    if not found:
        raise unittest.SkipTest("no memory control groups here")
    folder = os.path.join(found[0], f"diomp-test-{uuid.uuid4().hex}")
    try:
        os.mkdir(folder)
    except OSError as failure:
        raise unittest.SkipTest(f"memory control groups cannot be made here: {failure}") from failure
    try:
        try:
            _write(os.path.join(folder, found[1]), str(limit_bytes))
            _write(os.path.join(folder, "memory.swap.max"), "0") if found[1] == "memory.max" else None
        except OSError as failure:
            raise unittest.SkipTest(f"no limits on memory here: {failure}") from failure
        yield f"echo $$ >{folder}/cgroup.procs"
    finally:
        os.rmdir(folder)
