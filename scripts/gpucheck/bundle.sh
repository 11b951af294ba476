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
apps=(minimod-target minimod-region gups oneshot matmul-target cg-target train-target dpu-target lookups-target minimod-devices)
twins=() # with Open MPI, which the other machine may have
! command -v mpicc >/dev/null || twins=(minimod-target-mpi matmul-target-mpi cg-target-mpi train-target-mpi)
benchmarks=(bench_region_latency bench_remote_regions bench_target_put bench_target_collectives bench_device_calls bench_device_rings bench_plans)
tests=(offload_plain offload_target offload_misuse offload_variables offload_freed offload_compat offload_plan offload_plan_sequences offload_threads offload_shared_device offload_device_calls offload_device_rings offload_device_litmus offload_service_gpu
    device_real_test device_reduce_test)
cmake --preset gpu "${launcher[@]}" >/dev/null
cmake --build --preset gpu --target diomp-run diomp-info diomp-deviced offload_variables_library "${apps[@]}" "${twins[@]}" "${benchmarks[@]}" \
    "${tests[@]}"

rm -rf "$folder"
mkdir -p "$folder/bin" "$folder/lib/diomp" "$folder/libc"
cp "$build"/bin/{diomp-run,diomp-info,diomp-deviced} "$folder/bin/"
cp "$(find "$build/tests" -name 'liboffload_variables_library.so')" "$folder/lib/"
for name in "${apps[@]}" "${benchmarks[@]}" "${tests[@]}"; do
    cp "$(find "$build" -type f -name "$name" -perm -u+x | head -n 1)" "$folder/bin/"
done
if [ ${#twins[@]} -gt 0 ]; then
    mkdir "$folder/mpi"
    cp "${twins[@]/#/$build/bin/}" "$folder/mpi/"
fi
cp -L "$build/lib/libdiomp.so.1" "$folder/lib/"
ln -s libdiomp.so.1 "$folder/lib/libdiomp.so"
cp -L "$build/lib/diomp/libomptarget.so.19.1" "$folder/lib/diomp/"
cp -L "$llvm/libomp.so.5" "$folder/lib/"
ln -s libomp.so.5 "$folder/lib/libomp.so" # libomptarget looks for it by this name, and must not find another
# The distribution's UCX, which knows nothing of CUDA: enough for ranks that are forced onto the network.
if [ -e "$system/libucp.so.0" ]; then
    cp -L "$system"/libuc[ptsm].so.0 "$folder/lib/"
    mkdir "$folder/lib/ucx"
    cp -L "$system"/ucx/*.so.0 "$folder/lib/ucx/"
fi

# One that reads and writes the memory of NVIDIA's GPUs, of the Python registry.
wanted=libucx-cu12==1.22.0
cache=${XDG_CACHE_HOME:-$HOME/.cache}/diomp/$wanted
if [ ! -e "$cache/libucx" ]; then
    fresh=$(mktemp -d)
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --dest "$fresh" "$wanted" ||
        fail "$wanted could not be fetched from the Python registry"
    python3 -m zipfile -e "$fresh"/*.whl "$fresh/unpacked"
    mkdir -p "$(dirname "$cache")"
    rm -rf "$cache"
    mv "$fresh/unpacked" "$cache"
    rm -rf "$fresh"
fi
mkdir -p "$folder/ucx-cuda/ucx"
cp -L "$cache"/libucx/lib/libuc[ptsm].so.0 "$cache"/libucx/lib/libucs_signal.so.0 "$cache"/libucx_cu12.libs/*.so.* \
    "$folder/ucx-cuda/"
cp -L "$cache"/libucx/lib/ucx/{libucm_cuda,libuct_cuda,libuct_cma}.so.0 "$folder/ucx-cuda/ucx/"
# And a libdiomp with GASNet-EX where there is one with memory kinds for CUDA: GPU_CHECK_GASNET is its pkg-config folder, and
# GPU_CHECK_GASNET_TESTS where its own tests are.
if [ -n "${GPU_CHECK_GASNET:-}" ]; then
    PKG_CONFIG_PATH=$GPU_CHECK_GASNET cmake --preset gpu -B build/gpu-gasnet "${launcher[@]}" -DDIOMP_GASNET_CONDUIT=ucx >/dev/null
    cmake --build build/gpu-gasnet --target diomp conduit_contract
    mkdir "$folder/gasnet"
    cp -L build/gpu-gasnet/lib/libdiomp.so.1 build/gpu-gasnet/tests/transport/conduit_contract \
        ${GPU_CHECK_GASNET_TESTS:+"$GPU_CHECK_GASNET_TESTS/testsmall"} "$folder/gasnet/"
fi

# What all that needs.
# needed_by FOLDER...: the libraries that what lies there needs.
needed_by() {
    find "$@" -type f -exec ldd {} + 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// && $1 !~ /^libcuda[.]/ { print $3 }' | sort -u
}
# bring LIBRARY FOLDER, unless it is there.
bring() {
    name=$(basename "$1")
    for place in libc lib lib/diomp ucx-cuda; do
        [ ! -e "$folder/$place/$name" ] || return 0
    done
    cp -L "$1" "$2/"
}
# NVIDIA's driver brings libraries that need old names of glibc's parts.
libc=(ld-linux-x86-64.so.2 libc.so.6 libm.so.6 libmvec.so.1 libdl.so.2 libpthread.so.0 librt.so.1 libresolv.so.2 libutil.so.1)
for library in "${libc[@]}"; do
    cp -L "/lib/x86_64-linux-gnu/$library" "$folder/libc/"
done
for library in $(needed_by "$folder/bin" "$folder/lib" "$folder/ucx-cuda"); do
    bring "$library" "$folder/lib"
done
if [ -e "$folder/gasnet" ]; then
    for library in $(needed_by "$folder/gasnet"); do
        bring "$library" "$folder/gasnet"
    done
fi
find "$folder" -type f -exec strip --strip-unneeded {} + 2>/dev/null || true

cp scripts/gpucheck/{run.sh,report.awk,expect.sh,host-of-each.sh,ssh} "$folder/"
{
    echo "commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown)$(git diff --quiet HEAD 2>/dev/null || echo ' with changes')"
    echo "glibc $(getconf GNU_LIBC_VERSION | awk '{ print $2 }')"
    echo "archs $(sed -n 's/^DIOMP_GPU_ARCHS:[A-Z]*=//p' "$build/CMakeCache.txt" | tr ';' ' ')"
} >"$folder/about"

tar -C "$(dirname "$folder")" -czf "$folder.tar.gz" "$(basename "$folder")"
size_mib=$(du -sm "$folder.tar.gz" | cut -f 1)
[ "$size_mib" -le "$limit_mib" ] || fail "$folder.tar.gz has $size_mib MiB, more than $limit_mib"
echo "$folder: $(find "$folder" -type f | wc -l) files, and as one: $folder.tar.gz, $size_mib MiB"
