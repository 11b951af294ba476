#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# A folder with what programs for 64-bit Arm are compiled, linked and run against on this machine: packages of the
# distribution for arm64, unpacked. They are not installed: libomp of two architectures excludes each other.
# Nothing of the system changes, and nothing of them becomes part of this project.
#
#   scripts/dpu-sysroot.sh             makes the folder unless it is there; prints it
#   scripts/dpu-sysroot.sh --folder    prints the folder only
#   scripts/dpu-sysroot.sh --list      prints the packages and their reasons
#
# The folder is DIOMP_DPU_SYSROOT, or a cache below the home folder. Its file `version` is written last.
set -eu

# One package a line: name, then the reason.
packages='
libc6                 C library and the loader
libc6-dev             its headers, start files and links
linux-libc-dev        headers of the kernel
libcrypt1             libc6-dev has a link to it
libgcc-s1             what compilers call
libgcc-12-dev         the same, statically, and start files
libatomic1            the same
libstdc++6            C++
libstdc++-12-dev      its headers
libomp5-19            OpenMP, and libomptarget
libomp-19-dev         omp.h
libllvm19             libomptarget needs it
libedit2              libllvm19 needs it
libbsd0               libedit2 needs it
libmd0                libbsd0 needs it
libtinfo6             libllvm19 needs it
libxml2               the same
libicu72              libxml2 needs it
liblzma5              the same
libz3-4               libllvm19 needs it
libzstd1              the same
zlib1g                the same
libffi8               target regions are called through it
libffi-dev            the same
libxxhash-dev         device images are known by their hash
libsodium-dev         connections prove who they are; linked statically
libfmt9               text formatting in the runtime
libfmt-dev            the same
libcli11-dev          options of the tools
nlohmann-json3-dev    JSON output of diomp-info
libhwloc15            cores and NUMA nodes in diomp-info
libhwloc-dev          the same
libudev1              libhwloc15 needs it
libpmix-dev           headers, for start-up under mpirun, prterun and srun
libucx0               ranks on several nodes
libucx-dev            the same
libnuma1              libucx0 needs it
libibverbs1           the same
librdmacm1            the same
libnl-3-200           libibverbs1 needs it
libnl-route-3-200     the same
'

folder=${DIOMP_DPU_SYSROOT:-${XDG_CACHE_HOME:-${HOME:?is not set; set DIOMP_DPU_SYSROOT}/.cache}/diomp/sysroot-aarch64}
case ${1:-} in
--folder) echo "$folder" && exit ;;
--list) printf '%s' "$packages" && exit ;;
'') ;;
*) echo "dpu-sysroot.sh: unknown argument '$1' (known: --folder, --list)" >&2 && exit 2 ;;
esac

fail() {
    echo "dpu-sysroot.sh: $1" >&2
    exit 1
}

names=$(printf '%s' "$packages" | awk 'NF { print $1 }')
wanted=$(printf 'arm64, layout 1:%s' "$(printf ' %s' $names)")
is_there() { [ "$(head -n 1 "$folder/version" 2>/dev/null)" = "$wanted" ]; }

! is_there || { echo "$folder" && exit; }
if [ -e "$folder" ] && [ ! -e "$folder/version" ]; then
    [ ! -e "$folder/usr/lib/llvm-19/lib/libomp.so" ] || { echo "$folder" && exit; } # somebody's own
    fail "$folder is there, but not made by this script (no file 'version'): remove it, or set DIOMP_DPU_SYSROOT"
fi
for tool in apt-get dpkg-deb flock; do
    command -v $tool >/dev/null || fail "needs $tool; without it set DIOMP_DPU_SYSROOT to the root of a Debian for arm64"
done
mkdir -p "$(dirname "$folder")"
# One run at a time; the next one finds the folder complete.
exec 9>"$folder.lock"
flock 9
! is_there || { echo "$folder" && exit; }

work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/sources" "$work/lists/partial" "$work/cache/archives/partial" "$work/packages" "$work/root"
: >"$work/status"

# The machine's own package sources, asked for another architecture.
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
    case $file in
    *.sources) sed '/^Architectures:/d' "$file" ;;
    *.list) sed 's/\([[ ]\)arch=[^] ]*/\1/' "$file" ;;
    *) continue ;;
    esac >"$work/sources/$(basename "$file")" 2>/dev/null || true
done
# No package counts as installed, and the system's own architectures are not asked for.
cat >"$work/apt.conf" <<END
#clear APT::Architectures;
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$work/sources";
Dir::State::lists "$work/lists";
Dir::State::status "$work/status";
Dir::Cache "$work/cache";
Acquire::Languages "none";
END
export APT_CONFIG="$work/apt.conf"
echo "dpu-sysroot.sh: fetching packages for arm64" >&2
(
    cd "$work/packages"
    # Package sources of others need not have arm64: what matters is whether ours come.
    apt-get -qq update >"$work/log" 2>&1 || true
    # shellcheck disable=SC2086 # a list of words
    apt-get -qq download $names >>"$work/log" 2>&1
) || {
    tail -n 5 "$work/log" >&2
    fail "the packages could not be fetched; the lines above say why"
}
root=$work/root
for package in "$work"/packages/*.deb; do
    dpkg-deb -x "$package" "$root"
done

# A third of it, and for nobody here: documentation, character sets, code for GPUs.
rm -rf "$root/usr/share/doc" "$root/usr/share/man" "$root/usr/share/lintian" "$root/usr/lib/aarch64-linux-gnu/gconv" \
    "$root"/usr/lib/llvm-19/lib/libomptarget-*.bc
# Links that name their target from the root of the file system would leave the folder.
find "$root" -type l -lname '/*' | while IFS= read -r link; do
    ln -sfnr "$root$(readlink "$link")" "$link"
done
# Those of packages that are not here (sanitizers, libpmix.so).
find "$root" -type l ! -exec test -e {} \; -delete
llvm=$root/usr/lib/llvm-19/lib
[ -e "$llvm/libomp.so" ] || ln -s libomp.so.5 "$llvm/libomp.so"
[ -e "$llvm/libomptarget.so" ] || ln -s libomptarget.so.19.1 "$llvm/libomptarget.so"
# Where the loader looks, also under an emulator.
ln -sf ../llvm-19/lib/libomptarget.so.19.1 "$root/usr/lib/aarch64-linux-gnu/libomptarget.so.19.1"
# Clang links this for every device; what is in it is for GPUs.
printf '!<arch>\n' >"$llvm/libomptarget.devicertl.a"

{
    echo "$wanted"
    (cd "$work/packages" && ls)
} >"$root/version"
rm -rf "$folder"
mv -T "$root" "$folder"
echo "$folder"
