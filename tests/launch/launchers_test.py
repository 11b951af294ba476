#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Jobs under launchers that are not ours: Open MPI's mpirun, MPICH's mpiexec.hydra, Slurm's srun.

Two nodes are made out of one machine by a remote shell that gives its commands another host name.
"""
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
import processes  # noqa: E402 (tests/support)
import slurm_cluster  # noqa: E402 (beside this file)

PROBE = os.environ["DIOMP_TEST_PROBE"]
PROGRAM = os.environ["DIOMP_TEST_PROGRAM"]  # a test of the runtime that runs on any number of ranks
LIMIT_S = 60
# Between the end of a job and that of its last process.
END_LIMIT_S = 10
REMOTE_SHELL = """#!/bin/sh
host=$1; shift
exec unshare --uts sh -c "hostname $host; exec sh -c '$*'"
"""
DESCRIPTION = re.compile(r"^describe: (\S+) rank (\d+) of (\d+) on (\S+), local (\d+) of (\d+) \(([\d,]+)\), "
                         r"in ([A-Za-z0-9._-]+)$", re.MULTILINE)
FOREIGN = ("GASPI_", "PMI_", "PMIX_", "SLURM_", "OMPI_", "HYD", "DIOMP_LAUNCH_")


class launcher_case(unittest.TestCase):
    def setUp(self):
        self.mark = processes.new_mark()
        self.environment = dict([(k, v) for k, v in os.environ.items() if not k.startswith(FOREIGN)] + [self.mark])
        self.environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def tearDown(self):
        deadline = time.monotonic() + END_LIMIT_S
        while self.marked() and time.monotonic() < deadline:
            time.sleep(0.05)
        processes.end_all(self, self.marked())

    # ---- Tools

    def need(self, *programs):
        for program in programs:
            if shutil.which(program) is None:
                self.skipTest(f"{program} is not installed")

    def marked(self):
        return processes.carrying(*self.mark)

    def run_words(self, *words, **variables):
        return subprocess.run(words, env={**self.environment, **variables}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=LIMIT_S, check=False)

    def check_job(self, done, launcher, size, nodes=None):
        """Every rank joined one and the same job. `nodes`: for each node its name and ranks."""
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = DESCRIPTION.findall(done.stdout)
        nodes = nodes or {os.uname().nodename: list(range(size))}
        expected = []
        for host, ranks in nodes.items():
            for local, rank in enumerate(ranks):
                expected.append((launcher, str(rank), str(size), host, str(local), str(len(ranks)),
                                 ",".join(map(str, ranks))))
        self.assertEqual(sorted(each[:-1] for each in found), sorted(expected), done.stdout + done.stderr)
        self.assertEqual(len({each[-1] for each in found}), 1, done.stdout)

    def check_failed(self, done, status=None):
        if status is None:
            self.assertNotEqual(done.returncode, 0, done.stdout + done.stderr)
        else:
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)

    def check_children(self, done, size):
        """Each rank's child was a world of one."""
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual([each[:3] for each in DESCRIPTION.findall(done.stdout)], [("singleton", "0", "1")] * size)

    def check_absent_rank(self, variable):
        """Rank 1, by this variable, is another program, for which rank 0 does not wait for ever."""
        script = f'if [ "${variable}" = 1 ]; then exec sleep 90; fi; exec "{PROGRAM}"'
        done = self.job(2, "sh", "-c", script, DIOMP_WARN_AFTER="1", DIOMP_TIMEOUT="2")
        self.check_failed(done)
        self.assertRegex(done.stderr, r"warning: has been waiting for other ranks to join the job, .* for 1 s")
        self.assertIn("timed out after 30 s waiting for other ranks to join the job", done.stderr)

    def remote_shell(self):
        """The path of a remote shell to hosts that are names."""
        if os.geteuid() != 0 or subprocess.run(["unshare", "--uts", "true"], check=False).returncode != 0:
            self.skipTest("may not make name spaces for host names")
        folder = tempfile.mkdtemp(prefix="diomp-launch-")
        self.addCleanup(shutil.rmtree, folder)
        path = os.path.join(folder, "rsh")
        with open(path, "w", encoding="utf-8") as file:
            file.write(REMOTE_SHELL)
        os.chmod(path, stat.S_IRWXU)
        return path


