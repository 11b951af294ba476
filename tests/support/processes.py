# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes that a test has started, found by a variable that only they carry."""
import os
import signal
import uuid


def new_mark():
    """(name, value) of a variable that nobody else has."""
    return "DIOMP_TEST_MARK", uuid.uuid4().hex


def carrying(name, value):
    """Process ids, but for the caller's own and zombies (they have no environment any more)."""
    wanted = f"{name}={value}".encode()
    found = []
    for word in os.listdir("/proc"):
        if word.isdigit() and int(word) != os.getpid():
            try:
                with open(f"/proc/{word}/environ", "rb") as file:
                    variables = file.read().split(b"\0")
            except OSError:
                continue
            if wanted in variables:
                found.append(int(word))
    return found


def end_all(test, found):
    """Fails the test if there are any, after it has ended them."""
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    test.assertEqual(found, [], "processes are left")


def close_pipes(process):
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe:
            pipe.close()
