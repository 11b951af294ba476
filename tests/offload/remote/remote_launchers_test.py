#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks of other launchers, whose values are text, short, or published once: they exchange those of their sessions, too."""
import shutil
import unittest

from services import LIMIT_S, SPACE, remote_case, service

RANK = "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"


class remote_launchers_test(remote_case):
    def check(self, launcher, *options, **variables):
        if shutil.which(launcher) is None:
            self.skipTest(f"no {launcher} here")
        lender = service(self, devices=2, memory="1G")
        program = f'DIOMP_REMOTE_DEVICES="{lender.name}@{RANK}*1" exec "$0"'
        job = self.start([launcher, *options, "-n", "2", "sh", "-c", program, SPACE], {
            "DIOMP_TOKEN": "a token", "DIOMP_LOCAL_DEVICES": "off", "DIOMP_ERRORS": "return", **variables})
        out, err = job.communicate(timeout=LIMIT_S)
        self.assertEqual((job.returncode, out), (0, "remote space: ok\n"), err)

    def test_of_mpich(self):
        self.check("mpiexec.hydra")

    def test_of_open_mpi(self):
        self.check("mpirun.openmpi", "--oversubscribe", "--bind-to", "none", OMPI_ALLOW_RUN_AS_ROOT="1",
                   OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


if __name__ == "__main__":
    unittest.main()
