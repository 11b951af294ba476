#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The unit of diomp-deviced is one that systemd reads without a complaint, and is closed as far as it says.
#   deviced_unit.sh UNIT PROGRAM
set -eu
unit=${1:?} program=${2:?}
command -v systemd-analyze >/dev/null || { echo "skipped: systemd-analyze is missing (Debian: systemd)"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
grep -q '^ExecStart=/opt/diomp/bin/diomp-deviced ' "$unit" || { echo "another ExecStart than in docs/remote.md"; exit 1; }
sed "s|/opt/diomp/bin/diomp-deviced|$program|" "$unit" >"$work/diomp-deviced.service"

# A name that systemd does not know, or a value that it does not take, is a warning only.
said=$(systemd-analyze verify --man=no "$work/diomp-deviced.service" 2>&1) || { echo "$said"; exit 1; }
[ -z "$said" ] || { echo "$said"; exit 1; }
# In tenths: 0 is closed, 100 open; what is left is the network and what UCX and regions need.
systemd-analyze security --offline=yes --threshold=15 "$work/diomp-deviced.service" >"$work/report" ||
    { cat "$work/report"; exit 1; }
tail -n 1 "$work/report"
# What --confine calls is allowed by name: a version of systemd may have it in none of the unit's groups.
grep -ho 'SYS_\(landlock_[a-z_]*\|seccomp\)' "$(dirname "$0")/../../src/offload/service/confinement.cpp" | sort -u >"$work/calls"
[ -s "$work/calls" ] || { echo "no system call of confinement.cpp found"; exit 1; }
sed 's/^SYS_//' "$work/calls" | while IFS= read -r call; do
    grep -Eq "^SystemCallFilter=(|[^~].* )$call( |\$)" "$unit" || { echo "the unit refuses $call, which --confine needs"; exit 1; }
done
# Nobody but the service itself may read the token: the unit hands it over as a file, and not as a value.
! grep -q '^Environment=DIOMP_TOKEN=' "$unit"
grep -q '^LoadCredential=diomp-token:' "$unit"
