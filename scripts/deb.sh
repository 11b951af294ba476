#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Makes Debian packages of this tree, as it stands, for the Debian of this machine. What cannot come from packages is
# fetched first, unless it is there (scripts/fetch-llvm.sh, scripts/python-env.sh); the build itself has no network where the
# system allows that (unshare --net).
#
#   scripts/deb.sh [FOLDER]    packages go to FOLDER (default: build/deb); those of an earlier build there are removed
#
# Packages with debug information go to FOLDER/debug, and lintian's findings to FOLDER/lintian.txt; an error among them ends
# this script with status 1.
set -eu
cd "$(dirname "$0")/.."
top=$PWD
fail() { echo "deb.sh: $*" >&2 && exit 1; }

folder=${1:-$top/build/deb}
version=$(sed -n 's/^project(DiOMP VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
packaged=$(dpkg-parsechangelog -l debian/changelog -S Version)
[ "${packaged%-*}" = "$version" ] ||
    fail "debian/changelog says $packaged, and CMakeLists.txt $version: add an entry with 'dch -v $version-1' (package devscripts)"

DIOMP_LLVM_SOURCE=$(scripts/fetch-llvm.sh) || fail "without the source of libomptarget there is no diomp-offload"
export DIOMP_LLVM_SOURCE
profiles=()
python=yes
scripts/python-env.sh >/dev/null || {
    echo "deb.sh: going on without python3-diomp"
    python=no
    profiles+=(pkg.diomp.nopython)
}
flang=$(sed -n 's/^Package: diomp-\(flang-[0-9]*\)$/\1/p' debian/control)
# shellcheck disable=SC2086 # a list of words
if dpkg -s $flang >/dev/null 2>&1; then
    profiles+=(pkg.diomp.flang)
else
    echo "deb.sh: going on without diomp-$flang, which needs $flang (scripts/setup.sh --flang)"
fi

other=$(sed -n 's/^Package: diomp-offload-\([0-9]*\)$/\1/p' debian/control | tail -n +2)
for major in $other; do
    prefix=$(scripts/llvm-toolchain.sh --llvm "$major" --folder)
    llvm=$(env -u DIOMP_LLVM_SOURCE scripts/fetch-llvm.sh --llvm "$major" --folder)
    if [ -x "$prefix/bin/clang" ] && [ -e "$llvm/version" ]; then
        export "DIOMP_LLVM_${major}_PREFIX=$prefix" "DIOMP_LLVM_${major}_SOURCE=$llvm"
        profiles+=("pkg.diomp.llvm$major")
    else
        echo "deb.sh: going on without diomp-offload-$major, which needs LLVM $major (scripts/setup.sh --llvm $major)"
    fi
done

# A copy, since a build of packages leaves files in the tree. What is committed and what is new, without what git ignores.
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
copy=$folder/diomp-$version
rm -rf "$copy" "$folder/debug" "$folder"/*.deb "$folder"/*.buildinfo "$folder"/*.changes "$folder/lintian.txt"
mkdir -p "$copy/build"
if [ -e .git ]; then
    git ls-files -z --cached --others --exclude-standard
else
    find . -path ./build -prune -o -type f -printf '%P\0'
fi | tar -c --null --files-from=- --ignore-failed-read | tar -xC "$copy"
[ "$python" = no ] || ln -s "$top/build/python-env" "$copy/build/python-env"

# ccache's folder is named, since debhelper gives the build a home of its own.
if command -v ccache >/dev/null; then
    CCACHE_DIR=$(ccache --get-config cache_dir) CCACHE_MAXSIZE=$(ccache --get-config max_size)
    export CCACHE_DIR CCACHE_MAXSIZE CCACHE_BASEDIR=$copy CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
fi
export DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS:+$DEB_BUILD_OPTIONS }parallel=${JOBS:-$(nproc)}"
isolated=()
! unshare --net true 2>/dev/null || isolated=(unshare --net)
began=$EPOCHSECONDS
(cd "$copy" && "${isolated[@]}" dpkg-buildpackage --build=binary --no-sign --build-profiles="$(IFS=, && echo "${profiles[*]}")") >"$folder/build.log" 2>&1 || {
    tail -n 30 "$folder/build.log" >&2
    fail "dpkg-buildpackage failed: the whole output is in $folder/build.log"
}
rm -rf "$copy"

status=0
if command -v lintian >/dev/null; then
    lintian --allow-root --fail-on error "$folder"/*.changes >"$folder/lintian.txt" 2>&1 || status=$?
    [ "$status" = 0 ] || { grep '^E:' "$folder/lintian.txt" >&2 && echo "deb.sh: errors of lintian" >&2; }
else
    echo "deb.sh: lintian is not installed: the packages are not checked"
fi
mkdir "$folder/debug"
find "$folder" -maxdepth 1 -name '*-dbgsym_*.deb' -exec mv -t "$folder/debug" {} +
find "$folder" -maxdepth 1 -name '*.deb' -printf '%P\n' | sort
echo "deb.sh: $((EPOCHSECONDS - began)) s; the packages are in $folder"
exit "$status"
