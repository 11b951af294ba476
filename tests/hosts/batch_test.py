#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The batch scripts of docs/slurm.md and docs/launch.md, as they stand there, on two hosts: by a Slurm of their own, and as
PBS would."""
import os
import re
import subprocess
import tempfile
import unittest

import hosts

PROBE = os.environ["DIOMP_TEST_PROBE"]
RUN = os.environ["DIOMP_TEST_RUN"]
PAGES = os.environ["DIOMP_TEST_PAGES"].split(":")
REGIONS = os.environ.get("DIOMP_TEST_REGIONS")  # not in builds without libomptarget
PER_HOST, THREADS, GPUS = 4, 2, 4
LIMIT_S = 60


def scripts_of_pages():
    """{name: text}"""
    found = {}
    for page in PAGES:
        with open(page) as file:
            found.update(re.findall(r"^<!-- batch script (\S+) -->\n```bash\n(.*?)^```$", file.read(), re.M | re.S))
    return found


SCRIPTS = scripts_of_pages()


class batch_test(unittest.TestCase):
    def setUp(self):
        # The files of all hosts are shared, but for /tmp's like.
        self.folder = tempfile.TemporaryDirectory(dir=os.getcwd(), prefix="batch-")
        self.addCleanup(self.folder.cleanup)
        self.environment = {**os.environ, "PATH": os.path.dirname(RUN) + ":" + os.environ["PATH"]}
        self.write("app", f'#!/bin/sh\necho "threads $OMP_NUM_THREADS"\necho "gpus $CUDA_VISIBLE_DEVICES"\n'
                          f"exec {PROBE} exchange\n")

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

    def run_slurm(self, launcher, name, features=(), gpus=0, **variables):
        """The output of the page's script under a Slurm whose hosts have these features and GPUs."""
        hosts.skip_unless_there(launcher)
        import slurm  # only here: it may not be installed
        configuration = slurm.start(PER_HOST * THREADS, features=features, gpus=gpus)
        script = self.write("job.sbatch", SCRIPTS[name])
        self.run_words("sbatch", "--wait", "--export=ALL", "-o", "out", script, SLURM_CONF=configuration, **variables)
        with open(os.path.join(self.folder.name, "out")) as file:
            return file.read()

    def check_slurm(self, launcher, name, **what):
        output = self.run_slurm(launcher, name, **what)
        self.check_output(output)
        return output

    def check_remote_devices(self, name, **what):
        """The program's two devices are the other host's."""
        if not REGIONS:
            self.skipTest("this build has no libomptarget")
        self.write("app", f"#!/bin/sh\nexec {REGIONS}\n")
        output = self.run_slurm("srun", name, DIOMP_TIMEOUT="10", **what)
        places = re.findall(r"^(\d+):(.*)$", output, re.M)
        self.assertEqual([(rank, [word.split("@")[1] for word in words.split()]) for rank, words in places],
                         [("0", [hosts.HOSTS[1]] * 2)], output)

    def test_slurm_with_pmix(self):
        self.check_slurm("srun-pmix", "slurm-pmix")

    def test_slurm_with_diomp_run(self):
        self.check_slurm("srun", "slurm-diomp-run")

    def test_slurm_with_gpus(self):
        output = self.check_slurm("srun", "slurm-gpus", gpus=GPUS)
        count = PER_HOST * len(hosts.HOSTS)
        self.assertEqual(re.findall(r"^gpus (.*)$", output, re.M), [",".join(map(str, range(GPUS)))] * count, output)

    def test_slurm_with_remote_devices(self):
        self.check_remote_devices("slurm-remote-devices")

    def test_slurm_with_dpus(self):
        self.check_remote_devices("slurm-dpus", features=("host", "dpu"), DIOMP_ON_DPU=os.path.dirname(os.path.dirname(RUN)))

    def test_pbs(self):
        nodes = self.write("nodes", "".join(f"{host}\n" * PER_HOST for host in hosts.HOSTS))
        self.check_output(self.run_words("bash", self.write("job.pbs", SCRIPTS["pbs"]), PBS_NODEFILE=nodes,
                                         PBS_O_WORKDIR=self.folder.name, DIOMP_RSH=hosts.RSH))

    def test_scripts_have_no_errors_of_syntax(self):
        self.assertEqual(len(SCRIPTS), 6, "the pages have another number of scripts")
        for text in SCRIPTS.values():
            self.run_words("bash", "-n", self.write("script", text))


if __name__ == "__main__":
    unittest.main(verbosity=2)
