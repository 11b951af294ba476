#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What clang needs to compile target regions for GPUs where neither CUDA nor ROCm is installed: a folder that stands in for
# a CUDA installation, made of packages of the Python registry, and the options for it. Nothing of it becomes part of
# this project.
#
#   scripts/gpu-toolchain.sh                  makes the folder unless it is there; prints it
#   scripts/gpu-toolchain.sh --folder         prints the folder only
#   scripts/gpu-toolchain.sh --flags [--llvm VERSION] ARCH...
#                                             prints clang's options to compile and to link, one a line, for
#                                             sm_80, sm_90 (NVIDIA), gfx90a (AMD), host (host devices), any of them;
#                                             an error says what is missing
#
# The folder is DIOMP_CUDA_TOOLCHAIN, which may also be a CUDA 12 installation, or a cache below the home folder. Its file
# `version` is written last.
set -eu

# Of one release: clang 19 knows CUDA up to 12.5, and libomptarget 19 takes no image that a CUDA 13 has linked.
nvcc=nvidia-cuda-nvcc-cu12==12.4.131
headers=nvidia-cuda-runtime-cu12==12.4.127
linker=nvidia-nvjitlink-cu12==12.4.127
release=12.4

here=$(cd "$(dirname "$0")" && pwd)
folder=${DIOMP_CUDA_TOOLCHAIN:-${XDG_CACHE_HOME:-${HOME:?is not set; set DIOMP_CUDA_TOOLCHAIN}/.cache}/diomp/cuda-$release}
major=19

fail() {
    echo "gpu-toolchain.sh: $1" >&2
    exit 1
}

# join SEPARATOR WORD...
join() {
    separator=$1
    shift
    joined=
    for word in "$@"; do
        joined=$joined${joined:+$separator}$word
    done
    printf '%s' "$joined"
}

# device_runtime nvptx|amdgpu: its file, by the pattern in llvm/versions, checked.
device_runtime() {
    pattern=$(sed -n "s/^set(DIOMP_LLVM_RUNTIME_$1 \"\(.*\)\")\$/\1/p" "$here/../llvm/versions/$major/version.cmake")
    name=$(printf '%s' "$pattern" | sed "s/[*]/$2/")
    [ -e "$llvm/$name" ] || fail "$llvm has no device runtime for $2 ($name; up to LLVM 19 it is in package libomp-$major-dev), see docs/llvm.md"
}

needs_nvidia() {
    [ -x "$folder/bin/ptxas" ] && [ -x "$folder/bin/nvlink" ] ||
        fail "there is no ptxas and nvlink in $folder: run scripts/gpu-toolchain.sh, or set DIOMP_CUDA_TOOLCHAIN"
    device_runtime nvptx "$1"
}

find_rocm() {
    device_runtime amdgpu "$1"
    [ -x "${llvm%/lib}/bin/ld.lld" ] || fail "$1 needs the linker lld (package lld-$major)"
    for rocm in /usr/lib/*/amdgcn/bitcode /opt/rocm/amdgcn/bitcode; do
        [ ! -e "$rocm/ocml.bc" ] || return 0
    done
    fail "$1 needs ROCm's device libraries (package rocm-device-libs)"
}

print_flags() {
    triples=
    nvidia=
    amd=
    rocm=
    for arch in "$@"; do
        case $arch in
        sm_*) needs_nvidia "$arch" && nvidia=$(join , $nvidia "$arch") ;;
        gfx*) find_rocm "$arch" && amd=$(join , $amd "$arch") ;;
        host) triples=$(uname -m)-pc-linux-gnu ;;
        *) fail "unknown architecture '$arch' (known: sm_NN, gfxNN, host)" ;;
        esac
    done
    [ -z "$nvidia" ] || triples=$(join , $triples nvptx64-nvidia-cuda)
    [ -z "$amd" ] || triples=$(join , $triples amdgcn-amd-amdhsa)
    [ -n "$triples" ] || fail "--flags needs an architecture"
    printf '%s\n' -fopenmp "-fopenmp-targets=$triples"
    if [ -n "$nvidia" ]; then
        printf '%s\n' "-Xopenmp-target=nvptx64-nvidia-cuda --offload-arch=$nvidia" "--cuda-path=$folder"
        case $name in *.bc) printf '%s\n' "--libomptarget-nvptx-bc-path=$llvm" ;; esac
    fi
    if [ -n "$amd" ]; then
        printf '%s\n' "-Xopenmp-target=amdgcn-amd-amdhsa --offload-arch=$amd" "--rocm-device-lib-path=$rocm"
    fi
}

case ${1:-} in
--folder) echo "$folder" && exit ;;
--flags)
    shift
    if [ "${1:-}" = --llvm ]; then
        major=$2
        shift 2
    fi
    llvm=$("$here/llvm-toolchain.sh" --llvm "$major" --folder)/lib
    print_flags "$@"
    exit
    ;;
'') ;;
*) echo "gpu-toolchain.sh: unknown argument '$1' (known: --folder, --flags)" >&2 && exit 2 ;;
esac

if [ -e "$folder" ] && [ ! -e "$folder/version" ]; then
    [ ! -x "$folder/bin/nvcc" ] || { echo "$folder" && exit; } # somebody's CUDA
    fail "$folder is there, but not made by this script (no file 'version'): remove it, or set DIOMP_CUDA_TOOLCHAIN"
fi
wanted="$nvcc $headers $linker $(cksum <"$here/nvlink.py")"
[ "$(cat "$folder/version" 2>/dev/null)" != "$wanted" ] || { echo "$folder" && exit; }
mkdir -p "$(dirname "$folder")"
# One run at a time; the next one finds the folder complete.
exec 9>"$folder.lock"
flock 9
[ "$(cat "$folder/version" 2>/dev/null)" != "$wanted" ] || { echo "$folder" && exit; }

work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT
python3 -m pip --version >/dev/null 2>&1 || fail "needs pip for Python 3 (package python3-pip)"
echo "gpu-toolchain.sh: fetching the compiler parts of CUDA $release" >&2
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
    --platform "manylinux2014_$(uname -m)" --dest "$work" $nvcc $headers $linker >"$work/log" 2>&1 || {
    tail -n 5 "$work/log" >&2
    fail "the packages could not be fetched from the Python registry; the lines above say why"
}
for wheel in "$work"/*.whl; do
    python3 -m zipfile -e "$wheel" "$work/unpacked"
done
from=$work/unpacked/nvidia
root=$work/root
mkdir -p "$root/bin" "$root/lib" "$root/include" "$root/nvvm"
cp "$from/cuda_nvcc/bin/ptxas" "$root/bin/"
cp -r "$from/cuda_nvcc/nvvm/libdevice" "$root/nvvm/"
cp "$from/cuda_runtime/include/cuda.h" "$root/include/" # clang reads the release there
cp "$from/nvjitlink/lib/libnvJitLink.so.12" "$root/lib/"
cp "$here/nvlink.py" "$root/bin/nvlink"
chmod +x "$root/bin/ptxas" "$root/bin/nvlink"
echo "$wanted" >"$root/version"
rm -rf "$folder"
mv -T "$root" "$folder"
echo "$folder"
