#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Two commands must succeed and print nearly the same numbers:
  close-numbers.py same|differ LABEL=TOLERANCE... -- command... --and command...
A number is the second word of the line that begins with the label; tolerances are relative. "differ" wants some number
further apart than its tolerance: it shows that the comparison can fail."""
import subprocess
import sys


def numbers(command, labels):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    found = {}
    for line in done.stdout.splitlines():
        words = line.split()
        if len(words) > 1 and words[0] in labels:
            found[words[0]] = float(words[1].rstrip(","))
    if done.returncode != 0 or len(found) != len(labels):
        sys.exit(f"{' '.join(command)}: status {done.returncode}, found {found}\n{done.stdout}{done.stderr}")
    return found


def main():
    wanted, *rest = sys.argv[1:]
    split, second = rest.index("--"), rest.index("--and")
    tolerances = {label: float(value) for label, value in (word.split("=") for word in rest[:split])}
    ours = numbers(rest[split + 1:second], tolerances)
    theirs = numbers(rest[second + 1:], tolerances)
    apart = 0
    for label, tolerance in tolerances.items():
        difference = abs(ours[label] - theirs[label])
        # Not "greater": a NaN on either side is apart.
        near = difference <= tolerance * max(abs(ours[label]), abs(theirs[label]))
        apart += not near
        print(f"{label}: {ours[label]!r} and {theirs[label]!r}, {'near' if near else 'apart'}")
    return (apart == 0) != (wanted == "same")


if __name__ == "__main__":
    sys.exit(main())
