# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The distance of the machine's cores, as seen by two ranks.

The cores of a virtual machine migrate: for some seconds they share a cache, then they do not, and operations of two
ranks take several times as long, in every library. So the distance is measured before and after each measurement of two
ranks on two cores, and only measurements at the usual distance count.
"""

import collections
import os
import subprocess
import time

MIXED = -1.0  # the cores migrated meanwhile


def alike(a, b):
    return min(a, b) > 0 and max(a, b) <= 1.3 * min(a, b)


def usual(distances):
    """The distance that most others resemble, the smaller one of two; None if there is none."""
    seen = collections.Counter(distances)
    likes = {each: sum(count for other, count in seen.items() if alike(each, other)) for each in seen}
    most = max(likes, key=lambda each: (likes[each], -each), default=None)
    return most if most is not None and likes[most] > 0 else None


def add_argument(parser):
    parser.add_argument("--patience", type=float, metavar="SECONDS",
                        help="total time limit for waits until the cores are at their usual distance (default 60, with "
                             "--quick 0)")


def watch(arguments):
    """A Watch by the options of a comparison; None without two cores, or without the program that measures them."""
    program = arguments.build / "bench/bench_core_distance"
    if os.cpu_count() < 2 or not program.exists():
        return None
    usually = 0 if getattr(arguments, "quick", False) else 60
    return Watch(program, usually if arguments.patience is None else arguments.patience)


def measure(watch, action):
    """The result of action(), and the distance at which it was made, or None without a watch."""
    return (action(), None) if watch is None else watch.measure(action)


class Watch:
    """Measures the distance, and waits for the usual one within a time limit."""

    def __init__(self, program, patience_s):
        self.program, self.patience_s = str(program), patience_s
        self.seen = [self.look() for _ in range(10)]

    def look(self):
        """Nanoseconds of a round trip between the first two cores; 0 if there are not two."""
        text = subprocess.run([self.program], stdout=subprocess.PIPE, text=True, check=True).stdout
        return float(text)

    def summary(self, used):
        return (f"two cores: at {used or 0:.0f} ns from each other, of {min(self.seen):.0f} to {max(self.seen):.0f} "
                "ns seen")

    def is_usual(self, distance):
        known = usual(self.seen[-200:])
        return known is None or alike(distance, known)

    def await_usual(self):
        start = time.monotonic()
        while not self.is_usual(self.note(self.look())) and time.monotonic() - start < self.patience_s:
            time.sleep(0.1)
        self.patience_s -= time.monotonic() - start

    def note(self, distance):
        self.seen.append(distance)
        return distance

    def measure(self, action, tries=3):
        """Calls action() once or more; returns its last result and the distance at which it was made."""
        for attempt in range(tries):
            self.await_usual()
            before, start = self.look(), time.monotonic()
            result = action()
            after = self.note(self.look())
            distance = after if alike(before, after) else MIXED
            if self.is_usual(distance) or attempt == tries - 1 or self.patience_s <= 0:
                return result, distance
            self.patience_s -= time.monotonic() - start
        raise AssertionError("unreachable")
