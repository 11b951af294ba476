#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Finds clang, LLVM's libraries and OpenMP's of one version; or unpacks the distribution's packages of it into a folder of
# its own, since Debian allows only one version of OpenMP's development packages to be installed.
#
#   scripts/llvm-toolchain.sh [--llvm VERSION]             unpacks unless it is there or installed; prints the folder
#   scripts/llvm-toolchain.sh [--llvm VERSION] --folder    prints the folder only
#   scripts/llvm-toolchain.sh [--llvm VERSION] --version   prints the version of the packages; nothing if none is there
#   scripts/llvm-toolchain.sh [--llvm VERSION] --list      prints the packages
#
# The folder has bin, lib and lib/cmake: /usr/lib/llvm-VERSION if all of it is installed; otherwise
# DIOMP_LLVM_TOOLCHAIN/usr/lib/llvm-VERSION, by default in a cache below the home folder, whose file `version` is written last.
set -eu

# shellcheck source=package-sources.sh
. "$(dirname "$0")/package-sources.sh"
major=19
what=unpack
while [ $# != 0 ]; do
    case $1 in
    --llvm) major=${2:-} && shift ;;
    --llvm=*) major=${1#*=} ;;
    --folder | --version | --list) what=${1#--} ;;
    *) echo "llvm-toolchain.sh: unknown argument '$1' (known: --llvm, --folder, --version, --list)" >&2 && exit 2 ;;
    esac
    [ $# = 0 ] || shift
done
case $major in
'' | *[!0-9]*) echo "llvm-toolchain.sh: '$major' is no version of LLVM, such as 22" >&2 && exit 2 ;;
esac

# Compiler, linkers, what libomptarget and the plugin for pragmas are built with, and OpenMP's libraries. From 20 on,
# libomptarget has a package of its own. libomp.so.5 itself may be that of another version: Debian 12 has the one of 19
# for 22, too.
packages() {
    printf '%s\n' "clang-$major" "clang-tools-$major" "lld-$major" "llvm-$major" "llvm-$major-dev" "llvm-$major-linker-tools" \
        "llvm-$major-runtime" "llvm-$major-tools" "libclang-$major-dev" "libclang-common-$major-dev" "libclang-cpp$major" \
        "libclang1-$major" "libllvm$major" "libomp-$major-dev"
    [ "$major" -lt 20 ] || printf '%s\n' "liboffload-$major" "liboffload-$major-dev"
    # That of the same version, where the distribution's default has the name, too.
    development=$(apt-cache show --no-all-versions "libomp-$major-dev" 2>/dev/null | sed -n 's/^Version: //p')
    for runtime in $(apt-cache depends "libomp-$major-dev" 2>/dev/null | sed -n 's/^ *Depends: \(libomp5.*\)/\1/p'); do
        if apt-cache madison "$runtime" | grep -qF " $development "; then
            echo "$runtime=$development"
        else
            echo "$runtime"
        fi
    done
}
[ "$what" != list ] || { packages && exit; }

installed=/usr/lib/llvm-$major
root=${DIOMP_LLVM_TOOLCHAIN:-${XDG_CACHE_HOME:-${HOME:?is not set; set DIOMP_LLVM_TOOLCHAIN}/.cache}/diomp/toolchain-$major}
folder=$root/usr/lib/llvm-$major
unpacked=
[ ! -s "$root/version" ] || unpacked=$(cat "$root/version")
is_installed() {
    [ -x "$installed/bin/clang" ] && [ -e "$installed/lib/libomp.so" ] &&
        [ -e "$installed/lib/clang/$major/include/omp.h" ] && [ -e "$installed/lib/cmake/llvm/LLVMConfig.cmake" ]
}
# Which one is meant: the installed one if it is whole, or if nothing was unpacked.
if is_installed; then
    unpacked=
    folder=$installed
fi
case $what in
folder) echo "$folder" && exit ;;
version)
    [ -n "$unpacked" ] || unpacked=$(dpkg-query -W -f='${source:Version}' "llvm-$major-dev" 2>/dev/null || true)
    [ -z "$unpacked" ] || echo "$unpacked"
    exit
    ;;
esac
! is_installed || { echo "$folder" && exit; }
[ -z "$unpacked" ] || { echo "$folder" && exit; }

fail() {
    echo "llvm-toolchain.sh: $1" >&2
    exit 1
}
for tool in apt-get dpkg-deb flock; do
    command -v $tool >/dev/null || fail "needs $tool; without it set DIOMP_LLVM_PREFIX to the folder of an LLVM $major"
done
[ ! -e "$root" ] || fail "$root is there, but not made by this script (no file 'version'): remove it, or set DIOMP_LLVM_TOOLCHAIN"
mkdir -p "$(dirname "$root")"
# One run at a time; the next one finds the folder complete.
exec 9>"$root.lock"
flock 9
[ ! -s "$root/version" ] || { echo "$folder" && exit; }

work=$(mktemp -d "$root.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/packages" "$work/root"
chmod 755 "$work/root"
echo "llvm-toolchain.sh: fetching the packages of LLVM $major" >&2
(
    cd "$work/packages"
    # A release may have it among its backports, which need not be one of the machine's package sources.
    if [ -z "$(apt-cache policy "clang-$major" 2>/dev/null)" ]; then
        other_sources "$work/apt" deb 's/^Suites: *\([a-z]*\).*/& \1-backports/'
        apt-get update >"$work/log" 2>&1 || true
    fi
    # shellcheck disable=SC2046 # a list of words
    apt-get -qq -o APT::Sandbox::User= download $(packages) >"$work/log" 2>&1
) || {
    tail -n 5 "$work/log" >&2
    fail "the packages could not be fetched; the lines above say why (apt-get update first, if the lists are old)"
}
for package in "$work"/packages/*.deb; do
    dpkg-deb -x "$package" "$work/root"
done
rm -rf "$work/root/usr/share/doc" "$work/root/usr/share/man" "$work/root/usr/share/lintian"
# Links that name their target from the root of the file system would leave the folder.
find "$work/root" -type l -lname '/*' | while IFS= read -r link; do
    target=$work/root$(readlink "$link")
    [ ! -e "$target" ] || ln -sfnr "$target" "$link"
done
dpkg-deb -f "$(find "$work/packages" -name "llvm-$major-dev_*.deb")" Version >"$work/root/version"
mv -T "$work/root" "$root"
echo "$folder"
