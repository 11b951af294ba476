#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Prints the version of LLVM that `make` builds for: DIOMP_LLVM (make LLVM=22); otherwise the first of `versions` that is
# installed, or that the distribution's archive has. Prints nothing, with status 1, if there is none.
#
#   scripts/llvm-choice.sh               the version of libomptarget and of target regions
#   scripts/llvm-choice.sh --installed   the one whose clang compiles the rest: as above, but one that is installed comes
#                                        before DIOMP_LLVM, since Debian allows one version of libomp-*-dev
set -eu

# The newest first, but 22 last: Debian's packages of it have no device runtime for GPUs, nor OMPT (docs/llvm.md).
versions='21 19 22'

is_installed() {
    [ "$(dpkg-query -W -f='${db:Status-Status}' "libomp-$1-dev" 2>/dev/null)" = installed ]
}
# One word for each package that can be installed.
is_available() {
    set -- "clang-$1" "libomp-$1-dev" "llvm-$1-dev"
    [ "$(apt-cache policy "$@" 2>/dev/null | grep -c '^  Candidate: [0-9]')" = $# ]
}
first_installed() {
    for version in $versions; do
        ! is_installed "$version" || { echo "$version" && return; }
    done
    return 1
}
[ "${1:-}" != --installed ] || ! first_installed || exit 0
if [ -n "${DIOMP_LLVM:-}" ]; then
    about=$(dirname "$0")/../llvm/versions/$DIOMP_LLVM/version.cmake
    if [ ! -e "$about" ]; then
        echo "llvm-choice.sh: DiOMP does not know LLVM '$DIOMP_LLVM' (known: $(cd "$(dirname "$0")/../llvm/versions" && echo [0-9]*))" >&2
        exit 2
    fi
    echo "$DIOMP_LLVM"
    exit
fi

! first_installed || exit 0
for version in $versions; do
    ! is_available "$version" || { echo "$version" && exit; }
done
exit 1
