#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""diomp-run --remote-devices: services here, and by a remote shell that runs the command on this machine. Nothing is
left of them, and nothing where temporary files go."""
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from job_tools import LIMIT_S, RUN, job_case
from time_limits import scaled

PROGRAM = os.environ["DIOMP_TEST_REGIONS"]
# As ssh does where it matters: what follows the host is joined by blanks and split again by a shell of the other side,
# which learns by which address it has been reached.
REMOTE_SHELL = """#!/bin/sh
host=$1
shift
exec env THIS_HOST="$host" SSH_CONNECTION="127.0.0.1 9 127.0.0.1 22" sh -c "$*"
"""


class remote_devices_test(job_case):
    def setUp(self):
        super().setUp()
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        self.images = os.path.join(self.place.name, "images")
        os.mkdir(self.images)
        self.environment.update(DIOMP_RSH=self.script("rsh", REMOTE_SHELL), TMPDIR=self.images,
                                DIOMP_LOCAL_DEVICES="off")

    def tearDown(self):
        self.wait_until(lambda: not self.marked() and not os.listdir(self.images), "the end of services")
        super().tearDown()

    def script(self, name, text):
        path = os.path.join(self.place.name, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, stat.S_IRWXU)
        return path

    def lent(self, hosts, *words, program=(PROGRAM,), **how):
        return self.run_job("--remote-devices", hosts, *words, "--", *program, **how)

    def ready(self, hosts, *words, ranks=1, todo="wait", **how):
        process = self.start("--remote-devices", hosts, *words, "--", PROGRAM, todo, **how)
        return process, self.devices("\n".join(self.read_lines(process, ranks)))

    @staticmethod
    def devices(text):
        """{rank: processes of its devices}"""
        return {int(rank): [int(word.split("@")[0]) for word in words.split()]
                for rank, words in re.findall(r"^(\d+):(.*)$", text, re.M)}

    def services(self):
        """Those that listen, not their sessions."""
        found = [pid for pid in self.marked() if os.path.basename(self.command(pid)) == b"diomp-deviced"]
        return [pid for pid in found if self.parent(pid) not in found]

    @staticmethod
    def parent(pid):
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rsplit(")", 1)[1].split()[1])

    def check_devices(self, found, counts):
        self.assertEqual({rank: len(pids) for rank, pids in found.items()}, counts)
        every = [pid for pids in found.values() for pid in pids]
        self.assertEqual(len(set(every)), sum(counts.values()), found)
        self.assertTrue(all(pid > 0 for pid in every), found)

    # ---- Who gets what

    def test_one_rank_has_all_devices(self):
        status, out, err = self.lent("localhost:3")
        self.assertEqual((status, err), (0, ""))
        self.check_devices(self.devices(out), {0: 3})

    def test_ranks_share_devices(self):
        status, out, err = self.lent("localhost:4", "-n", "2")
        self.assertEqual((status, err), (0, ""))
        self.check_devices(self.devices(out), {0: 2, 1: 2})

    def test_hosts_by_remote_shell(self):
        status, out, err = self.lent("a:cpu:2,b", "-n", "2")
        self.assertEqual((status, err), (0, ""))
        self.check_devices(self.devices(out), {0: 2, 1: 1})

    def test_devices_of_a_plugin(self):
        status, out, err = self.lent("a:host")
        self.assertEqual((status, err), (0, ""))
        self.check_devices(self.devices(out), {0: 4})
        status, _, err = self.lent("a:host:9")
        self.assertEqual(status, 1)
        self.assertIn("host a has 4 host devices, 9 are requested", err)

    def test_ranks_on_other_hosts(self):
        status, out, err = self.lent("c:2,d:2", "--hosts", "a,b")
        self.assertEqual((status, err), (0, ""))
        self.check_devices(self.devices(out), {0: 2, 1: 2})

    def test_ranks_on_other_hosts_do_not_reach_loopback(self):
        status, _, err = self.lent("localhost:2", "--hosts", "a,b")
        self.assertEqual(status, 1)
        self.assertIn("ranks on other hosts cannot reach 'localhost'", self.one_message(err))

    def test_fewer_devices_than_ranks(self):
        status, _, err = self.lent("localhost,a", "-n", "3")
        self.assertEqual(status, 2)
        self.assertIn("2 devices for 3 ranks", self.one_message(err))

    def test_two_jobs_at_once(self):
        first, one = self.ready("localhost:2,a", todo="again", stdin=-1)
        second, two = self.ready("localhost:2,a", todo="again", stdin=-1)
        self.check_devices({**one, 1: two[0]}, {0: 3, 1: 3})
        self.assertEqual(len(self.services()), 4)
        for process, pids in ((first, one[0]), (second, two[0])):
            out, err = process.communicate("go\n", timeout=LIMIT_S)
            self.assertEqual((process.returncode, out, err), (0, f"{pids[0]}@{os.uname().nodename}\n", ""))

    def test_the_token_is_on_no_command_line(self):
        process, _ = self.ready("localhost,a:2", "-n", "2", ranks=2)
        rank = next(pid for pid in self.marked() if self.command(pid).endswith(b"regions"))
        with open(f"/proc/{rank}/environ", "rb") as file:
            token = dict(word.split(b"=", 1) for word in file.read().split(b"\0") if b"=" in word)[b"DIOMP_TOKEN"]
        self.assertEqual(len(token), 64)
        for word in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{word}/cmdline", "rb") as file:
                    self.assertNotIn(token, file.read())
            except OSError:
                pass  # it has ended
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LIMIT_S)

    # ---- Programs without ranks

    def test_a_rank_that_leaves_without_a_word(self):
        status, out, err = self.lent("localhost:2", "-n", "2", program=(PROGRAM, "leave"))
        self.assertEqual((status, err), (0, ""))
        self.assertIn("late", out)

    def test_a_rank_that_has_no_regions(self):
        script = f'test $DIOMP_RANK = 0 || exit 0; exec "{PROGRAM}"'
        status, out, err = self.lent("localhost:2", "-n", "2", program=("sh", "-c", script))
        self.assertEqual((status, err), (0, ""))
        self.check_devices(self.devices(out), {0: 1})

    # ---- Programs that cannot use them

    def compiled(self, name, compiler, *options):
        """A program with a region by another compiler, or a skip."""
        if shutil.which(compiler) is None:
            self.skipTest(f"no {compiler}")
        source = self.script("region.c", "int main(void) { int x = 1;\n#pragma omp target map(tofrom : x)\nx = 0;\n"
                                         "return x; }\n")
        path = os.path.join(self.place.name, name)
        done = subprocess.run([compiler, "-fopenmp", *options, source, "-o", path], capture_output=True, text=True)
        if done.returncode != 0:
            self.skipTest(f"{compiler}: {done.stderr}")
        return path

    def changed(self, name, *changes):
        """The test's program with other names in its file."""
        content = Path(PROGRAM).read_bytes()
        for old, new in changes:
            self.assertIn(old + b"\0", content)
            content = content.replace(old + b"\0", new.ljust(len(old), b"\0") + b"\0")
        path = os.path.join(self.place.name, name)
        with open(path, "wb") as file:
            file.write(content)
        os.chmod(path, stat.S_IRWXU)
        return path

    @staticmethod
    def libomptarget():
        """The one that the test's program is linked with."""
        return re.search(rb"libomptarget[.]so[.]\d+[.]\d+", Path(PROGRAM).read_bytes()).group()

    def check_refused(self, program, what):
        for words in (), ("-n", "2", "--hosts", "a,b"):
            lenders = "localhost:2" if not words else "c:2"
            status, out, err = self.lent(lenders, *words, program=(program,))
            self.assertEqual((status, out), (2, ""), err)
            self.assertRegex(self.one_message(err), what + ".*; compile it with diompcc, or with clang-19( or clang-22)? -fopenmp "
                                                           "-fopenmp-targets=")

    def test_a_program_of_gcc(self):
        self.check_refused(self.compiled("of_gcc", "gcc"), r"of_gcc \(compiled by gcc \S+\) are gcc's")

    def test_a_program_that_needs_another_libomptarget(self):
        program = self.changed("older", (self.libomptarget(), b"libomptarget.so.16"))
        self.check_refused(program, r"older \(compiled by clang version \S+\) needs libomptarget.so.16, and remote devices "
                                    r"are in DiOMP's libomptarget.so.\d+.1")

    def test_a_program_of_a_later_llvm(self):
        if self.libomptarget() == b"libomptarget.so.19.1":
            program = self.changed("later", (b"omp_offloading_entries", b"llvm_offload_entries"))
        else:
            program = self.changed("later", (self.libomptarget(), b"libomptarget.so.19.1"))
        self.check_refused(program, "later .* (has target regions of LLVM 21 or newer|needs libomptarget.so.19.1, which is not that)")

    def check_unused(self, program, why):
        """The job is fine, and a line says what it has not done."""
        status, _, err = self.lent("localhost:2", program=program)
        self.assertEqual(status, 0, err)
        self.assertRegex(self.one_message(err), f"warning: the job has not used its remote devices: {why}")

    def test_a_program_without_device_code(self):
        program = self.compiled("no_targets", "clang-19")
        self.check_unused([program], r"\S*no_targets has no device code: it is compiled for libomp.so.5 \(compiled by clang "
                                     r"version 19\S*\); compile it with diompcc")

    def test_programs_that_use_no_device(self):
        self.check_unused(["true"], "\\S*true has no device code: it is compiled without OpenMP")
        script = self.script("nothing", "#!/bin/sh\nexit 0\n")
        self.check_unused([script], "none of its programs has loaded DiOMP's libomptarget")
        self.environment["OMP_TARGET_OFFLOAD"] = "disabled"
        status, _, err = self.lent("localhost:2")
        self.assertEqual(status, 0, err)
        # LLVM 19 makes devices nevertheless, which report it at the end; LLVM 22 does not.
        self.assertRegex(err, r"\Adiomp(: warning: the program has not used .*\[remedy: OMP_TARGET_OFFLOAD is DISABLED\]"
                              r"|-run: warning: the job has not used its remote devices: OMP_TARGET_OFFLOAD is DISABLED)\n\Z")

    def test_quiet_says_nothing_about_devices(self):
        self.assertEqual(self.lent("localhost", "-q", program=("true",)), (0, "", ""))

    def test_more_devices_than_64(self):
        status, out, err = self.lent("localhost:70")
        self.assertEqual((status, err), (0, ""))
        self.check_devices(self.devices(out), {0: 70})

    # ---- Failures

    def test_a_host_that_is_not_reached(self):
        self.environment["DIOMP_RSH"] = self.script("no", "#!/bin/sh\necho 'no route' >&2\nexit 255\n")
        status, out, err = self.lent("a")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("diomp-run: a: no route\n", err)
        self.assertIn("cannot reach host a: ", err)

    def test_a_host_without_the_service(self):
        status, _, err = self.lent("localhost,a", "--agent-program", "/nowhere/diomp-run")
        self.assertEqual(status, 1)
        self.assertIn("host a cannot execute /nowhere/diomp-deviced", err)

    def test_a_remote_shell_that_is_missing(self):
        status, _, err = self.lent("a", "--rsh", "no-such-shell")
        self.assertEqual(status, 127)
        self.assertIn("remote shell: ", self.one_message(err))

    def test_an_address_that_the_host_has_not(self):
        shell = self.script("elsewhere", REMOTE_SHELL.replace("127.0.0.1 22", "192.0.2.1 22"))
        status, _, err = self.lent("a", "--rsh", shell)
        self.assertEqual(status, 1)
        self.assertIn("192.0.2.1", err)
        self.assertIn("host a: ", err)

    def test_a_service_that_does_not_start(self):
        self.environment["DIOMP_TIMEOUT"] = "1"
        self.environment["DIOMP_RSH"] = self.script("slow", "#!/bin/sh\nexec sleep 60\n")
        status, _, err = self.lent("a")
        self.assertEqual(status, 1)
        self.assertIn("host a: no device service within 10 s", self.one_message(err))

    def test_a_service_that_is_killed(self):
        for host in ("localhost", "a"):
            process, _ = self.ready(host)
            began = time.monotonic()
            for pid in self.services():
                os.kill(pid, signal.SIGKILL)
            _, err = process.communicate(timeout=LIMIT_S)
            self.assertLess(time.monotonic() - began, scaled(10))
            self.assertEqual(process.returncode, 1)
            self.assertRegex(err, rf"the device service of host {host} is gone: \S+ was killed by signal 9")
            self.assertEqual(os.listdir(self.images), [])

    def test_a_session_that_is_killed_is_an_error_of_its_rank(self):
        process, found = self.ready("localhost:2", todo="again", stdin=-1)
        os.kill(found[0][0], signal.SIGKILL)
        _, err = process.communicate("go\n", timeout=LIMIT_S)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("signal 9", err)

    def test_killed_diomp_run(self):
        process, found = self.ready("localhost:2,a", "-n", "2", ranks=2)
        self.check_devices(found, {0: 2, 1: 1})
        self.assertEqual(len(self.services()), 2)
        process.kill()
        process.wait(timeout=LIMIT_S)  # tearDown waits for the rest

    def test_interrupted_diomp_run(self):
        process, _ = self.ready("localhost,a", "-n", "2", ranks=2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 130)
        self.assertIn("got SIGINT", self.one_message(err))
        self.assertEqual(self.marked(), [])

    def test_interrupted_while_services_start(self):
        self.environment["DIOMP_RSH"] = self.script("slow", "#!/bin/sh\necho started >&2\nexec sleep 60\n")
        process = self.start("--remote-devices", "a,localhost", "--", PROGRAM)
        self.assertEqual(process.stderr.readline(), "diomp-run: a: started\n")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=LIMIT_S), 128 + signal.SIGTERM)

    def test_a_failing_rank_ends_services(self):
        status, _, err = self.lent("localhost,a", "-n", "2", program=("sh", "-c", "exit 3"))
        self.assertEqual(status, 3)
        self.assertIn("exited with status 3", self.one_message(err))
        self.assertEqual(self.marked(), [])

    def test_the_service_refuses_to_be_attached_by_hand(self):
        service = os.path.join(os.path.dirname(RUN), "diomp-deviced")
        done = self.run_job("-n", "1", "--", service, "--attached", "--port", "0")
        self.assertEqual(done[0], 1)
        self.assertIn("standard input ended before the end of the settings", done[2])


if __name__ == "__main__":
    unittest.main()
