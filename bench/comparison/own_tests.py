# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Test programs of the libraries below our conduits, and their output.

Both kinds have parts(): one per program, each a function that runs it and gives (operation, bytes, microseconds), operations
by the names of diomp-bench.
"""

import contextlib
import functools
import os
import pty
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import libraries

TIMEOUT_S = 120


def give_up(program, why):
    sys.exit(f"compare-conduits: {program}: {why}")


class Gasnet:
    """testsmall and testlarge of GASNet-EX."""

    name = "gasnet's own"
    # A blocking put is complete at its target when it returns; unlike a fence it does not complete other puts.
    BLOCKING = {"Put": "put_event", "Get": "get"}

    def __init__(self, folder, start, environment, conduit="gasnet"):
        self.folder, self.start, self.environment, self.conduit = folder, start, environment, conduit

    def lines(self, program, options):
        command = shlex.split(self.start.format(program=self.folder / program)) + options
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False, timeout=300)
        if "done." not in done.stdout:
            give_up(program, libraries.last_line(done.stderr + done.stdout))
        return done.stdout.splitlines()

    def parts(self, latency_sizes, window_sizes):
        """Blocking puts and gets of testsmall, explicit non-blocking ones of testlarge. The local side lies outside of
        GASNet's segment, as all memory of DiOMP does."""
        return [lambda: self.latencies(latency_sizes), lambda: self.windows(window_sizes)]

    def latencies(self, sizes):
        # The average has three decimals, too few between ranks that share memory.
        times = "2000000" if self.conduit == "shm" else "2000"
        for line in self.lines("testsmall", ["-out", times, str(max(sizes)), "A"]):
            found = re.search(r"(\d+) byte : +(\d+) iters, latency +(\d+) us total,.*\((Put|Get)Blocking latency\)", line)
            if found and int(found[1]) in sizes:
                yield self.BLOCKING[found[4]], int(found[1]), int(found[3]) / int(found[2])

    def windows(self, sizes):
        for line in self.lines("testlarge", ["-out", "200", str(max(sizes)), "C"]):
            found = re.search(r"(\d+) byte.* throughput +([\d.]+) KB/sec \((Put|Get)NB(?:\+DEFER)? throughput\)", line)
            if found and int(found[1]) in sizes:
                yield found[3].lower() + "_window", int(found[1]), int(found[1]) / (float(found[2]) * 1024) * 1e6


class Gpi2:
    """Microbenchmarks of GPI-2. Their sizes go up to 8 MiB, which takes minutes: they are ended when the largest that is
    wanted has come. Nothing is flushed in between, so they write to a terminal."""

    conduit, name = "gaspi", "gpi2's own"
    PROGRAMS = {"write_notify_lat": "signal", "read_lat": "get", "write_bw": "put_window", "read_bw": "get_window"}
    # write_bw waits until the bytes have been sent, diomp-bench until they have arrived. The difference is small only if
    # sockets cannot hold most of its 1000 writes.
    SMALLEST_WRITE_WINDOW = 65536

    def __init__(self, folder, start, environment):
        self.folder, self.start, self.environment = folder, start, environment

    def parts(self, latency_sizes, window_sizes):
        if not any(self.path(program).exists() for program in self.PROGRAMS):
            give_up("--gpi2-tests", f"no microbenchmarks of GPI-2 in {self.folder}; build them in its tests/microbenchmarks")
        writes = [size for size in window_sizes if size >= self.SMALLEST_WRITE_WINDOW]
        wanted = zip(self.PROGRAMS, (latency_sizes, latency_sizes, writes, window_sizes), strict=True)
        # GPI-2's makefiles leave out read_lat.
        return [functools.partial(self.figures, program, sizes) for program, sizes in wanted
                if sizes and self.path(program).exists()]

    def figures(self, program, sizes):
        for size, figure in self.rows(program, max(sizes)):
            if size in sizes:
                is_time = program.endswith("_lat")
                yield self.PROGRAMS[program], size, figure if is_time else size / (figure * 2**20) * 1e6

    def path(self, program):
        return self.folder / f"{program}.bin"

    def rows(self, program, largest):
        """(bytes, figure) of each line: microseconds, or MiB/s."""
        with self.running(program) as terminal:
            text, until = "", time.monotonic() + TIMEOUT_S
            while time.monotonic() < until:
                rows = [(int(size), float(figure))
                        for size, figure in re.findall(r"^ *(\d+)\t([\d.]+)\b.*\n", text, re.MULTILINE)]
                if rows and rows[-1][0] >= largest:
                    return rows
                try:
                    text += os.read(terminal, 65536).decode(errors="replace").replace("\r", "")
                except OSError:  # all writers have ended
                    break
        return give_up(program, libraries.last_line(text))

    @contextlib.contextmanager
    def running(self, program):
        """The terminal of two ranks, which end with the block."""
        with tempfile.NamedTemporaryFile("w", prefix="diomp-compare-") as machines, contextlib.ExitStack() as stack:
            machines.write("127.0.0.1\n" * 2)
            machines.flush()
            reader, writer = pty.openpty()
            stack.callback(os.close, reader)
            try:
                for command, variables in self.commands(program, machines.name):
                    process = subprocess.Popen(command, env={**self.environment, **variables}, stdin=subprocess.DEVNULL,
                                               stdout=writer, stderr=writer)
                    stack.callback(self.end, process)
            finally:
                os.close(writer)
            yield reader

    def commands(self, program, machines):
        if self.start:
            return [(shlex.split(self.start.format(program=self.path(program))), {})]
        return [([self.path(program)], {"GASPI_RANK": str(rank), "GASPI_SOCKET": str(rank), "GASPI_NRANKS": "2",
                                        "GASPI_MASTER": "127.0.0.1", "GASPI_MFILE": machines}) for rank in range(2)]

    @staticmethod
    def end(process):
        process.terminate()
        process.wait()
