#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Fetches the parts of LLVM's source that libomptarget is built from, out of the distribution's source package, so that
# they are of the very version that is installed. Nothing of it becomes part of this project.
#
#   scripts/fetch-llvm.sh [--llvm VERSION]             fetches unless it is there; prints the folder
#   scripts/fetch-llvm.sh [--llvm VERSION] --folder    prints the folder only
#
# VERSION: a version that llvm/versions has, 19 by default. The folder is DIOMP_LLVM_SOURCE, or a cache below the home
# folder. Its file `version` is written last.
set -eu

here=$(dirname "$0")
# shellcheck source=package-sources.sh
. "$here/package-sources.sh"
major=19
folder_only=no
while [ $# != 0 ]; do
    case $1 in
    --llvm) major=${2:-} && shift ;;
    --llvm=*) major=${1#*=} ;;
    --folder) folder_only=yes ;;
    *) echo "fetch-llvm.sh: unknown argument '$1' (known: --llvm, --folder)" >&2 && exit 2 ;;
    esac
    [ $# = 0 ] || shift
done
versions=$here/../llvm/versions
about=$versions/$major/version.cmake
if [ -z "$major" ] || [ ! -e "$about" ]; then
    echo "fetch-llvm.sh: DiOMP does not know LLVM '$major' (known: $(cd "$versions" && echo [0-9]*))" >&2
    exit 2
fi
package=llvm-toolchain-$major
toolchain=$("$here/llvm-toolchain.sh" --llvm "$major" --folder)
version=$("$here/llvm-toolchain.sh" --llvm "$major" --version)
upstream=$(printf '%s' "$version" | sed 's/^[0-9]*://; s/-.*//')
folder=${DIOMP_LLVM_SOURCE:-${XDG_CACHE_HOME:-${HOME:?is not set; set DIOMP_LLVM_SOURCE}/.cache}/diomp/llvm-${upstream:-$major}}
[ "$folder_only" = no ] || { echo "$folder" && exit; }

[ ! -s "$folder/version" ] || { echo "$folder" && exit; }
if [ -z "$version" ]; then
    echo "fetch-llvm.sh: llvm-$major-dev is not installed, and not in $toolchain (scripts/setup.sh --llvm $major does that)" >&2
    exit 1
fi

if [ -e "$folder" ]; then
    echo "fetch-llvm.sh: $folder is there, but not made by this script (no file 'version'): remove it, or set" \
        "DIOMP_LLVM_SOURCE to another folder" >&2
    exit 1
fi
mkdir -p "$(dirname "$folder")"
# One run at a time; the next one finds the folder complete.
exec 9>"$folder.lock"
flock 9
[ ! -s "$folder/version" ] || { echo "$folder" && exit; }

work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/tree"
echo "fetch-llvm.sh: fetching the source of $package $version" >&2
# fetch_source EXPRESSION: from the machine's package sources, with sed's EXPRESSION applied to their suites. Package sources of
# others need not have source packages: what matters is whether ours comes. The distribution's own changes to it are not
# needed, so another package of the same upstream version serves as well.
fetch_source() {
    other_sources "$work" deb-src "$1"
    apt-get update >>log 2>&1 || true
    apt-get source --tar-only --download-only "$package=$version" >>log 2>&1 && return
    same=$(apt-cache showsrc "$package" 2>/dev/null | sed -n "s/^Version: \(.*:$upstream-.*\)/\1/p")
    for other in $same; do
        ! apt-get source --tar-only --download-only "$package=$other" >>log 2>&1 || return 0
    done
    return 1
}
# A distribution's security archive may lack the source itself, and the next release has it.
(
    cd "$work"
    fetch_source '' || fetch_source 's/.*/Suites: trixie-backports forky sid/'
) || {
    tail -n 5 "$work/log" >&2
    echo "fetch-llvm.sh: the source package $package could not be fetched; the lines above say why." >&2
    exit 1
}
archive=$(find "$work" -maxdepth 1 -name "*_$upstream.orig.tar.xz" | head -n 1)
if [ -z "$archive" ]; then
    echo "fetch-llvm.sh: the package archive has no source of version $upstream, which is installed" >&2
    exit 1
fi
top=$(basename "$archive" .orig.tar.xz)
# The folders that the offload build reads, and its tests, which scripts/offload-conformance.py runs.
names=$(sed -n 's/^set(DIOMP_LLVM_FOLDERS "\(.*\)")$/\1/p' "$about" | tr ';' '\n' | sed "s|^|$top/|")
# shellcheck disable=SC2086 # a list of words
tar -xJf "$archive" -C "$work/tree" --strip-components=1 $names
echo "$version" >"$work/tree/version"
mv -T "$work/tree" "$folder"
echo "$folder"
