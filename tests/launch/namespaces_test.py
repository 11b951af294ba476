#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""diomp-run in containers: user, PID, mount and network namespaces, with a /proc that shows this PID namespace,
another one, or nothing. Skipped, with the reason, where namespaces cannot be made."""
import os
import subprocess
import tempfile
import unittest

from job_tools import LIMIT_S, PROBE, RUN, job_case

UNSHARE = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--net", "--mount", "--kill-child"]
# A rank that leaves a process behind that has a session of its own.
STRAY = "setsid sleep 1000 & exit 0"


class namespaces_test(job_case):
    def setUp(self):
        super().setUp()
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        tried = subprocess.run([*UNSHARE, "--mount-proc", "true"], capture_output=True, text=True)
        if tried.returncode != 0:
            self.skipTest(f"no namespaces here: {tried.stderr.strip()}")

    def inside(self, script, *options):
        """(status, standard output, standard error) of a shell that is the first process of its PID namespace. $RUN and
        $PROBE are there."""
        process = subprocess.Popen([*UNSHARE, *options, "sh", "-c", script], text=True, stdin=subprocess.DEVNULL,
                                   env={**self.environment, "RUN": RUN, "PROBE": PROBE}, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.started.append(process)
        out, err = process.communicate(timeout=LIMIT_S)
        return process.returncode, out, err

    def check(self, *options, before=":"):
        """Jobs that end well, fail, and leave something behind."""
        # The shell stays, so that diomp-run is not the first process, whose children end with it.
        status, out, err = self.inside(f"{before}; $RUN -n 2 $PROBE exchange; echo $?", *options)
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(out.splitlines()[-1], "0")
        status, out, err = self.inside(f"{before}; $RUN -n 2 sh -c 'test $DIOMP_RANK = 0 || exit 7; exec sleep 60'; "
                                       "echo $?", *options)
        self.assertEqual((status, out.splitlines()[-1]), (0, "7"))
        self.assertIn("exited with status 7", self.one_message(err))
        status, out, err = self.inside(f"{before}; $RUN -n 2 sh -c '{STRAY}'; kill -0 -1 2>/dev/null; echo $?", *options)
        self.assertEqual((status, err), (0, ""))
        # kill(-1) reaches every other process of the namespace; there is none.
        self.assertEqual(out.splitlines()[-1], "1")

    def test_own_proc(self):
        self.check("--mount-proc")

    def test_proc_of_the_outer_namespace(self):
        self.check()

    def test_no_proc(self):
        self.check(before="mount -t tmpfs none /proc")

    def test_first_process_of_the_namespace(self):
        for options in ([], ["--mount-proc"]):
            process = subprocess.run([*UNSHARE, *options, RUN, "-n", "2", "sh", "-c", STRAY], text=True,
                                     stdin=subprocess.DEVNULL, env=self.environment, capture_output=True,
                                     timeout=LIMIT_S)
            self.assertEqual((process.returncode, process.stdout, process.stderr), (0, "", ""))

    def test_unrelated_processes_are_not_signalled(self):
        # diomp-run is number 2, which in the outer /proc is the parent of the kernel's threads; among these are the
        # numbers of the processes that start after it here.
        script = """
            $RUN -n 1 sh -c 'sleep 0.3' & run=$!
            for i in 1 2 3 4 5 6 7 8; do sleep 1000 & others="$others $!"; done
            wait $run; echo $run $?
            kill -0 $others && kill $others && echo all there"""
        status, out, err = self.inside(script)
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(out.splitlines(), ["2 0", "all there"])

    def test_temporary_directory_that_is_missing(self):
        status, out, err = self.inside("TMPDIR=/no/such/folder $RUN -n 2 $PROBE exchange; echo $?", "--mount-proc")
        self.assertEqual((status, out.splitlines()[-1], err), (0, "0", ""))


if __name__ == "__main__":
    unittest.main()
