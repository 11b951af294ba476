#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Two to 32 hosts on this machine, out of namespaces, joined by a network of their own.

  test-hosts.py [--hosts N] -- COMMAND...   runs COMMAND on the first host, removes all when it ends
  test-hosts.py --check                     says whether this machine allows it (77: no)

COMMAND finds in its environment
  DIOMP_TEST_HOSTS   the names of the hosts, with commas; the first is its own
  DIOMP_TEST_RSH     a remote shell: `$DIOMP_TEST_RSH HOST command...`, like ssh

and may call, or a person in `test-hosts.py -- bash`:
  test-hosts.py link HOST down|up           the host's interface
  test-hosts.py cable HOST out|in           the other end: the host sees no carrier, and no error
  test-hosts.py netem HOST [--loss PERCENT] [--delay MS] [--rate BYTES]
                                            for what leaves HOST, and BYTES per second in each direction; without
                                            options: a good wire again
  test-hosts.py console HOST COMMAND...     a shell command on HOST that needs no network

Works as root and, where user namespaces are allowed, as anybody. Exits with COMMAND's status, or with 77 and a line
that says why if the machine does not allow it.
"""
import argparse
import os
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from testhosts import machines, switch  # noqa: E402

CHECK = "ping -q -c 1 -W 5 {host} >/dev/null && test \"$({rsh} {host} hostname)\" = {host}"


def check():
    names = "set -- $(echo $DIOMP_TEST_HOSTS | tr , ' '); "
    test = CHECK.format(host='"$2"', rsh='"$DIOMP_TEST_RSH"')
    status = switch.run(2, ["/bin/sh", "-c", names + test])
    if status == 0:
        print("test-hosts: this machine allows them")
    elif status != switch.SKIPPED:
        print(f"test-hosts: the hosts do not reach each other (status {status})", file=sys.stderr)
    return status


def fault(words):
    parser = argparse.ArgumentParser(prog="test-hosts.py")
    kinds = parser.add_subparsers(dest="what", required=True)
    for kind, states in (("link", ("down", "up")), ("cable", ("out", "in"))):
        one = kinds.add_parser(kind)
        one.add_argument("host")
        one.add_argument("state", choices=states)
    netem = kinds.add_parser("netem")
    netem.add_argument("host")
    netem.add_argument("--loss", type=float, default=0, help="percent")
    netem.add_argument("--delay", type=float, default=0, help="milliseconds")
    netem.add_argument("--rate", type=float, default=0, help="bytes per second")
    console = kinds.add_parser("console")
    console.add_argument("host")
    console.add_argument("command", nargs=argparse.REMAINDER)
    request = vars(parser.parse_args(words))
    if request["what"] == "console":
        done = switch.ask(**{**request, "command": " ".join(request["command"])})
        print(done["output"], end="")
        return done["status"]
    print(switch.ask(**request))
    return 0


def run(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, choices=range(2, 33), metavar="N", default=2)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("command", nargs="*", metavar="-- COMMAND")
    options = parser.parse_args(words)
    if not options.check and not options.command:
        parser.error("needs -- and a command")
    for name in ("ip", "ping"):
        if not shutil.which(name):
            raise machines.unavailable(f"{name} is missing (Debian: iproute2, iputils-ping)")
    return check() if options.check else switch.run(options.hosts, options.command)


def main(words):
    inside = bool(words) and words[0] in ("link", "cable", "netem", "console")
    try:
        return fault(words) if inside else run(words)
    except machines.unavailable as error:
        print(f"test-hosts: {'' if inside else 'skipped: '}{error}", file=sys.stderr)
        return 1 if inside else switch.SKIPPED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
