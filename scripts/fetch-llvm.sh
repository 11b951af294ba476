#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Fetches the parts of LLVM's source that libomptarget is built from, out of the distribution's source package, so that
# they are of the very version that is installed. Nothing of it becomes part of this project.
#
#   scripts/fetch-llvm.sh             fetches unless it is there; prints the folder
#   scripts/fetch-llvm.sh --folder    prints the folder only
#
# The folder is DIOMP_LLVM_SOURCE, or a cache below the home folder. Its file `version` is written last.
set -eu

major=19
package=llvm-toolchain-$major
version=$(dpkg-query -W -f='${source:Version}' "llvm-$major-dev" 2>/dev/null || true)
upstream=$(printf '%s' "$version" | sed 's/^[0-9]*://; s/-.*//')
folder=${DIOMP_LLVM_SOURCE:-${XDG_CACHE_HOME:-${HOME:?is not set; set DIOMP_LLVM_SOURCE}/.cache}/diomp/llvm-${upstream:-$major}}
case ${1:-} in
--folder) echo "$folder" && exit ;;
'') ;;
*) echo "fetch-llvm.sh: unknown argument '$1' (known: --folder)" >&2 && exit 2 ;;
esac

[ ! -s "$folder/version" ] || { echo "$folder" && exit; }
if [ -z "$version" ]; then
    echo "fetch-llvm.sh: llvm-$major-dev is not installed (scripts/setup.sh does that)" >&2
    exit 1
fi

if [ -e "$folder" ]; then
    echo "fetch-llvm.sh: $folder is there, but not made by this script (no file 'version'): remove it, or set" \
        "DIOMP_LLVM_SOURCE to another folder" >&2
    exit 1
fi
mkdir -p "$(dirname "$folder")"
# One at a time; who comes second finds it done.
exec 9>"$folder.lock"
flock 9
[ ! -s "$folder/version" ] || { echo "$folder" && exit; }

work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/sources" "$work/lists/partial" "$work/cache/archives/partial" "$work/tree"
# The machine's own package sources, asked for source packages instead of binary ones. Nothing of the system changes.
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
    case $file in
    *.sources) sed 's/^Types:.*/Types: deb-src/' "$file" ;;
    *.list) sed -n 's/^deb /deb-src /p' "$file" ;;
    *) continue ;;
    esac >"$work/sources/$(basename "$file")" 2>/dev/null || true
done
set -- -qq -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$work/sources" \
    -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=
echo "fetch-llvm.sh: fetching the source of $package $version" >&2
(
    cd "$work"
    # Package sources of others need not have source packages: what matters is whether ours comes. The distribution's
    # own changes to it are not needed.
    apt-get "$@" update >log 2>&1 || true
    apt-get "$@" source --tar-only --download-only "$package=$version" >>log 2>&1 ||
        apt-get "$@" source --tar-only --download-only "$package" >>log 2>&1
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
tar -xJf "$archive" -C "$work/tree" --strip-components=1 \
    "$top/offload" "$top/openmp/runtime/src" "$top/openmp/cmake" "$top/cmake" "$top/llvm/cmake" "$top/llvm/utils/lit" \
    "$top/runtimes" "$top/third-party/unittest"
echo "$version" >"$work/tree/version"
mv -T "$work/tree" "$folder"
echo "$folder"