class mpirun_test(launcher_case):
    def setUp(self):
        super().setUp()
        self.mpirun = shutil.which("mpirun.openmpi") or shutil.which("mpirun") or ""
        if not re.search("Open MPI|OpenRTE", self.mpirun and self.run_words(self.mpirun, "--version").stdout):
            self.skipTest("Open MPI's mpirun is not installed")

    def job(self, size, *words, options=(), **variables):
        return self.run_words(self.mpirun, "-n", str(size), "--oversubscribe", "--bind-to", "none", *options, *words,
                              **variables)

    def test_one_rank(self):
        self.check_job(self.job(1, PROBE, "exchange"), "PMIx", 1)

    def test_two_ranks(self):
        self.check_job(self.job(2, PROBE, "exchange"), "PMIx", 2)

    def test_four_ranks(self):
        self.check_job(self.job(4, PROBE, "exchange"), "PMIx", 4)

    def test_values_fetched_one_by_one(self):
        self.check_job(self.job(4, PROBE, "exchange", DIOMP_LAUNCH_PMIX_COLLECT="0"), "PMIx", 4)

    def test_two_nodes(self):
        options = ["--mca", "plm_rsh_agent", self.remote_shell(), "--host", "nodea:2,nodeb:2"]
        self.check_job(self.job(4, PROBE, "exchange", options=options), "PMIx", 4, {"nodea": [0, 1], "nodeb": [2, 3]})

    def test_program(self):
        self.check_failed(self.job(2, PROGRAM), 0)
        self.check_failed(self.job(4, PROGRAM), 0)

    def test_child_of_a_rank(self):
        self.check_children(self.job(2, PROBE, "child"), 2)

    def test_abort(self):
        self.check_failed(self.job(3, PROBE, "abort", "1", "17"), 17)

    def test_rank_that_exits_with_three(self):
        self.check_failed(self.job(3, PROBE, "fail", "1"), 3)

    def test_rank_that_leaves_without_finalize(self):
        self.check_failed(self.job(3, PROBE, "leave", "1"))

    def test_rank_that_dies(self):
        self.check_failed(self.job(3, PROBE, "crash", "1"), 128 + signal.SIGABRT)

    def test_rank_that_never_joins(self):
        self.check_absent_rank("PMIX_RANK")

    def test_mpirun_killed(self):
        for what, waiting in ("watch", 2), ("compute", 3):
            with subprocess.Popen([self.mpirun, "-n", "3", "--oversubscribe", PROBE, what, "0"], env=self.environment,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  text=True) as process:
                self.assertEqual([process.stdout.readline() for _ in range(waiting)], ["waiting\n"] * waiting)
                process.kill()
        # tearDown looks for ranks that have not heard of it; they ignore SIGTERM.

    def test_library_that_cannot_be_opened(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "libpmix.so.2"), "w", encoding="utf-8") as file:
                file.write("no library")
            done = self.job(2, "env", "LD_LIBRARY_PATH=" + folder, PROBE, "exchange")
        self.check_failed(done)
        self.assertIn("install libpmix2", done.stderr)
        self.assertNotIn("describe", done.stdout)


