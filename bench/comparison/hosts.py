# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The libraries on several hosts, and the goals of DiOMP there.

A shape is (hosts, ranks per host). Ranks of a host are neighbours. Ranks are not bound if the hosts are namespaces of
one machine with fewer cores than ranks; Open MPI gets mpi_yield_when_idle then, DiOMP never gets a setting.
"""

import os

from . import libraries

# One shape after the other; transfers only if no ranks share a core.
SHAPES = [(2, 1), (2, 2), (4, 1), (4, 2)]
POINT_TO_POINT = ["put", "get", "bandwidth", "rate"]
COLLECTIVE = ["barrier", "bcast", "allreduce"]
LARGE = 64 * 1024


class Placement:
    """Placement of ranks: names of the hosts, and the remote shell."""

    def __init__(self, names, rsh, one_machine):
        self.names, self.rsh, self.one_machine = names, rsh, one_machine

    def listed(self, hosts, per_host):
        return ",".join(f"{name}:{per_host}" for name in self.names[:hosts])

    def crowded(self, hosts, per_host):
        return per_host * (hosts if self.one_machine else 1) > os.cpu_count()


class HostLibrary(libraries.Library):
    """One program and its launcher over a placement."""

    def __init__(self, name, program, launcher, placement):
        super().__init__(name, program, launcher)
        self.placement, self.shape = placement, SHAPES[0]

    def supported(self, benchmarks, ranks):
        del ranks
        return benchmarks

    def size(self):
        return str(self.shape[0] * self.shape[1])


class Diomp(HostLibrary):
    def command(self, ranks, yields):
        words = [self.launcher, "-n", self.size(), "--hosts", self.placement.listed(*self.shape), "--rsh",
                 self.placement.rsh]
        # Otherwise each host would bind its ranks to the same first cores.
        words += ["--bind-to", "none"] if self.placement.one_machine else []
        return words + ["--", self.program]


class OpenMpi(HostLibrary):
    """Messages over the TCP BTL; one-sided calls of ranks on several hosts need osc pt2pt then."""

    transport = ["--mca", "pml", "ob1", "--mca", "btl", "tcp,vader,self", "--mca", "osc", "pt2pt"]

    def command(self, ranks, yields):
        words = [self.launcher, "-n", self.size(), "--host", self.placement.listed(*self.shape), "--mca",
                 "plm_rsh_agent", self.placement.rsh, "--bind-to", "none"]
        if self.placement.crowded(*self.shape):
            words += ["--mca", "mpi_yield_when_idle", "1"]
        return words + self.transport + [self.program]

    def run(self, ranks, arguments, yields, output):
        return super().run(ranks, arguments + ["--threads", "1"], yields, output)


class OpenMpiUcx(OpenMpi):
    transport = ["--mca", "pml", "ucx", "--mca", "osc", "ucx", "--mca", "opal_common_ucx_tls", "any", "--mca",
                 "opal_common_ucx_devices", "any"]


class Mpich(HostLibrary):
    def command(self, ranks, yields):
        return [self.launcher, "-n", self.size(), "-hosts", self.placement.listed(*self.shape), "-launcher-exec",
                self.placement.rsh, "-launcher", "ssh", self.program]

    def supported(self, benchmarks, ranks):
        # It only spins: with more ranks than cores a barrier takes scheduler ticks.
        return [] if self.placement.crowded(*self.shape) else benchmarks


class Tcp(HostLibrary):
    """The lower limit: one connection, two processes."""

    def command(self, ranks, yields):
        return [self.program, "--rsh", self.placement.rsh, "--host", self.placement.names[1], "--threads", "1"]

    def supported(self, benchmarks, ranks):
        wanted = POINT_TO_POINT + ["barrier"]
        return [name for name in benchmarks if name in wanted] if self.shape == (2, 1) else []


KINDS = {
    "diomp": (Diomp, "bin/diomp-bench", ["bin/diomp-run"]),
    "ompi-tcp": (OpenMpi, "bench/bench_openmpi", ["mpirun.openmpi", "mpirun"]),
    "ompi-ucx": (OpenMpiUcx, "bench/bench_openmpi", ["mpirun.openmpi", "mpirun"]),
    "mpich": (Mpich, "bench/bench_mpich", ["mpiexec.hydra", "mpiexec.mpich"]),
    "tcp": (Tcp, "bench/bench_tcp", []),
}
PEERS = ["ompi-tcp", "ompi-ucx", "mpich"]


def goal_of(results, row):
    """(sentence, list of (value, largest that passes) or None where the other side is missing)"""
    us, operation, size = row["us"], row["operation"], row["size_bytes"]
    if row["buffers"] == "global":
        return None  # for information: peers have no such memory
    peers = [us[name] for name in PEERS if name in us]
    against_peers = (us["diomp"] / min(peers), 1.0) if peers else None

    def against_floor(factor):
        return (us["diomp"] / us["tcp"], factor) if "tcp" in us else None

    if operation in ("put", "get") and size <= 4096:
        return "<= 1.25 tcp, < peers", [against_floor(1.25), against_peers]
    if operation in ("put", "get", "put_window", "get_window") and size >= LARGE:
        return ">= 0.85 tcp, < peers", [against_floor(1 / 0.85), against_peers]
    if operation == "rate" and row["threads"] == 1:
        return "<= Open MPI", [(us["diomp"] / us["ompi-tcp"], 1.0) if "ompi-tcp" in us else None]
    if operation == "rate":
        single = results.median("rate", row["buffers"], dict(row, threads=1), "diomp")
        return "not below 1 thread", [(us["diomp"] / single[0], 1.0) if single else None]
    if operation in COLLECTIVE:
        mpi = [us[name] for name in ("ompi-tcp", "ompi-ucx") if name in us]
        return "< Open MPI", [(us["diomp"] / min(mpi), 1.0) if mpi else None]
    return None
