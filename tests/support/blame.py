# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What diomp-run must say of a job in which one rank ends badly (tests/launch/ends_badly.c)."""
import signal

PHASES = ("wait", "barrier", "put", "get", "allreduce", "lock", "signal")
# action of the rank: exit status of the job, and what is said of the rank
ACTIONS = {
    "exit3": (3, "exited with status 3"),
    "_exit4": (4, "exited with status 4"),
    "_exit0": (1, "exited with status 0 without ompx_finalize()"),
    "ompx5": (5, "aborted the job with status 5"),
    "ompx0": (0, None),
    str(int(signal.SIGKILL)): (128 + signal.SIGKILL, "was killed by signal 9"),
    str(int(signal.SIGSEGV)): (128 + signal.SIGSEGV, "was killed by signal 11"),
    str(int(signal.SIGABRT)): (128 + signal.SIGABRT, "was killed by signal 6"),
}


def check(test, action, rank, status, err):
    """`test` fails unless the job's status and its one message are those of the rank that ended; nothing may be said of a
    success."""
    expected, words = ACTIONS[action]
    lines = [line for line in err.splitlines() if line.startswith("diomp-run: ")]
    about = f"{action} of rank {rank}:\n{err}"
    test.assertEqual(status, expected, about)
    if words is None:
        test.assertEqual(err, "", about)
        return
    test.assertEqual(len(lines), 1, about)
    test.assertRegex(lines[0], rf"^diomp-run: rank {rank} on ", about)
    test.assertIn(words, lines[0], about)
