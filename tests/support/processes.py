# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes that a test has started, found by a variable that only they carry."""
import contextlib
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
    left = [describe(pid) for pid in found]
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    test.assertEqual(left, [], "processes are left")


def describe(pid):
    """Number, command, state and parent of a process."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().replace(b"\0", b" ").decode(errors="replace")
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            facts = [line.strip() for line in file if line.startswith(("State", "PPid", "Threads"))]
    except OSError as gone:
        return f"{pid}: {gone}"
    return f"{pid}: {words} {facts}"


def close_pipes(process):
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe:
            pipe.close()
