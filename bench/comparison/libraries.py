# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs that are compared and how each is started.

With as many cores as ranks, every rank is bound to a core of its own. With more ranks than cores nothing is bound;
Open MPI then gets mpi_yield_when_idle, without which it waits for scheduler ticks, and so does the job that measures
message rate, where the idle rank would take the core of a sending thread. The others, ours among them, get no
setting.
"""

import os
import re
import shutil
import signal
import subprocess
import time

# Start-up and sizes up to 16 MiB take seconds; a longer run hangs.
TIMEOUT_S = 90

ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   SHMEM_SYMMETRIC_HEAP_SIZE="512M", SHMEM_SYMMETRIC_SIZE="512M")


def execute(command):
    """(exit status, output, seconds); the status is None if the command ran past the time limit."""
    start = time.monotonic()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", env=ENVIRONMENT, start_new_session=True) as process:
        try:
            output, _ = process.communicate(timeout=TIMEOUT_S)
            return process.returncode, output, time.monotonic() - start
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            return None, output, time.monotonic() - start


def last_line(output):
    lines = [line for line in output.splitlines() if line.strip() and not line.startswith("---")]
    return lines[-1].strip() if lines else "no output"


class Library:
    """One program and its launcher."""

    starts_jobs = True
    ignores_status = False
    crawls_when_shared = False

    def __init__(self, name, program, launcher):
        self.name, self.program, self.launcher = name, str(program), launcher

    def command(self, ranks, yields):
        raise NotImplementedError

    def supported(self, benchmarks, ranks):
        del ranks
        return [name for name in benchmarks if name != "memcpy"]

    def rounds(self, job, quick):
        if self.crawls_when_shared and job.ranks > os.cpu_count():
            return 0 if quick else 1
        return job.rounds

    def run(self, ranks, arguments, yields, output):
        """None, or the error."""
        status, text, _ = execute(self.command(ranks, yields or ranks > os.cpu_count()) + arguments)
        if status is None:
            return f"stopped after {TIMEOUT_S} s"
        if (status != 0 and not self.ignores_status) or not output.exists():
            return f"status {status}: {last_line(text)}"
        return None

    def time_hello(self, ranks):
        """(seconds, largest resident KiB of a rank or None, problem or None)"""
        status, text, seconds = execute(self.command(ranks, ranks > os.cpu_count()) + ["hello"])
        if status != 0 and not self.ignores_status:
            return None, None, f"status {status}: {last_line(text)}"
        sizes = [int(a) + int(b) for a, b in re.findall(r"resident_kib anonymous (\d+) shared (\d+)", text)]
        return seconds, max(sizes, default=None), None


class Diomp(Library):
    def command(self, ranks, yields):
        return [self.launcher, "-n", str(ranks), "--", self.program]

    def supported(self, benchmarks, ranks):
        return benchmarks


class OpenMpi(Library):
    def command(self, ranks, yields):
        words = [self.launcher, "-n", str(ranks)]
        if ranks > os.cpu_count():
            words += ["--oversubscribe", "--bind-to", "none"]
        else:
            words += ["--bind-to", "core", "--map-by", "core"]
        if yields:
            words += ["--mca", "mpi_yield_when_idle", "1"]
        return words + [self.program]


class OpenShmem(OpenMpi):
    # Debian's Open MPI 4.1.4 crashes in shmem_finalize(); the program leaves without it, which its launcher
    # reports as a failure. The rows, complete and checked, have been written by then.
    ignores_status = True

    def supported(self, benchmarks, ranks):
        lacking = ["memcpy", "lock", "reduce", "gather", "scatter", "reduce_scatter"]
        return [name for name in benchmarks if name not in lacking]


class Mpich(Library):
    # It only spins: a barrier of 8 ranks on 2 cores takes some 50 ms. One round is enough to show that, and a quick
    # comparison leaves it out.
    crawls_when_shared = True

    def command(self, ranks, yields):
        bound = [] if ranks > os.cpu_count() else ["-bind-to", "core"]
        return [self.launcher, "-n", str(ranks)] + bound + [self.program]


class Limits(Library):
    starts_jobs = False

    def command(self, ranks, yields):
        return [self.program, "--ranks", str(ranks)]

    def supported(self, benchmarks, ranks):
        return [name for name in benchmarks if name in ("memcpy", "barrier")]


KINDS = {
    "diomp": (Diomp, "bin/diomp-bench", ["bin/diomp-run"]),
    "openmpi": (OpenMpi, "bench/bench_openmpi", ["mpirun.openmpi", "mpirun"]),
    "mpich": (Mpich, "bench/bench_mpich", ["mpiexec.hydra", "mpiexec.mpich"]),
    "openshmem": (OpenShmem, "bench/bench_openshmem", ["oshrun"]),
    "limits": (Limits, "bench/bench_limits", []),
}


def find(build, wanted, kinds=None, *placement):
    """The libraries that can run, and the reasons for those that cannot. `placement`: see hosts.py."""
    present, skipped = [], {}
    for name, (kind, program, launchers) in (kinds or KINDS).items():
        if name != "diomp" and name not in wanted:
            continue
        found = [shutil.which(str(build / word) if "/" in word else word) for word in launchers]
        launcher = next(filter(None, found), None)
        if not (build / program).exists():
            skipped[name] = f"{program} was not built (its compiler was not found, or the build is not complete)"
        elif launchers and launcher is None:
            skipped[name] = "no launcher: " + " or ".join(launchers)
        else:
            present.append(kind(name, build / program, launcher, *placement))
    return present, skipped
