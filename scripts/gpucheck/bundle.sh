#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Part of scripts/gpu-check.sh: builds with the preset gpu and gathers programs and libraries in a folder that can be
# carried to another machine. glibc and its loader come along in a folder of their own, since that machine's may be older.
set -eu
cd "$(dirname "$0")/../.."
folder=$1
limit_mib=64
build=build/gpu
llvm=/usr/lib/llvm-19/lib
system=/usr/lib/x86_64-linux-gnu

fail() {
    echo "gpu-check.sh bundle: $1" >&2
    exit 1
}

scripts/gpu-toolchain.sh >/dev/null
scripts/fetch-llvm.sh >/dev/null
launcher=()
if command -v ccache >/dev/null; then
    launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi
apps=(minimod-target matmul-target)
benchmarks=(bench_region_latency bench_target_put)
tests=(offload_plain offload_target offload_misuse offload_shared_device device_real_test)
cmake --preset gpu "${launcher[@]}" >/dev/null
cmake --build --preset gpu --target diomp-run diomp-info "${apps[@]}" "${benchmarks[@]}" "${tests[@]}"

rm -rf "$folder"
mkdir -p "$folder/bin" "$folder/lib/diomp" "$folder/libc"
cp "$build"/bin/{diomp-run,diomp-info} "$folder/bin/"
for name in "${apps[@]}" "${benchmarks[@]}" "${tests[@]}"; do
    cp "$(find "$build" -type f -name "$name" -perm -u+x | head -n 1)" "$folder/bin/"
done
cp -L "$build/lib/libdiomp.so.0" "$folder/lib/"
ln -s libdiomp.so.0 "$folder/lib/libdiomp.so"
cp -L "$build/lib/diomp/libomptarget.so.19.1" "$folder/lib/diomp/"
cp -L "$llvm/libomp.so.5" "$folder/lib/"
ln -s libomp.so.5 "$folder/lib/libomp.so" # libomptarget looks for it by this name, and must not find another
# The distribution's UCX, which knows nothing of CUDA: enough for ranks that are forced onto the network.
if [ -e "$system/libucp.so.0" ]; then
    cp -L "$system"/libuc[ptsm].so.0 "$folder/lib/"
    mkdir "$folder/lib/ucx"
    cp -L "$system"/ucx/*.so.0 "$folder/lib/ucx/"
fi

# What all that needs. NVIDIA's driver brings libraries that need old names of glibc's parts.
mapfile -t needed < <(find "$folder/bin" "$folder/lib" -type f -exec ldd {} + 2>/dev/null |
    awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u)
libc=(ld-linux-x86-64.so.2 libc.so.6 libm.so.6 libmvec.so.1 libdl.so.2 libpthread.so.0 librt.so.1 libresolv.so.2 libutil.so.1)
for library in "${libc[@]}"; do
    cp -L "/lib/x86_64-linux-gnu/$library" "$folder/libc/"
done
for library in "${needed[@]}"; do
    name=$(basename "$library")
    if [ -e "$folder/libc/$name" ] || [ -e "$folder/lib/$name" ] || [ -e "$folder/lib/diomp/$name" ]; then
        continue
    fi
    cp -L "$library" "$folder/lib/"
done
find "$folder/bin" "$folder/lib" -type f -exec strip --strip-unneeded {} + 2>/dev/null || true

cp scripts/gpucheck/run.sh scripts/gpucheck/report.awk "$folder/"
{
    echo "commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown)$(git diff --quiet HEAD 2>/dev/null || echo ' with changes')"
    echo "glibc $(getconf GNU_LIBC_VERSION | awk '{ print $2 }')"
    echo "archs $(sed -n 's/^DIOMP_GPU_ARCHS:[A-Z]*=//p' "$build/CMakeCache.txt" | tr ';' ' ')"
} >"$folder/about"

size_mib=$(du -sm "$folder" | cut -f 1)
[ "$size_mib" -le "$limit_mib" ] || fail "$folder has $size_mib MiB, more than $limit_mib"
echo "$folder: $size_mib MiB, $(find "$folder" -type f | wc -l) files"
