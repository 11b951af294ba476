#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs one program on all test hosts, and nothing of it must be left:

  program.py [--bare] LAUNCHER RANKS_PER_HOST PATTERN [NAME=VALUE...] -- PROGRAM ARGUMENT...

Succeeds if the job does, the output matches PATTERN, and every rank ran where it should: DIOMP_LOG=info says so, unless
the program is --bare of a runtime.
"""
import os
import re
import subprocess
import sys

import hosts

LIMIT_S = 390  # virtual machines were seen to take 130 s for the contract on two hosts


def fail(output, why):
    print(output)
    sys.exit(f"program.py: {why}")


def check_places(output, per_host):
    ranks = per_host * len(hosts.HOSTS)
    for rank in range(ranks):
        host = hosts.HOSTS[rank // per_host]
        if not re.search(rf"info: rank {rank} of {ranks} on {host}: ", output):
            fail(output, f"rank {rank} did not say that it runs on {host}")


def main(*words):
    bare = words[0] == "--bare"
    launcher, per_host, pattern, *words = words[1:] if bare else words
    hosts.skip_unless_there(launcher)
    split = words.index("--")
    settings = dict(word.split("=", 1) for word in words[:split])
    program = list(words[split + 1:])
    # A rank that waits for ever must say for whom.
    settings = {"DIOMP_TIMEOUT": "60", "DIOMP_LOG": "info", **settings}
    command = hosts.job(launcher, program, int(per_host), settings)
    try:
        done = subprocess.run(command, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=LIMIT_S)
    except subprocess.TimeoutExpired as error:
        fail((error.stdout or b"").decode(errors="replace"), f"not over after {LIMIT_S} s: {' '.join(command)}")
    if done.returncode != 0:
        fail(done.stdout, f"status {done.returncode} of {' '.join(command)}")
    if not bare:
        check_places(done.stdout, int(per_host))
    if not re.search(pattern, done.stdout):
        fail(done.stdout, f"no line matches {pattern}")
    for name in hosts.HOSTS:
        left = hosts.console(name, f"pgrep -a -x {os.path.basename(program[0])[:15]}")[1]
        if left:
            fail(done.stdout, f"left on {name}: {left}")


if __name__ == "__main__":
    main(*sys.argv[1:])
