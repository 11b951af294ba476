# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ends of processes: exceptions, exit statuses, DIOMP_ERRORS, programs without the launcher.

    processes_test.py DIOMP_RUN
"""
import os
import subprocess
import sys
import unittest

RUN = sys.argv.pop(1)
SECONDS = 60


def run(ranks, program, **environment):
    command = [RUN, "-n", str(ranks), "--bind-to", "none", "--timeout", str(SECONDS), "--"] if ranks else []
    return subprocess.run([*command, sys.executable, "-B", "-c", program], text=True, timeout=SECONDS + 10, check=False,
                          capture_output=True, env={**os.environ, **environment})


class Processes(unittest.TestCase):
    def test_world_of_one(self):
        done = run(0, "import diomp; print(diomp.rank(), diomp.num_ranks(), diomp.zeros(3).sum())")
        self.assertEqual((done.stdout, done.returncode), ("0 1 0.0\n", 0), done.stderr)

    def test_exception_on_one_rank_ends_the_job(self):
        done = run(3, "import diomp\nif diomp.rank() == 1: raise LookupError('on purpose')\ndiomp.barrier()")
        self.assertEqual(done.returncode, 1)
        self.assertIn("LookupError: on purpose", done.stderr)
        self.assertIn("rank 1", done.stderr)
        self.assertNotIn("timed out", done.stderr.lower())

    def test_exception_while_others_wait_for_a_signal(self):
        done = run(2, "import diomp\nflag = diomp.zeros(1, 'u8')\nif diomp.rank() == 1: raise LookupError('on purpose')\n"
                      "diomp.signal_wait(flag, diomp.CMP_EQ, 1)")
        self.assertEqual(done.returncode, 1)
        self.assertIn("LookupError: on purpose", done.stderr)

    def test_exit_status_is_passed_on(self):
        done = run(2, "import diomp, sys\nif diomp.rank() == 1: sys.exit(7)\ndiomp.barrier()")
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertEqual(run(2, "import diomp; diomp.abort(5)").returncode, 5)

    def test_error_that_is_not_caught(self):
        done = run(2, "import diomp, numpy\ndiomp.put(5, diomp.zeros(1), 1.0)")
        self.assertEqual(done.returncode, 1)
        self.assertIn("diomp.errors.Error", done.stderr)
        self.assertIn("rank 5 is outside the world of 2 ranks", done.stderr)

    def test_end_with_an_operator_in_flight(self):
        program = ("import diomp, numpy as np, sys, time\ndef slow(a, b):\n    time.sleep(0.2)\n    return a + b\n"
                   "d = np.zeros(4)\nevent = diomp.allreduce_nb(d, np.ones(4), diomp.UserOp(slow))\n"
                   "if diomp.rank() == 1:\n    event.wait()\n    print(d)\nelif %s:\n    del event\n")
        for drops in ("True", "False"):
            for setting in ({}, {"DIOMP_CONDUIT": "tcp"}):
                done = run(2, program % drops, **setting)
                self.assertEqual((done.stdout, done.stderr, done.returncode), ("[2. 2. 2. 2.]\n", "", 0))
        done = run(2, program % "True" + "    raise LookupError('on purpose')\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("LookupError: on purpose", done.stderr)
        self.assertNotIn("terminate", done.stderr)

    def test_end_with_daemon_threads_in_calls(self):
        program = ("import diomp, numpy as np, threading, time\nu = diomp.zeros(100000)\ns = np.ones(100000)\ndiomp.barrier()\n"
                   "def work():\n    while True: %s\n"
                   "for _ in range(3): threading.Thread(target=work, daemon=True).start()\ntime.sleep(0.1)\n")
        calls = ("diomp.put((diomp.rank() + 1) % diomp.num_ranks(), u, s)",
                 "diomp.put_nb((diomp.rank() + 1) % diomp.num_ranks(), u, s).wait()")
        for call in calls:
            for setting in ({}, {"DIOMP_CONDUIT": "tcp"}):
                done = run(2, program % call, **setting)
                self.assertEqual((done.stderr, done.returncode), ("", 0), (call, setting))
        done = run(1, program % "diomp.barrier()" + "diomp.finalize()\n")
        self.assertNotIn("terminate", done.stderr)

    def test_errors_end_the_job_if_the_user_says_so(self):
        program = "import diomp\ntry: diomp.put(5, diomp.zeros(1), 1.0)\nfinally: print('caught')"
        done = run(2, program, DIOMP_ERRORS="abort")
        self.assertNotEqual(done.returncode, 0)
        self.assertNotIn("caught", done.stdout)
        self.assertIn("rank 5 is outside", done.stderr)

    def test_children_do_not_inherit_the_policy(self):
        done = run(1, "import diomp, os; print(os.environ.get('DIOMP_ERRORS'))")
        self.assertEqual(done.stdout, "None\n")

    def test_arrays_alive_at_the_end(self):
        done = run(2, "import diomp\nkept = diomp.zeros(3)\nevent = diomp.put_nb(0, kept[:1], 1.0)\nevent2 = diomp.barrier_nb()")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_import_after_other_packages(self):
        program = "import matplotlib.pyplot, numpy.random\nimport diomp"
        done = run(0, program, GLIBC_TUNABLES="glibc.rtld.optional_static_tls=4096")
        if "No module named 'matplotlib'" in done.stderr:
            self.skipTest("no matplotlib, which uses thread-local data")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = run(0, program)  # works or not, by what was loaded; if not, the sentence says what to do
        self.assertTrue(done.returncode == 0 or "optional_static_tls" in done.stderr, done.stderr)

    def test_finalize(self):
        program = ("import diomp\nkept = diomp.zeros(3)\ndiomp.finalize()\nprint(diomp.is_initialized())\n"
                   "try: diomp.barrier()\nexcept diomp.Error as error: print(error.status.name)")
        done = run(2, program)
        self.assertEqual((done.returncode, sorted(done.stdout.split())), (0, ["ERR_STATE"] * 2 + ["False"] * 2), done.stderr)


if __name__ == "__main__":
    unittest.main()