class hydra_test(launcher_case):
    def setUp(self):
        super().setUp()
        self.need("mpiexec.hydra")

    def job(self, size, *words, options=(), version=None, **variables):
        if version is not None:
            variables["DIOMP_LAUNCH_PMI_VERSION"] = str(version)
        return self.run_words("mpiexec.hydra", "-n", str(size), *options, *words, **variables)

    def test_one_rank(self):
        self.check_job(self.job(1, PROBE, "exchange"), "PMI-1", 1)

    def test_four_ranks(self):
        self.check_job(self.job(4, PROBE, "exchange"), "PMI-1", 4)

    def test_four_ranks_with_the_second_version(self):
        self.check_job(self.job(4, PROBE, "exchange", version=2), "PMI-2", 4)

    def two_nodes(self, version):
        options = ["-launcher", "rsh", "-launcher-exec", self.remote_shell(), "-hosts", "nodea,nodeb", "-ppn", "2"]
        self.check_job(self.job(4, PROBE, "exchange", options=options, version=version), f"PMI-{version}", 4,
                       {"nodea": [0, 1], "nodeb": [2, 3]})

    def test_two_nodes(self):
        self.two_nodes(1)

    def test_two_nodes_with_the_second_version(self):
        self.two_nodes(2)

    def test_program(self):
        self.check_failed(self.job(2, PROGRAM), 0)
        self.check_failed(self.job(4, PROGRAM), 0)

    def test_program_with_the_second_version(self):
        for size in (2, 4, 8):
            self.check_failed(self.job(size, PROGRAM, version=2), 0)

    def test_ranks_connect_during_fences(self):
        """Their threads look up addresses while others wait for the end of a fence."""
        for version in (1, 2) * 8:
            done = self.job(8, PROGRAM, version=version, DIOMP_NODE_SIZE="1", DIOMP_TIMEOUT="20")
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_child_of_a_rank(self):
        self.check_children(self.job(2, PROBE, "child"), 2)

    def test_abort(self):
        self.check_failed(self.job(3, PROBE, "abort", "1", "17"), 17)
        self.assertEqual(self.job(3, PROBE, "abort", "1", "0").returncode, 0)
        self.check_failed(self.job(3, PROBE, "abort", "1", "17", version=2))

    def test_rank_that_exits_with_three(self):
        self.check_failed(self.job(3, PROBE, "fail", "1"))

    def test_rank_that_leaves_without_finalize(self):
        # The others are in a fence that cannot end. hydra kills them; its status is 9 or 0, as it comes.
        self.job(3, PROBE, "leave", "1")

    def test_rank_that_dies(self):
        self.check_failed(self.job(3, PROBE, "crash", "1"))

    def test_proxy_killed(self):
        with subprocess.Popen(["mpiexec.hydra", "-n", "3", PROBE, "compute", "0"], env=self.environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True) as process:
            self.assertEqual([process.stdout.readline() for _ in range(3)], ["waiting\n"] * 3)
            for pid in self.marked():
                if "hydra_pmi_proxy" in processes.describe(pid):
                    os.kill(pid, signal.SIGKILL)
            deadline = time.monotonic() + END_LIMIT_S
            while [pid for pid in self.marked() if f": {PROBE} " in processes.describe(pid)]:
                self.assertLess(time.monotonic(), deadline, "ranks are left")
                time.sleep(0.05)
            process.kill()  # it waits for its proxy

    def test_rank_that_never_joins(self):
        self.check_absent_rank("PMI_RANK")

    def test_job_by_port_is_an_error(self):
        done = self.job(2, PROBE, "exchange", options=["-pmi-port"])
        self.check_failed(done)
        self.assertIn("without -pmi-port", done.stderr)


class gaspi_run_test(launcher_case):
    """GPI-2's gaspi_run starts all but the first rank over ssh: here by a stand-in that runs the command."""

    def setUp(self):
        super().setUp()
        self.gaspi_run = os.environ.get("DIOMP_TEST_GASPI_RUN", "")
        if not os.path.isfile(self.gaspi_run):
            self.skipTest("gaspi_run is not installed, or this build has no GPI-2")
        self.need("bash")  # of which gaspi_run is a script, although it says sh
        self.folder = tempfile.mkdtemp(prefix="diomp-launch-")
        self.addCleanup(shutil.rmtree, self.folder)
        # At a failure gaspi_run kills by name whatever is called like the program, of other tests as well.
        self.write("ssh", 'shift\ncase "$*" in *killall*) exit 0 ;; esac\nexec bash -c "$*"')

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        os.chmod(path, stat.S_IRWXU)
        return path

    def job(self, size, *words, **variables):
        # gaspi_run gives the first rank all arguments as one.
        program = self.write("program", "exec " + " ".join(words))
        return self.run_words("bash", self.gaspi_run, "-n", str(size), program,
                              PATH=self.folder + ":" + self.environment["PATH"], **variables)

    def test_one_rank(self):
        self.check_job(self.job(1, PROBE, "exchange"), "gaspi", 1)

    def test_two_ranks(self):
        self.check_job(self.job(2, PROBE, "exchange"), "gaspi", 2)

    def test_four_ranks(self):
        self.check_job(self.job(4, PROBE, "exchange"), "gaspi", 4)

    def test_program(self):
        self.check_failed(self.job(2, PROGRAM), 0)

    def test_program_over_gpi2(self):
        self.check_failed(self.job(4, PROGRAM, DIOMP_CONDUIT="gaspi"), 0)

    def test_program_on_two_nodes(self):
        self.check_failed(self.job(4, PROGRAM, DIOMP_NODE_SIZE="2"), 0)

    def test_child_of_a_rank(self):
        self.check_children(self.job(2, PROBE, "child"), 2)

    def test_abort(self):
        self.check_failed(self.job(3, PROBE, "abort", "1", "17"))
        self.check_failed(self.job(3, PROBE, "abort", "0", "17"))


