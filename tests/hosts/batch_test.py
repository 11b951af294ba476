#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The batch scripts of docs/launch.md, as they stand there, on two hosts: by a Slurm of their own, and as PBS would."""
import os
import re
import subprocess
import tempfile
import unittest

import hosts

PROBE = os.environ["DIOMP_TEST_PROBE"]
RUN = os.environ["DIOMP_TEST_RUN"]
PAGE = os.environ["DIOMP_TEST_PAGE"]
PER_HOST, THREADS = 4, 2
LIMIT_S = 60


def script_of_page(name):
    with open(PAGE) as file:
        return re.search(rf"^<!-- batch script {name} -->\n```bash\n(.*?)^```$", file.read(), re.M | re.S)[1]


class batch_test(unittest.TestCase):
    def setUp(self):
        # The files of all hosts are shared, but for /tmp's like.
        self.folder = tempfile.TemporaryDirectory(dir=os.getcwd(), prefix="batch-")
        self.addCleanup(self.folder.cleanup)
        self.environment = {**os.environ, "PATH": os.path.dirname(RUN) + ":" + os.environ["PATH"]}
        self.write("app", f'#!/bin/sh\necho "threads $OMP_NUM_THREADS"\nexec {PROBE} exchange\n')

    def write(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, 0o755)
        return path

    def run_words(self, *words, **variables):
        done = subprocess.run(words, cwd=self.folder.name, env={**self.environment, **variables}, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=LIMIT_S, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def check_output(self, output):
        """All ranks, on the hosts where the script wants them, with its threads."""
        count = PER_HOST * len(hosts.HOSTS)
        found = set(re.findall(r"describe: \S+ rank (\d+) of (\d+) on (\S+),", output))
        self.assertEqual(found, {(str(rank), str(count), hosts.HOSTS[rank // PER_HOST]) for rank in range(count)}, output)
        self.assertEqual(re.findall(r"^threads (.*)$", output, re.M), [str(THREADS)] * count, output)

    def check_slurm(self, launcher, name):
        hosts.skip_unless_there(launcher)
        import slurm  # only here: it may not be installed
        configuration = slurm.start(PER_HOST * THREADS)
        script = self.write("job.sbatch", script_of_page(name))
        self.run_words("sbatch", "--wait", "--export=ALL", "-o", "out", script, SLURM_CONF=configuration)
        with open(os.path.join(self.folder.name, "out")) as file:
            self.check_output(file.read())

    def test_slurm_with_pmix(self):
        self.check_slurm("srun-pmix", "slurm-pmix")

    def test_slurm_with_diomp_run(self):
        self.check_slurm("srun", "slurm-diomp-run")

    def test_pbs(self):
        nodes = self.write("nodes", "".join(f"{host}\n" * PER_HOST for host in hosts.HOSTS))
        self.check_output(self.run_words("bash", self.write("job.pbs", script_of_page("pbs")), PBS_NODEFILE=nodes,
                                         PBS_O_WORKDIR=self.folder.name, DIOMP_RSH=hosts.RSH))

    def test_scripts_have_no_errors_of_syntax(self):
        for name in ("slurm-pmix", "slurm-diomp-run", "pbs"):
            self.run_words("bash", "-n", self.write("script", script_of_page(name)))


if __name__ == "__main__":
    unittest.main(verbosity=2)
