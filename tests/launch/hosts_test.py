#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""diomp-run --hosts, with a remote shell that runs the command on this machine: each host is one by name only, but has
a diomp-run, ranks and connections of its own."""
import os
import re
import signal
import stat
import socket
import tempfile
import threading
import time
import unittest

import ports
from job_tools import LIMIT_S, PROBE, RUN, job_case
from time_limits import scaled

# As ssh does: what follows the host is joined by blanks and split again by a shell of the other side.
REMOTE_SHELL = """#!/bin/sh
host=$1
shift
exec env THIS_HOST="$host" sh -c "$*"
"""


TRIES = 200  # of an attack


def many_hosts(count):
    return ",".join(f"h{i}" for i in range(count))


class hosts_test(job_case):
    def setUp(self):
        super().setUp()
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        self.environment["DIOMP_RSH"] = self.script("remote shell", REMOTE_SHELL)

    def script(self, name, text):
        """A shell script; its name as a word of a command."""
        path = os.path.join(self.place.name, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, stat.S_IRWXU)
        return f"'{path}'"

    def hosts(self, hosts, *words, **how):
        return self.run_job("--hosts", hosts, *words, **how)

    def ready(self, hosts, script, count, *options):
        """A job whose ranks have each written a line."""
        process = self.start("--hosts", hosts, *options, "sh", "-c", script)
        return process, self.read_lines(process, count)

    def agents(self):
        return [pid for pid in self.marked() if self.words(pid)[1:2] == ["--agent"]]

    @staticmethod
    def words(pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                return file.read().decode().split("\0")[:-1]
        except OSError:
            return []

    def agent_of(self, host):
        found = []
        for pid in self.agents():
            with open(f"/proc/{pid}/environ", "rb") as file:
                # The guard is a fork of its agent; the agent is its parent.
                if f"THIS_HOST={host}".encode() in file.read().split(b"\0"):
                    found.append(pid)
        return min(found)

    # ---- Ranks and hosts

    def where(self, hosts, *options):
        status, out, err = self.hosts(hosts, *options, "--", "sh", "-c", 'echo "$DIOMP_RANK $THIS_HOST"')
        self.assertEqual((status, err), (0, ""))
        return [line.split()[1] for line in sorted(out.splitlines(), key=lambda line: int(line.split()[0]))]

    def test_ranks_are_spread_evenly(self):
        self.assertEqual(self.where("a,b", "-n", "4"), ["a", "a", "b", "b"])
        self.assertEqual(self.where("a,b,c", "-n", "4"), ["a", "a", "b", "c"])

    def test_slots_are_filled_in_turn(self):
        self.assertEqual(self.where("a:1,b:2"), ["a", "b", "b"])
        self.assertEqual(self.where("a:2,b:2", "-n", "3"), ["a", "a", "b"])

    def test_hostfile(self):
        path = os.path.join(self.place.name, "hosts")
        with open(path, "w") as file:
            file.write("# two\na slots=2\n\nb:1 # one\n")
        status, out, _ = self.run_job("--hostfile", path, "sh", "-c", "echo $THIS_HOST")
        self.assertEqual((status, sorted(out.split())), (0, ["a", "a", "b"]))

    def in_allocation(self, **variables):
        """An environment as Slurm would set it, with a srun that runs the command on this machine."""
        os.mkdir(os.path.join(self.place.name, "slurm"))
        self.script("slurm/srun", '#!/bin/sh\nfor word; do\n'
                                  '    case $word in --nodelist=*) host=${word#*=} ;; --*) ;; *) break ;; esac\n    shift\n'
                                  'done\nexec env THIS_HOST="$host" "$@"\n')
        self.environment["PATH"] = os.path.join(self.place.name, "slurm") + ":" + self.environment["PATH"]
        del self.environment["DIOMP_RSH"]
        self.environment.update(variables)

    def test_allocation_of_slurm(self):
        self.in_allocation(SLURM_JOB_NODELIST="n[1-2],m", SLURM_TASKS_PER_NODE="2(x2),1",
                           SLURM_JOB_CPUS_PER_NODE="4(x2),2")
        where = ("sh", "-c", 'echo "$DIOMP_RANK $THIS_HOST"')
        status, out, err = self.run_job(*where)
        self.assertEqual((status, sorted(out.splitlines()), err), (0, ["0 n1", "1 n1", "2 n2", "3 n2", "4 m"], ""))
        status, out, _ = self.run_job("-n", "3", *where)
        self.assertEqual((status, sorted(out.splitlines())), (0, ["0 n1", "1 n1", "2 n2"]))
        status, _, err = self.run_job("-n", "6", *where)
        self.assertEqual(status, 2)
        self.assertIn("6 ranks do not fit the 5 slots of 3 hosts", err)
        self.assertEqual(self.run_job("-n", "6", "--oversubscribe", *where)[0], 0)
        # Named hosts are reached as without Slurm: this machine needs no remote shell.
        status, out, _ = self.run_job("--hosts", "localhost:2", "sh", "-c", 'echo "on ${THIS_HOST-here}"')
        self.assertEqual((status, out), (0, "on here\n" * 2))

    def test_allocation_of_slurm_runs_a_job(self):
        self.in_allocation(SLURM_JOB_NODELIST="a,b", SLURM_TASKS_PER_NODE="1(x2)", SLURM_JOB_CPUS_PER_NODE="1(x2)")
        status, out, err = self.run_job(PROBE, "exchange")
        self.assertEqual(status, 0, err)
        self.assertEqual(len(set(re.findall(r"rank (\d+) of 2", out))), 2, out)

    def test_allocation_of_pbs(self):
        path = os.path.join(self.place.name, "nodes")
        with open(path, "w") as file:
            file.write("a\na\nb\n")
        self.environment["PBS_NODEFILE"] = path
        status, out, _ = self.run_job("sh", "-c", "echo $THIS_HOST")
        self.assertEqual((status, sorted(out.split())), (0, ["a", "a", "b"]))

    def test_more_ranks_than_slots(self):
        status, _, err = self.hosts("a:1,b:1", "-n", "3", "true")
        self.assertEqual(status, 2)
        self.assertIn("--oversubscribe", self.one_message(err))
        self.assertEqual(self.where("a:1,b:1", "-n", "3", "--oversubscribe"), ["a", "a", "b"])

    def test_nodes_are_told_apart(self):
        status, out, err = self.hosts("a:2,b:3", PROBE, "exchange")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(sorted(re.findall(r"rank (.*), in ", out)),
                         ["0 of 5 on a, local 0 of 2 (0,1)", "1 of 5 on a, local 1 of 2 (0,1)",
                          "2 of 5 on b, local 0 of 3 (2,3,4)", "3 of 5 on b, local 1 of 3 (2,3,4)",
                          "4 of 5 on b, local 2 of 3 (2,3,4)"])

    def test_values_reach_every_rank(self):
        for hosts in ("a", "a,b", "a:3,b:1,c:2"):
            status, out, err = self.hosts(hosts, PROBE, "exchange")
            self.assertEqual((status, err), (0, ""))
        self.assertEqual(sorted(re.findall(r"diomp-run rank (\d+) of (\d+)", out)),
                         [(str(rank), "6") for rank in range(6)])

    def test_replaced_values_reach_every_rank(self):
        self.assertEqual(self.hosts("a:2,b:1,c:2", PROBE, "replace"), (0, "", ""))

    def test_many_hosts(self):
        # More than start at a time; each tries every address of this machine.
        hosts = ",".join(f"h{i}" for i in range(150))
        status, out, err = self.hosts(hosts, "echo", "x")
        self.assertEqual((status, err, out), (0, "", "x\n" * 150))
        hosts = ",".join(f"h{i}:2" for i in range(40))
        status, out, err = self.hosts(hosts, PROBE, "exchange")
        self.assertEqual((status, err, len(out.splitlines())), (0, "", 80))

    # ---- What travels

    def test_environment_and_directory(self):
        self.environment.update({"DIOMP_LOG": "info", "OTHER": "forwarded", "LD_LIBRARY_PATH": "/some where"})
        # As another host would have it.
        shell = self.script("empty shell", '#!/bin/sh\nshift\nexec env -i '
                                           f'{"=".join(self.mark)} PATH="$PATH" OWN=own sh -c "$*"\n')
        status, out, _ = self.hosts(
            "a,b", "--rsh", shell, "-x", "SET=a 'b'", "-x", "OTHER", "sh", "-c",
            'echo "$DIOMP_LOG|$OTHER|$LD_LIBRARY_PATH|$SET|$OWN|$HOME|$(pwd)"', cwd=self.place.name)
        # Our libomptarget comes first where the build has one.
        ours = os.path.normpath(os.path.join(os.path.dirname(RUN), "../lib/diomp"))
        libraries = f"{ours}:/some where" if os.path.exists(f"{ours}/libomptarget.so") else "/some where"
        line = f"info|forwarded|{libraries}|a 'b'|own||{os.path.realpath(self.place.name)}\n"
        self.assertEqual((status, out), (0, line * 2))

    def test_devices_per_rank_reach_every_host(self):
        self.environment["DIOMP_DEVICES_PER_RANK"] = "4"
        status, out, _ = self.hosts("a,b", "--devices-per-rank", "2", "sh", "-c", 'echo "$DIOMP_DEVICES_PER_RANK"')
        self.assertEqual((status, out.split()), (0, ["2", "2"]))

    def test_program_elsewhere_with_an_odd_name(self):
        path = os.path.join(self.place.name, "it's $HOME \"here\"")
        os.symlink(RUN, path)
        status, out, err = self.hosts("a,b", "--agent-program", path, "echo", "x")
        self.assertEqual((status, out, err), (0, "x\nx\n", ""))

    def test_this_machine_needs_no_remote_shell_unless_one_is_named(self):
        self.assertEqual(self.where("localhost:2"), ["localhost", "localhost"])
        own = f"localhost:1,{os.uname().nodename}:1"
        del self.environment["DIOMP_RSH"]
        self.script("ssh", "#!/bin/sh\nexit 255\n")
        self.environment["PATH"] = f"{self.place.name}:{self.environment['PATH']}"
        status, out, err = self.hosts(own, "sh", "-c", 'echo "$DIOMP_RANK"')
        self.assertEqual((status, sorted(out.split()), err), (0, ["0", "1"], ""))
        status, _, err = self.hosts("localhost,elsewhere.invalid", "true")
        self.assertEqual(status, 1)
        self.assertIn("cannot reach host elsewhere.invalid", self.one_message(err))
        status, _, err = self.hosts("localhost", "--agent-program", "/no/such/program", "true")
        self.assertIn("host localhost cannot execute /no/such/program", self.one_message(err))

    def test_head_address(self):
        for address in ("127.0.0.1", "localhost", "lo"):
            self.assertEqual(self.hosts("a,b", "--head-address", address, "true"), (0, "", ""))
        status, _, err = self.hosts("a,b", "--head-address", "192.0.2.1", "true")
        self.assertEqual(status, 2)
        self.assertIn("--head-address 192.0.2.1", self.one_message(err))

    def test_the_secret_is_on_no_command_line(self):
        process, _ = self.ready("a,b", "echo ready; exec sleep 60", 2)
        for pid in self.marked():
            self.assertNotRegex(" ".join(self.words(pid)), "[0-9a-f]{20}")
        process.terminate()
        process.communicate(timeout=LIMIT_S)

    def test_stdin_goes_to_rank_zero(self):
        text = "line\n" * 100_000  # more than any window
        status, out, _ = self.hosts("a:2,b:1", "sh", "-c", 'echo "$DIOMP_RANK $(cat | md5sum)"; exit 0', input=text)
        self.assertEqual(status, 0)
        sums = dict(line.split()[:2] for line in out.splitlines())
        self.assertEqual(sums["1"], sums["2"])
        self.assertEqual(sums["0"], __import__("hashlib").md5(text.encode()).hexdigest())

    def test_stdin_from_a_file(self):
        with tempfile.TemporaryFile("w+") as file:
            file.write("content")
            file.seek(0)
            status, out, _ = self.hosts("a,b", "sh", "-c", 'echo "$DIOMP_RANK:$(cat)"', stdin=file)
        self.assertEqual((status, sorted(out.splitlines())), (0, ["0:content", "1:"]))

    def test_stdin_that_nobody_reads(self):
        status, out, _ = self.hosts("a,b", "sh", "-c", "exec <&-; echo x", input="y" * 1_000_000)
        self.assertEqual((status, out), (0, "x\nx\n"))

    def test_output_of_all_hosts(self):
        status, out, err = self.hosts("a,b", "--tag-output", "sh", "-c", 'printf "a\nb"; echo e >&2')
        self.assertEqual(status, 0)
        self.assertEqual(sorted(out.split("\n")), ["[0] a", "[0] b", "[1] a", "[1] b"])
        self.assertEqual(sorted(err.splitlines()), ["[0] e", "[1] e"])

    def test_large_output_is_complete(self):
        self.check_large_output(2_000_000, "--hosts", "a,b")

    def test_output_dir(self):
        where = os.path.join(self.place.name, "new")
        self.assertEqual(self.hosts("a,b", "--output-dir", where, "sh", "-c", 'echo "$DIOMP_RANK $THIS_HOST"'),
                         (0, "", ""))
        for rank, host in enumerate("ab"):
            with open(os.path.join(where, f"rank-{rank}.out")) as file:
                self.assertEqual(file.read(), f"{rank} {host}\n")

    def test_slow_reader_stops_ranks_but_not_signals(self):
        self.check_signal_with_slow_reader("--hosts", "a,b")

    def test_reader_that_leaves_ends_the_job(self):
        self.check_reader_that_leaves("--hosts", "a,b")

    # ---- Ends

    def test_status_of_the_failing_rank(self):
        with self.ends_soon():
            status, _, err = self.hosts("a:2,b:2", "sh", "-c", "test $DIOMP_RANK != 3 || exit 7; exec sleep 60")
        self.assertEqual(status, 7)
        self.assertRegex(self.one_message(err), r"rank 3 on b \(pid \d+, sh\) exited with status 7")

    def test_killed_rank_is_named(self):
        process, pids = self.ready("a,b", "echo $DIOMP_RANK $$; exec sleep 60", 2)
        pid = dict(line.split() for line in pids)["1"]
        with self.ends_soon():
            os.kill(int(pid), signal.SIGKILL)
            _, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 137)
        self.assertIn(f"rank 1 on b (pid {pid}, sh) was killed by signal 9 (SIGKILL", self.one_message(err))

    def test_abort_ends_the_job_with_its_code(self):
        with self.ends_soon():
            status, _, err = self.hosts("a:2,b:2", PROBE, "abort", "2", "42")
        self.assertEqual(status, 42)
        self.assertRegex(self.one_message(err), r"rank 2 on b \(pid \d+, .*\) aborted the job with status 42")

    def test_abort_with_zero_ends_the_job_as_a_success(self):
        for aborting in ("0", "3"):
            with self.ends_soon():
                status, _, err = self.hosts("a:2,b:2", PROBE, "abort", aborting, "0")
            self.assertEqual((status, err), (0, "probe: own message\n"))

    def test_exit_zero_without_finalize_is_a_failure(self):
        status, _, err = self.hosts("a,b,c", PROBE, "leave", "1")
        self.assertEqual(status, 1)
        self.assertRegex(self.one_message(err), r"rank 1 on b .* status 0 without ompx_finalize\(\) while other ranks")

    def test_watch_descriptor_tells_the_end_on_other_hosts(self):
        process = self.start("--hosts", "a,b,c", "sh", "-c",
                             f'test $DIOMP_RANK != 0 || {{ read x; exit 5; }}; exec "{PROBE}" watch', stdin=-1)
        self.assertEqual(self.read_lines(process, 2), ["waiting"] * 2)
        out, _ = process.communicate("go\n", timeout=LIMIT_S)
        self.assertEqual((process.returncode, out), (5, "told\n" * 2))

    def test_unknown_program(self):
        status, _, err = self.hosts("a,b", "no-such-program")
        self.assertEqual(status, 127)
        self.assertRegex(self.one_message(err), r"[ab]: cannot find 'no-such-program'")

    def test_program_that_one_host_lacks(self):
        # Only the PATH of a has it.
        os.mkdir(os.path.join(self.place.name, "a"))
        self.script("a/only-there", "#!/bin/sh\necho ran\n")
        shell = self.script("shell", f"#!/bin/sh\nhost=$1\nshift\nPATH='{self.place.name}'/$host:$PATH\n"
                                     'exec sh -c "$*"\n')
        status, out, err = self.hosts("a,b", "--rsh", shell, "only-there")
        self.assertEqual((status, out), (127, ""))
        self.assertEqual(self.one_message(err), "diomp-run: b: cannot find 'only-there' in PATH")
        self.assertEqual(self.hosts("a", "--rsh", shell, "only-there"), (0, "ran\n", ""))

    def test_timeout_option(self):
        status, _, err = self.hosts("a,b", "--timeout", "0.3", "sleep", "60")
        self.assertEqual(status, 124)
        self.assertIn("--timeout", self.one_message(err))

    def test_timeout_holds_while_services_start(self):
        shell = self.script("slow", "#!/bin/sh\nexec sleep 60\n")
        status, _, err = self.run_job("--remote-devices", "b:2", "--rsh", shell, "-n", "2", "--timeout", "0.2",
                                      os.environ["DIOMP_TEST_REGIONS"])
        self.assertEqual(status, 124)
        self.assertIn("--timeout", self.one_message(err))

    def test_ignored_signals_stay_ignored_on_every_host(self):
        # Like ssh, this shell starts its command with signals as they are by default.
        shell = self.script("fresh", REMOTE_SHELL.replace("env ", "env --default-signal "))
        process = self.start_ignoring("HUP INT USR1", "--hosts", "a,b", "--rsh", shell, "sh", "-c", "echo $$; exec sleep 60")
        ranks = [int(pid) for pid in self.read_lines(process, 2)]
        ignored = {signal.SIGHUP, signal.SIGINT, signal.SIGUSR1}
        for pid in ranks:
            self.assertEqual(self.ignored_by(pid), ignored)
        agents = self.agents()
        for pid in [process.pid, *agents]:
            os.kill(pid, signal.SIGHUP)
            os.kill(pid, signal.SIGINT)
        process.send_signal(signal.SIGTERM)  # the job still runs, and this one ends it
        _, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assertIn("got SIGTERM", self.one_message(err))

    def test_interrupt(self):
        process, _ = self.ready("a,b", 'trap "echo got; exit 1" INT; echo ready; while :; do sleep 0.02; done', 2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual((process.returncode, out), (130, "got\ngot\n"))
        self.assertIn("SIGINT", self.one_message(err))

    def test_second_interrupt_kills_at_once(self):
        self.second_interrupt_kills(
            lambda: self.ready("a,b", 'trap "" INT; echo ready; while :; do sleep 0.02; done', 2)[0])

    def test_user_signal(self):
        process, _ = self.ready("a,b", 'trap "echo one; exit 0" USR1; echo ready; while :; do sleep 0.02; done', 2)
        process.send_signal(signal.SIGUSR1)
        out, _ = process.communicate(timeout=LIMIT_S)
        self.assertEqual((process.returncode, out), (0, "one\none\n"))

    def test_stop_and_continue_for_longer_than_the_timeout(self):
        self.environment["DIOMP_TIMEOUT"] = "2"
        process, _ = self.ready("a,b", 'echo ready; read x < /dev/null; exec sleep 60', 2)

        def state(pid):
            with open(f"/proc/{pid}/stat") as file:
                return file.read().rsplit(") ", 1)[1][0]

        process.send_signal(signal.SIGTSTP)
        self.wait_until(lambda: state(process.pid) == "T", "diomp-run to stop")
        stopped = time.monotonic()
        self.wait_until(lambda: time.monotonic() - stopped > 3, "the time to pass")
        process.send_signal(signal.SIGCONT)

        def sleepers():
            return [pid for pid in self.marked() if self.words(pid)[:1] == ["sleep"]]

        # A rank may have been stopped before it was a sleep.
        self.wait_until(lambda: len(sleepers()) == 2, "ranks to be what they become")
        self.wait_until(lambda: all(state(pid) == "S" for pid in sleepers()), "ranks to go on")
        process.terminate()
        process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)

    # ---- Nothing is left, whatever dies

    GRANDCHILDREN = 'setsid sleep 60 & sleep 60 & (sleep 60; :) & echo ready; '

    def test_grandchildren_end_with_the_job(self):
        status, _, _ = self.hosts("a,b", "sh", "-c", self.GRANDCHILDREN + "exit 0")
        self.assertEqual((status, self.marked()), (0, []))

    def test_kill_nine_of_the_head(self):
        process, _ = self.ready("a,b", self.GRANDCHILDREN + "wait", 2)
        process.kill()
        process.wait(timeout=LIMIT_S)
        self.wait_until(lambda: self.marked() == [], "the job's processes to end")

    def test_kill_nine_of_an_agent(self):
        process, _ = self.ready("a,b", self.GRANDCHILDREN + "wait", 2)
        with self.ends_soon():
            os.kill(self.agent_of("b"), signal.SIGKILL)
            _, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 1)
        self.assertRegex(self.one_message(err), r"lost host b \(ranks 1 to 1\): the connection")
        self.wait_until(lambda: self.marked() == [], "the job's processes to end")

    def test_agent_that_says_nothing(self):
        self.environment["DIOMP_TIMEOUT"] = "0.5"
        process, _ = self.ready("a,b", "echo ready; exec sleep 60", 2)
        began = time.monotonic()
        os.kill(self.agent_of("b"), signal.SIGSTOP)
        _, err = process.communicate(timeout=LIMIT_S)
        self.assertLess(time.monotonic() - began, scaled(5))
        self.assertEqual(process.returncode, 1)
        self.assertRegex(self.one_message(err), r"lost host b \(ranks 1 to 1\): no word from it for 0.5 s")

    def test_terminated_agent_says_so(self):
        process, _ = self.ready("a,b", "echo ready; exec sleep 60", 2)
        os.kill(self.agent_of("b"), signal.SIGTERM)
        _, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assertRegex(self.one_message(err), r"diomp-run on b \(pid \d+\) got SIGTERM")

    # ---- Remote shells that do not work

    def test_remote_shell_that_cannot_reach_the_host(self):
        shell = self.script("shell", "#!/bin/sh\necho 'no route to host' >&2; exit 255\n")
        status, _, err = self.hosts("a,b", "--rsh", shell, "true")
        self.assertEqual(status, 1)
        self.assertIn("no route to host", err)
        self.assertRegex(self.one_message(err), "cannot reach host [ab]: .*255")

    def test_remote_shell_that_does_not_exist(self):
        status, _, err = self.hosts("a,b", "--rsh", "no-such-shell -q", "true")
        self.assertEqual(status, 127)
        self.assertIn("--rsh or DIOMP_RSH", self.one_message(err))

    def test_diomp_run_that_is_not_there(self):
        status, _, err = self.hosts("a,b", "--agent-program", "/no/such/diomp-run", "true")
        self.assertEqual(status, 1)
        self.assertRegex(self.one_message(err), "host [ab] cannot execute /no/such/diomp-run")

    def test_agent_that_never_connects(self):
        self.environment["DIOMP_TIMEOUT"] = "0.5"
        shell = self.script("shell", "#!/bin/sh\nexec sleep 60\n")
        status, _, err = self.hosts("a,b", "--rsh", shell, "true")
        self.assertEqual(status, 1)
        self.assertRegex(self.one_message(err), "host [ab]: .* has not connected .* --head-address")

    def test_agent_that_cannot_connect_says_so(self):
        # The invitation names a port where nobody listens.
        shell = self.script("shell", "#!/bin/sh\nshift\nsed 's/^address.*/address 127.0.0.1 1/' | sh -c \"$*\"\n")
        status, _, err = self.hosts("a", "--rsh", shell, "true")
        self.assertEqual(status, 1)
        self.assertRegex(err, "127.0.0.1 port 1: Connection refused")
        self.assertIn("before diomp-run there had connected", self.one_message(
            "\n".join(line for line in err.splitlines() if "before" in line)))

    def test_agents_with_a_wrong_secret_are_not_let_in(self):
        self.environment["DIOMP_TIMEOUT"] = "2"
        ended = os.path.join(self.place.name, "ended agents")
        for wrong in "5a" * 32, "$(od -An -N32 -tx1 /dev/urandom | tr -d ' \\n')":
            shell = self.script("shell", f"#!/bin/sh\nshift\nsed \"s/^secret .*/secret {wrong}/\" | sh -c \"$*\"\n"
                                f"status=$?; echo >>'{ended}'; exit $status\n")
            open(ended, "w").close()
            while os.path.getsize(ended) < TRIES // 2:  # the first one that is refused ends its job
                status, out, err = self.hosts(many_hosts(25), "--rsh", shell, "echo", "x")
                self.assertEqual((status, out), (1, ""))
                self.assertIn("closed the connection before it proved who it is", err)
                self.assertIn("does not prove that it knows the secret", err)

    # ---- Connections of others

    def impostor(self, answer):
        """A listener in the place of the head; (its port, what each connection brought). `answer` is sent to each."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        brought = []

        def serve():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.settimeout(LIMIT_S)
                    try:
                        connection.sendall(answer)
                        if answer:
                            connection.shutdown(socket.SHUT_WR)
                        brought.append(connection.recv(4096))
                    except OSError:
                        pass
        threading.Thread(target=serve, daemon=True).start()
        return listener.getsockname()[1], brought

    def test_an_impostor_of_the_head_gets_nothing_and_starts_nothing(self):
        for answer in (b"", bytes(88), os.urandom(88), os.urandom(5000)):
            port, brought = self.impostor(answer)
            shell = self.script("shell", "#!/bin/sh\nshift\n"
                                f"sed 's/^address.*/address 127.0.0.1 {port}/' | sh -c \"$*\"\n")
            self.environment["DIOMP_TIMEOUT"] = "2"
            while len(brought) < TRIES // 4:  # the first one that is refused ends its job
                status, out, err = self.hosts(many_hosts(25), "--rsh", shell, "echo", "x")
                self.assertEqual((status, out), (1, ""))
                self.assertRegex(err, f"127.0.0.1 port {port}: ")
            # Hellos, which look random and differ, and nothing that follows them.
            self.assertEqual(len(set(brought) - {b""}), len(brought) - brought.count(b""))
            for each in brought:
                self.assertLessEqual(len(each), 88)

    def test_an_impostor_beside_the_head_does_no_harm(self):
        port, _ = self.impostor(os.urandom(88))
        shell = self.script("shell", "#!/bin/sh\nshift\n"
                            f"sed 's/^end$/address 127.0.0.1 {port}\\nend/' | sh -c \"$*\"\n")
        status, out, _ = self.hosts("a,b", "--rsh", shell, "echo", "x")
        self.assertEqual((status, out), (0, "x\nx\n"))

    def test_idle_connections_to_the_head_do_no_harm(self):
        go = os.path.join(self.place.name, "go")
        shell = self.script("shell", "#!/bin/sh\nshift\n"
                            f"while [ ! -e '{go}' ]; do sleep 0.01; done\nexec sh -c \"$*\"\n")
        process = self.start("--hosts", "a,b", "--rsh", shell, "echo", "x")
        found = set()

        def listens():
            found.update(ports.listening([process.pid]))
            return found
        self.wait_until(listens, "the head to listen")
        held = [ports.connect(port) for port in found for _ in range(300)]
        for each in held[::2]:
            try:
                each.sendall(os.urandom(88))
            except ConnectionError:
                pass
        with open(go, "w"):
            pass
        out, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual((process.returncode, out), (0, "x\nx\n"), err)
        self.assertLessEqual(err.count("connection from"), 4)
        for each in held:
            self.assertEqual(ports.received(each), b"")
            each.close()

    def test_agent_by_hand(self):
        status, _, err = self.run_job("--agent")
        self.assertEqual(status, 1)
        self.assertIn("--hosts", self.one_message(err))


if __name__ == "__main__":
    unittest.main(verbosity=2)
