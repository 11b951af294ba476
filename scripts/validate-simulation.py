#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares diomp-sim with jobs over TCP between test hosts, whose wires have a delay or a rate that is large beside what
processors take. docs/simulation.md has the results.

  validate-simulation.py BUILD [--ranks 4,8,16,32] [--wire delay,rate] [--repeats 5] [--limit 0.2]

Each rank has a host of its own (a network namespace of this machine, scripts/test-hosts.py); the simulation has one
link with the same delay or rate for each host. `ratio` is simulated by measured time. Exit status: 1 if a ratio differs
from 1 by more than the limit.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
TEST_HOSTS = os.path.join(HERE, "test-hosts.py")
KIB, MIB = 1 << 10, 1 << 20
SMALL = [("barrier", 0), ("bcast", 8), ("bcast", KIB), ("allreduce", 8), ("allreduce", KIB), ("allgather", 8),
         ("alltoall", 8)]
LARGE = [("bcast", 64 * KIB), ("bcast", MIB), ("allreduce", 64 * KIB), ("allreduce", MIB), ("allgather", 64 * KIB),
         ("alltoall", 16 * KIB)]
# delay: seconds of one way; rate: bytes per second of a host's wire in each direction, 0: unlimited
WIRES = {"delay": {"delay": 0.02, "rate": 0, "trials": SMALL}, "rate": {"delay": 0.002, "rate": 2e6, "trials": LARGE}}
# Of a full frame's 1514 bytes, what is not TCP's headers.
PAYLOAD = 1448 / 1514
PAUSE_MS = 400
STAR = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="world" routing="Full">
    <cluster id="machine" prefix="node-" radical="0-{last}" suffix="" speed="1Gf" bw="{rate}Bps" lat="{delay}s"
             loopback_bw="1e10Bps" loopback_lat="0s" sharing_policy="SPLITDUPLEX"/>
  </zone>
</platform>
"""


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--ranks", default="4,8,16,32")
    parser.add_argument("--wire", default="delay,rate")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--limit", type=float, default=0.2)
    parser.add_argument("--inside", help=argparse.SUPPRESS)  # the wire, on the first test host
    return parser.parse_args()


def words_of(trials):
    return [f"{collective}:{nbytes}" for collective, nbytes in trials]


def lines_of(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, **options)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def seconds_by_trial(rows):
    return {(row["collective"], row["bytes"]): row["seconds"] for row in rows}


def run_inside(options):
    """On the first test host: prints the lines of measured_job."""
    wire = WIRES[options.inside]
    names = os.environ["DIOMP_TEST_HOSTS"].split(",")
    for name in names:
        # A connection that has waited goes on as it was.
        for command in (["netem", name, "--delay", str(1000 * wire["delay"]), "--rate", str(wire["rate"])],
                        ["console", name, "sysctl -qw net.ipv4.tcp_slow_start_after_idle=0"]):
            subprocess.run([sys.executable, TEST_HOSTS, *command], check=True, stdout=subprocess.DEVNULL)
    tool = os.path.join(options.build, "bin", "diomp-run")
    program = os.path.join(options.build, "bin", "measured_job")
    return subprocess.run(
        [tool, "-n", str(len(names)), "--hosts", ",".join(f"{name}:1" for name in names), "--rsh",
         os.environ["DIOMP_TEST_RSH"], "--bind-to", "none", "-x", "DIOMP_NETWORK=tcp", "--", program,
         str(options.repeats), str(PAUSE_MS), *words_of(wire["trials"])], check=False).returncode


def measured(options, name, ranks):
    return seconds_by_trial(lines_of(
        [sys.executable, TEST_HOSTS, "--hosts", str(ranks), "--", sys.executable, os.path.realpath(__file__),
         os.path.abspath(options.build), "--repeats", str(options.repeats), "--inside", name]))


def simulated(options, name, ranks):
    wire = WIRES[name]
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as platform:
        # A path has two links.
        platform.write(STAR.format(last=ranks - 1, rate=wire["rate"] * PAYLOAD or 1e10, delay=wire["delay"] / 2))
        platform.flush()
        rows = []
        for collective, nbytes in wire["trials"]:
            rows += lines_of([os.path.join(options.build, "bin", "diomp-sim"), "--platform", platform.name, "--nodes",
                              str(ranks), "--per-node", "1", "--repeat", "3", "--collectives", collective, "--sizes",
                              str(nbytes or 8)])
    return seconds_by_trial(rows)


def main():
    options = parse_arguments()
    if options.inside:
        return run_inside(options)
    is_right = True
    print("| wire | ranks | call | bytes | measured, ms | simulated, ms | ratio |\n|---|---|---|---|---|---|---|")
    for name in options.wire.split(","):
        for ranks in map(int, options.ranks.split(",")):
            real, model = measured(options, name, ranks), simulated(options, name, ranks)
            for trial in WIRES[name]["trials"]:
                ratio = model[trial] / real[trial]
                is_right &= abs(ratio - 1) <= options.limit
                print(f"| {name} | {ranks} | {trial[0]} | {trial[1] or ''} | {1000 * real[trial]:.1f} | "
                      f"{1000 * model[trial]:.1f} | {ratio:.2f} |", flush=True)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
