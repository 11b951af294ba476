#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What users see of diomp-run: exit statuses, messages, output, signals, and that nothing is left."""
import os
import pty
import re
import select
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

from cgroup import memory_cgroup
from job_tools import LIMIT_S, PROBE, RUN, job_case

# Ranks that diomp-run forks, and so many that it starts them by vfork (spawn.h).
FEW_AND_MANY = (2, 64)

class job_test(job_case):
    # ---- Exit status

    def test_all_zero_is_zero(self):
        self.assertEqual(self.shell(4, "exit 0"), (0, "", ""))

    def test_status_of_the_failing_rank(self):
        status, _, err = self.shell(4, 'test $DIOMP_RANK != 2 || exit 7; exec sleep 60')
        self.assertEqual(status, 7)
        self.assertRegex(self.one_message(err),
                         rf"rank 2 on {re.escape(os.uname().nodename)} \(pid \d+, sh\) exited with status 7")

    def test_killed_rank_is_named_with_its_signal(self):
        with self.ends_soon():
            status, _, err = self.shell(4, 'test $DIOMP_RANK = 1 && kill -SEGV $$; exec sleep 60')
        self.assertEqual(status, 128 + signal.SIGSEGV)
        self.assertRegex(self.one_message(err), r"rank 1 on .* \(pid \d+, sh\) was killed by signal 11 \(SIGSEGV")

    def test_kill_nine_of_a_rank(self):
        process = self.start("-n", "3", "sh", "-c", "echo $$; exec sleep 60")
        pids = self.read_lines(process, 3)
        os.kill(int(pids[0]), signal.SIGKILL)
        with self.ends_soon():
            _, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 137)
        self.assertIn(f"(pid {pids[0]}, sh) was killed by signal 9 (SIGKILL", self.one_message(err))

    def test_ranks_that_ignore_sigterm_are_killed(self):
        with self.ends_soon():
            status, _, _ = self.shell(3, 'trap "" TERM; test $DIOMP_RANK = 0 && exit 5; '
                                         'while :; do sleep 0.1; done')
        self.assertEqual(status, 5)

    def test_unknown_program_is_127(self):
        status, _, err = self.run_job("-n", "4", "no-such-program")
        self.assertEqual(status, 127)
        self.assertIn("'no-such-program'", self.one_message(err))
        status, _, err = self.run_job("-n", "4", "/no/such/program")
        self.assertEqual(status, 127)

    def test_not_executable_is_126(self):
        with tempfile.NamedTemporaryFile("w") as file:
            status, _, err = self.run_job("-n", "2", file.name)
            self.assertEqual(status, 126)
            self.assertIn(file.name, self.one_message(err))

    def test_bad_format_is_126(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "broken")
            with open(path, "wb") as file:
                file.write(b"#!/no/such/interpreter\n")
            os.chmod(path, stat.S_IRWXU)
            for ranks in FEW_AND_MANY:
                status, _, err = self.run_job("-n", str(ranks), path)
                self.assertEqual(status, 126)
                self.assertIn("cannot execute " + path, self.one_message(err))

    def test_script_without_interpreter_line(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "script")
            with open(path, "w") as file:
                file.write('echo "rank $DIOMP_RANK $1"\n')
            os.chmod(path, stat.S_IRWXU)
            for ranks in FEW_AND_MANY:
                status, out, _ = self.run_job("-n", str(ranks), path, "word")
                self.assertEqual((status, sorted(out.splitlines())), (0, sorted(f"rank {i} word" for i in range(ranks))))

    def test_timeout_is_124(self):
        status, _, err = self.run_job("-n", "2", "--timeout", "0.2", "sleep", "60")
        self.assertEqual(status, 124)
        self.assertIn("--timeout", self.one_message(err))

    def test_quiet_says_nothing(self):
        self.assertEqual(self.shell(2, "exit 3", "--quiet"), (3, "", ""))

    def test_too_many_ranks_to_bind(self):
        cores = os.cpu_count() or 1
        status, _, err = self.run_job("-n", str(cores + 1), "--bind-to", "core", "true")
        self.assertEqual(status, 2)
        self.assertIn(f"{cores + 1} ranks", self.one_message(err))

    def test_oom_kill_is_named(self):
        with memory_cgroup(64 << 20) as enter:
            process = subprocess.Popen(
                ["sh", "-c", f'{enter}; exec "$@"', "sh", RUN, "-n", "2", sys.executable, "-c",
                 "import os, time\nif os.environ['DIOMP_RANK'] == '1': b = bytearray(b'x') * (1 << 28)\ntime.sleep(60)"],
                env=self.environment, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE)
            self.started.append(process)
            _, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 137)
        self.assertRegex(self.one_message(err), r"rank 1 on .* was killed by signal 9 \(SIGKILL, Killed\): out of memory, "
                                                r".*the cgroup \S+, which may use 64.0 MiB")

    def test_sigkill_of_a_user_is_not_taken_for_an_oom_kill(self):
        status, _, err = self.shell(2, 'test $DIOMP_RANK = 1 && kill -KILL $$; exec sleep 60')
        self.assertEqual(status, 137)
        self.assertTrue(self.one_message(err).endswith("was killed by signal 9 (SIGKILL, Killed)"), err)

    # ---- Files that are not what they should be

    def test_host_file_that_cannot_be_read(self):
        for path, why in (("/", "Is a directory"), ("/no/such/file", "No such file"),
                          ("/dev/zero", "longer than")):
            status, _, err = self.run_job("--hostfile", path, "true")
            self.assertEqual(status, 2, err)
            self.assertIn(f"cannot read {path}: ", self.one_message(err))
            self.assertIn(why, err)

    def test_output_dir_that_cannot_be_made(self):
        for path in ("/dev/null/x", "/proc/x"):
            status, _, err = self.run_job("-n", "2", "--output-dir", path, "true")
            self.assertEqual(status, 1, err)
            self.assertIn(path, self.one_message(err))

    # ---- Output and input

    def test_lines_do_not_mix(self):
        script = ('i=0; while [ $i -lt 200 ]; do printf "start $DIOMP_RANK "; '
                  'printf "%s end\\n" $i; i=$((i+1)); done')
        status, out, _ = self.shell(4, script)
        self.assertEqual(status, 0)
        expected = [f"start {rank} {i} end" for rank in range(4) for i in range(200)]
        self.assertEqual(sorted(out.splitlines()), sorted(expected))

    def test_tagged_output(self):
        status, out, err = self.shell(3, 'printf "a\\nb"; echo "e" >&2', "--tag-output")
        self.assertEqual(status, 0)
        self.assertEqual(sorted(out.split("\n")), sorted(f"[{r}] {t}" for r in range(3) for t in "ab"))
        self.assertEqual(sorted(err.splitlines()), [f"[{r}] e" for r in range(3)])

    def test_output_dir(self):
        with tempfile.TemporaryDirectory() as directory:
            where = os.path.join(directory, "new", "place")
            result = self.shell(2, 'echo "out $DIOMP_RANK"; echo "err $DIOMP_RANK" >&2', "--output-dir", where)
            self.assertEqual(result, (0, "", ""))
            for rank in range(2):
                for kind in ("out", "err"):
                    with open(os.path.join(where, f"rank-{rank}.{kind}")) as file:
                        self.assertEqual(file.read(), f"{kind} {rank}\n")

    def test_large_output_is_complete(self):
        self.check_large_output(3_000_000, "-n", "2")

    def test_slow_reader_does_not_stop_signals(self):
        self.check_signal_with_slow_reader("-n", "2")

    def test_reader_that_leaves_ends_the_job(self):
        self.check_reader_that_leaves("-n", "2")

    def test_output_that_cannot_be_written_is_told(self):
        with tempfile.NamedTemporaryFile() as file:
            for script, why in (("> /dev/full", "No space left on device"),
                                (f"> {file.name}", "File too large")):
                status, _, err = self.limited("ulimit -f 8", f"-n 2 yes {script}")
                self.assertEqual(status, 128 + signal.SIGPIPE)
                self.assertEqual(err, f"diomp-run: cannot write the ranks' output: {why}\n")

    def test_too_few_descriptors_are_told_with_what_to_raise(self):
        status, _, err = self.limited("ulimit -n 20", "-n 8 true")
        self.assertEqual(status, 1)
        self.assertRegex(self.one_message(err), r"Too many open files; .*ulimit -n")

    def test_stdin_goes_to_rank_zero(self):
        status, out, _ = self.shell(3, 'echo "$DIOMP_RANK:$(cat)"', input="hello")
        self.assertEqual((status, sorted(out.splitlines())), (0, ["0:hello", "1:", "2:"]))

    def test_stdin_from_a_file(self):
        with tempfile.TemporaryFile("w+") as file:
            file.write("content")
            file.seek(0)
            status, out, _ = self.shell(2, 'echo "$DIOMP_RANK:$(cat)"', stdin=file)
        self.assertEqual((status, sorted(out.splitlines())), (0, ["0:content", "1:"]))

    def test_stdin_from_a_terminal(self):
        # A terminal of its own, with diomp-run in its foreground.
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(RUN, [RUN, "-n", "2", "sh", "-c",
                            'test $DIOMP_RANK = 1 || { printf "name? "; read x; echo "got $x"; }'],
                      self.environment)
        seen = b""
        answered = False
        while True:
            try:
                self.assertTrue(select.select([terminal], [], [], LIMIT_S)[0], "nothing to read")
                seen += os.read(terminal, 4096)
            except OSError:
                break  # the other side has closed it
            if b"name? " in seen and not answered:
                os.write(terminal, b"diomp\n")
                answered = True
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        os.close(terminal)
        self.assertIn(b"got diomp", seen)

    def test_ctrl_c_at_a_terminal(self):
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(RUN, [RUN, "-n", "2", "sh", "-c", 'echo "ready"; exec sleep 60'], self.environment)
        seen = b""
        asked = False
        while True:
            try:
                self.assertTrue(select.select([terminal], [], [], LIMIT_S)[0], "nothing to read")
                seen += os.read(terminal, 4096)
            except OSError:
                break
            if seen.count(b"ready") == 2 and not asked:
                os.write(terminal, b"\x03")
                asked = True
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 130)
        os.close(terminal)

    def test_closed_standard_descriptors(self):
        result = subprocess.run(["sh", "-c", f'"{RUN}" -n 2 "{PROBE}" exchange <&- >&- 2>&-'],
                                env=self.environment, timeout=LIMIT_S)
        self.assertEqual(result.returncode, 0)

    # ---- Environment and placement

    def test_environment(self):
        self.environment["PLAIN"] = "inherited"
        script = 'echo "$DIOMP_RANK $PLAIN $SET $EMPTY."'
        status, out, _ = self.shell(2, script, "-x", "SET=a b", "-x", "EMPTY=", "-x", "PLAIN",
                                    "-x", "SET=last")
        self.assertEqual((status, sorted(out.splitlines())), (0, ["0 inherited last .", "1 inherited last ."]))

    def test_children_of_a_rank_do_not_join(self):
        status, out, _ = self.run_job("-n", "1", PROBE, "environment")
        self.assertEqual(status, 0)
        # This one names the rank's own process, so that an exec there is noticed.
        seen = re.sub(r"(?m)^DIOMP_LAUNCH_PROCESS=.*\n", "", out)
        self.assertNotEqual(seen, out)
        self.assertEqual(sorted(seen.split()), sorted(["DIOMP_RANK=0", "0", "=".join(self.mark)]
                         + [f"{k}={v}" for k, v in os.environ.items() if k.startswith("DIOMP_")]))

    def test_descriptors_of_a_rank(self):
        # Its three, the launcher's socket and the one that ls opens; nothing of diomp-run's.
        for ranks in FEW_AND_MANY:
            status, out, _ = self.run_job("-n", str(ranks), "--tag-output", "ls", "/proc/self/fd")
            self.assertEqual(status, 0)
            self.assertEqual(len(out.splitlines()), ranks * 5)

    def test_signal_mask_and_handlers_are_the_default(self):
        for ranks in FEW_AND_MANY:
            status, out, _ = self.run_job("-n", str(ranks), "cat", "/proc/self/status")
            self.assertEqual(status, 0)
            masks = [int(mask, 16) for mask in re.findall(r"Sig(?:Blk|Ign|Cgt):\t([0-9a-f]+)", out)]
            # 32 and 33 are glibc's own: its posix_spawn, as make uses it, leaves them ignored for ever.
            self.assertEqual([mask & ~(0b11 << 31) for mask in masks], [0] * 3 * ranks)

    def test_binding(self):
        cpus = sorted(os.sched_getaffinity(0))
        with open("/proc/self/status") as file:
            unbound = next(line for line in file if line.startswith("Cpus_allowed_list"))
        for ranks in FEW_AND_MANY:
            status, out, _ = self.run_job("-n", str(ranks), "--bind-to", "none", "grep", "Cpus_allowed_list",
                                          "/proc/self/status")
            self.assertEqual((status, out), (0, unbound * ranks))
        if len(cpus) < 2:
            self.skipTest("one cpu")
        status, out, _ = self.shell(2, 'grep Cpus_allowed: /proc/self/status')
        masks = [int(line.split()[1].replace(",", ""), 16) for line in out.splitlines()]
        self.assertEqual(masks[0] & masks[1], 0)
        self.assertEqual(masks[0] | masks[1], sum(1 << cpu for cpu in cpus))

    def test_verbose_names_ranks_and_pids(self):
        status, out, err = self.shell(2, "echo $$", "-v")
        self.assertEqual(status, 0)
        for pid in out.split():
            self.assertRegex(err, rf"rank \d of 2 on .*: pid {pid}, ")

    # ---- Signals

    def ready_job(self, *options, ranks=2, script="echo ready; exec sleep 60"):
        process = self.start("-n", str(ranks), *options, "sh", "-c", script)
        self.assertEqual(self.read_lines(process, ranks), ["ready"] * ranks)
        return process

    def test_terminating_signals_are_forwarded(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            with self.subTest(number):
                name = number.name.removeprefix("SIG")
                process = self.ready_job(
                    script=f'trap "echo got {name}; exit 1" {name}; echo ready; while :; do sleep 0.02; done')
                process.send_signal(number)
                out, err = process.communicate(timeout=LIMIT_S)
                self.assertEqual(process.returncode, 128 + number)
                self.assertEqual(out, f"got {name}\n" * 2)
                self.assertIn(number.name, self.one_message(err))

    def test_second_interrupt_kills_at_once(self):
        self.second_interrupt_kills(
            lambda: self.ready_job(script='trap "" INT; echo ready; while :; do sleep 0.02; done'))

    def test_ignored_signals_stay_ignored(self):
        process = self.start_ignoring("HUP INT QUIT USR1 PIPE", "-n", "2", "sh", "-c", "echo $$; exec sleep 60")
        ranks = [int(pid) for pid in self.read_lines(process, 2)]
        ignored = {signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGPIPE}
        for pid in ranks:
            self.assertEqual(self.ignored_by(pid), ignored)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1):
            process.send_signal(number)
        process.send_signal(signal.SIGUSR2)  # not ignored: ends the ranks, and is reported
        _, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 128 + signal.SIGUSR2)
        self.assertIn("was killed by signal 12 (SIGUSR2", self.one_message(err))

    def test_ranks_of_diomp_run_ignore_nothing_by_themselves(self):
        process = self.start("-n", "1", "sh", "-c", "echo $$; exec sleep 60")
        pid = int(self.read_lines(process, 1)[0])
        # Python ignores these two itself, and gives them back to what it starts.
        self.assertEqual(self.ignored_by(pid), set())
        process.terminate()
        process.communicate(timeout=LIMIT_S)

    def test_user_signals_are_forwarded(self):
        process = self.ready_job(script='trap "echo one; exit 0" USR1; echo ready; while :; do sleep 0.02; done')
        process.send_signal(signal.SIGUSR1)
        out, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual((process.returncode, out), (0, "one\none\n"))
        self.assertNotIn("diomp-run", err)

    def test_stop_and_continue(self):
        process = self.start("-n", "2", "sh", "-c", "echo $$; exec sleep 60")
        pids = [int(line) for line in self.read_lines(process, 2)]

        def state(pid):
            with open(f"/proc/{pid}/stat") as file:
                return file.read().rsplit(") ", 1)[1][0]

        process.send_signal(signal.SIGTSTP)
        self.wait_until(lambda: all(state(pid) == "T" for pid in [*pids, process.pid]), "all to stop")
        process.send_signal(signal.SIGCONT)
        self.wait_until(lambda: all(state(pid) == "S" for pid in [*pids, process.pid]), "all to go on")
        process.terminate()
        process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)

    # ---- Nothing is left

    GRANDCHILDREN = 'setsid sleep 60 & sleep 60 & (sleep 60; :) & echo ready; '

    def test_grandchildren_end_with_a_failing_rank(self):
        status, _, _ = self.shell(2, self.GRANDCHILDREN + 'test $DIOMP_RANK = 0 && exit 1; wait')
        self.assertEqual(status, 1)
        self.assertEqual(self.marked(), [])

    def test_grandchildren_end_with_a_job_that_succeeds(self):
        status, _, _ = self.shell(2, self.GRANDCHILDREN + 'exit 0')
        self.assertEqual(status, 0)
        self.assertEqual(self.marked(), [])

    def test_kill_nine_of_diomp_run_leaves_nothing(self):
        process = self.ready_job(script=self.GRANDCHILDREN + "wait")
        self.assertGreaterEqual(len(self.marked()), 9)  # diomp-run, two shells, three each
        process.kill()
        process.wait(timeout=LIMIT_S)
        self.wait_until(lambda: self.marked() == [], "the job's processes to end")

    # ---- Ranks that talk to the launcher

    def test_values_reach_every_rank(self):
        for ranks in (1, 2, 5):
            status, out, err = self.run_job("-n", str(ranks), PROBE, "exchange")
            self.assertEqual((status, err), (0, ""))
            self.assertEqual(sorted(re.findall(r"diomp-run rank (\d+) of (\d+)", out)),
                             [(str(rank), str(ranks)) for rank in range(ranks)])

    def test_replaced_values_reach_every_rank(self):
        self.assertEqual(self.run_job("-n", "3", PROBE, "replace"), (0, "", ""))

    def test_many_ranks(self):
        for ranks in (64, 128):
            status, out, err = self.run_job("-n", str(ranks), PROBE, "exchange")
            self.assertEqual((status, err, len(out.splitlines())), (0, "", ranks))

    def test_without_launcher_is_a_world_of_one(self):
        result = subprocess.run([PROBE, "exchange"], env=self.environment, timeout=LIMIT_S,
                                capture_output=True, text=True)
        self.assertRegex(result.stdout, "^describe: singleton rank 0 of 1 on ")

    def test_two_jobs_at_once(self):
        jobs = [self.start("-n", "4", PROBE, "exchange") for _ in range(2)]
        ids = []
        for process in jobs:
            out, err = process.communicate(timeout=LIMIT_S)
            self.assertEqual((process.returncode, err), (0, ""))
            ids.append(set(re.findall(r"in (\S+)", out)))
        self.assertEqual([len(each) for each in ids], [1, 1])
        self.assertNotEqual(*ids)

    def test_job_within_a_job(self):
        status, out, err = self.run_job("-n", "2", RUN, "-n", "2", PROBE, "exchange")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(len(set(re.findall(r"in (\S+)", out))), 2)

    def test_started_by_a_shell(self):
        status, out, err = self.shell(2, f'"{PROBE}" exchange; exit $?')
        self.assertEqual((status, err, len(out.splitlines())), (0, "", 2))

    def test_second_program_of_a_rank_is_told(self):
        status, _, err = self.shell(1, f'"{PROBE}" exchange; "{PROBE}" exchange')
        self.assertEqual(status, 3)
        self.assertIn("joined the job already", err)

    def test_abort_ends_the_job_with_its_code(self):
        with self.ends_soon():
            status, _, err = self.run_job("-n", "3", PROBE, "abort", "1", "42")
        self.assertEqual(status, 42)
        self.assertIn("probe: own message\n", err)
        self.assertRegex(self.one_message(err), r"rank 1 on .* aborted the job with status 42")

    def test_abort_with_zero_ends_the_job_as_a_success(self):
        for aborting in ("0", "2"):
            with self.ends_soon():
                status, _, err = self.run_job("-n", "3", PROBE, "abort", aborting, "0")
            self.assertEqual((status, err), (0, "probe: own message\n"))

    def test_abort_passes_the_low_bits_of_its_code(self):
        for code, expected in ((255, 255), (256, 0), (257, 1), (-1, 255)):
            status, _, err = self.run_job("-n", "2", PROBE, "abort", "1", str(code))
            self.assertEqual(status, expected)
            self.assertEqual(f"aborted the job with status {code}\n" in err, expected != 0)

    def test_crash_in_a_fence(self):
        status, _, err = self.run_job("-n", "3", PROBE, "crash", "2")
        self.assertEqual(status, 134)
        self.assertRegex(self.one_message(err), r"rank 2 .* killed by signal 6 \(SIGABRT")

    def test_exit_zero_without_finalize_is_a_failure(self):
        status, _, err = self.run_job("-n", "3", PROBE, "leave", "1")
        self.assertEqual(status, 1)
        self.assertRegex(self.one_message(err), r"rank 1 .* status 0 without ompx_finalize\(\) while other ranks")

    def test_rank_that_never_joins_is_a_failure(self):
        status, _, err = self.shell(2, f'test $DIOMP_RANK = 1 || exec "{PROBE}" exchange')
        self.assertEqual(status, 1)
        self.assertRegex(self.one_message(err), r"rank 1 .* without having joined")

    def test_watch_descriptor_tells_the_end(self):
        # The probes ignore SIGTERM and end in time only because the descriptor tells them.
        process = self.start("-n", "3", "sh", "-c",
                             f'test $DIOMP_RANK != 0 || exec sleep 60; exec "{PROBE}" watch')
        self.assertEqual(self.read_lines(process, 2), ["waiting"] * 2)
        sleeper, = [pid for pid in self.marked() if self.command(pid) == b"sleep"]
        os.kill(sleeper, signal.SIGKILL)
        out, _ = process.communicate(timeout=LIMIT_S)
        self.assertEqual((process.returncode, out), (137, "told\n" * 2))

    def test_foreign_launcher_is_an_error(self):
        self.environment.update({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"})
        result = subprocess.run([PROBE, "exchange"], env=self.environment, timeout=LIMIT_S,
                                capture_output=True, text=True)
        self.assertEqual(result.returncode, 3)
        self.assertIn("diomp-run -n N", result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
