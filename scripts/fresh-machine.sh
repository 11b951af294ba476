#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Do the README's commands work on a new machine? Makes a Debian in a temporary folder that has git, make and a compiler
# and nothing else of what we use, clones what is committed here into it, and calls make there. A machine that has been
# worked on cannot show that scripts/setup.sh forgets a package.
#
#   scripts/fresh-machine.sh [TARGET...]      make TARGET... there; without one: demo
#   scripts/fresh-machine.sh --ways           the ways of docs/install.md to a running example (tests/packaging/ways.sh)
#   SUITE=trixie scripts/fresh-machine.sh     on another release of Debian than this machine's
#
# Needs root, debootstrap, and some 6 GiB in TMPDIR. Packages come from the archive that this machine uses. The last line
# says how long it took; the exit status is that of make or the ways.
set -eu
cd "$(dirname "$0")/.."
[ $# != 0 ] || set -- demo
command=(make -C /root/diomp "$@")
[ "$1" != --ways ] || command=(bash /root/diomp/tests/packaging/ways.sh)
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
in_debian "$root" "${command[@]}" || status=$?
echo "fresh-machine.sh: ${command[*]}: status $status, $((EPOCHSECONDS - began)) s with the packages"
exit "$status"
