#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Do the README's commands work on a new machine? Makes a Debian in a temporary folder that has git, make and a compiler
# and nothing else of what we use, clones what is committed here into it, and calls make there. A machine that has been
# worked on cannot show that scripts/setup.sh forgets a package.
#
#   scripts/fresh-machine.sh [TARGET...]      make TARGET... there; without one: demo
#   SUITE=trixie scripts/fresh-machine.sh     on another release of Debian than this machine's
#
# Needs root, debootstrap, and some 6 GiB in TMPDIR. Packages come from the archive that this machine uses. The last line
# says how long make took; the exit status is make's.
set -eu
cd "$(dirname "$0")/.."
[ $# != 0 ] || set -- demo
if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
    echo "fresh-machine.sh: needs root and the package debootstrap" >&2
    exit 77
fi

# shellcheck source-path=SCRIPTDIR
. scripts/debian-root.sh
suite=${SUITE:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT
echo "== a new $suite"
new_debian "$root" "$suite" git,make,gcc,ca-certificates
git clone -q . "$root/root/diomp"

began=$EPOCHSECONDS
status=0
in_debian "$root" make -C /root/diomp "$@" || status=$?
echo "fresh-machine.sh: make $*: status $status, $((EPOCHSECONDS - began)) s with the packages"
exit "$status"