class slurm_test(launcher_case):
    def setUp(self):
        super().setUp()
        reason = slurm_cluster.why_not()
        if reason:
            self.skipTest(reason)
        cluster = slurm_cluster.slurm_cluster()
        self.addCleanup(cluster.stop)  # once more, in case it does not start
        self.cluster = cluster
        self.cluster.environment |= [self.mark]
        self.cluster.start()

    def tearDown(self):
        if hasattr(self, "cluster"):
            self.cluster.stop()
        super().tearDown()

    def srun(self, plugin, size, *words, options=(), **variables):
        return self.cluster.run("srun", "--mpi=" + plugin, "-n", str(size), *options, *words, **variables)

    def need_plugin(self, plugin):
        listed = self.cluster.run("srun", "--mpi=list")
        if plugin not in (listed.stdout + listed.stderr).split():
            self.skipTest(f"this Slurm has no plugin {plugin}")

    def jobs_under(self, plugin, launcher):
        self.need_plugin(plugin)
        for size in (1, 2, 4):
            self.check_job(self.srun(plugin, size, PROBE, "exchange"), launcher, size)
        self.check_children(self.srun(plugin, 2, PROBE, "child"), 2)
        self.check_failed(self.srun(plugin, 2, PROGRAM), 0)

    def failures_under(self, plugin):
        self.need_plugin(plugin)
        for options in ((), ("--kill-on-bad-exit",)):
            self.check_failed(self.srun(plugin, 3, PROBE, "abort", "1", "17", options=options))
        for how in ("crash", "fail"):
            self.check_failed(self.srun(plugin, 3, PROBE, how, "1", options=["--kill-on-bad-exit"]))

    def test_jobs_under_pmix(self):
        self.jobs_under("pmix", "PMIx")
        self.check_job(self.srun("pmix", 4, PROBE, "exchange", DIOMP_LAUNCH_PMIX_COLLECT="0"), "PMIx", 4)

    def test_jobs_under_pmi2(self):
        self.jobs_under("pmi2", "PMI-2")
        self.check_job(self.srun("pmi2", 4, PROBE, "exchange", DIOMP_LAUNCH_PMI_VERSION="1"), "PMI-1", 4)

    def test_failures_under_pmix(self):
        self.failures_under("pmix")

    def test_failures_under_pmi2(self):
        self.failures_under("pmi2")

    def test_srun_without_a_pmi_is_an_error(self):
        done = self.srun("none", 2, PROBE, "exchange")
        self.check_failed(done)
        self.assertIn("srun --mpi=pmix", done.stderr)
        self.assertNotIn("describe", done.stdout)

    def test_srun_of_one_task_is_a_world_of_one(self):
        self.check_job(self.srun("none", 1, PROBE, "exchange"), "singleton", 1)

    def test_batch_script_is_a_world_of_one(self):
        script = os.path.join(self.cluster.folder, "script")
        out = os.path.join(self.cluster.folder, "script.out")
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n#SBATCH -n 4\n#SBATCH -o {out}\nexec {PROBE} exchange\n")
        submitted = self.cluster.run("sbatch", "--wait", script)
        with open(out, encoding="utf-8") as file:
            submitted.stdout = file.read()
        self.check_job(submitted, "singleton", 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
