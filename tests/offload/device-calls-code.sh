#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Compiles calls in target regions for GPUs, as C and as C++, with and without optimisation, and looks for the instructions
# that the memory model needs. Status 77: clang has no such target.
#
#   device-calls-code.sh SOURCE_DIR CLANG
set -eu
source=$1
clang=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
code=$work/code
# shellcheck source-path=SCRIPTDIR source=../support/gpu_code.sh
. "$source/tests/support/gpu_code.sh"
compiled=no

# compile TRIPLE ARCH LANGUAGE LEVEL: to $code.
compile() {
    ptx= # clang takes its version from CUDA's files, which need not be here
    [ "$1" != nvptx64 ] || ptx=--cuda-feature=+ptx80
    "$clang" -x "$3" "$4" -Wall -Wextra -Wconversion -Werror -fopenmp "-fopenmp-targets=$1" "-Xopenmp-target=$1" "-march=$2" -nogpulib $ptx \
        --offload-device-only -S -I"$source/include" "$source/tests/offload/device_calls_code.c" -o - >"$code"
}

# Requests to the proxy: an index in device memory, four stores of 16 bytes, and replies.
ring_of_requests() {
    has 'atom.relaxed.gpu.add.u64' 'the index of a request is reserved in device memory'
    has 'st.relaxed.sys.v2.u64' 'the words of a request are whole for the host'
    has 'ld.relaxed.gpu.u64' 'the count of executed requests is cached on the device'
    has '%ctaid.x' 'the team chooses the ring'
    has '^[[:space:]]*[.]shared .*diomp_team_status' 'one thread of a team asks for all'
    # A put with signal by request: the fence comes before the stores.
    awk '/^[.]func.*diomp_ring_put_signal.*[(]$/ { inside = 1 } inside && /fence.sc.sys/ { fenced = 1 }
        fenced && /diomp_ring_(store|post|call)/ { ok = 1 } inside && /^}/ { exit } END { exit !ok }' "$code" || {
        echo "in the code for $target: no fence before the request of a put with signal" && exit 1
    }
}

# The order in the code of a barrier: F a fence, R the release of a signal, A its acquire or the wait for it, P a request, N the
# count of barriers. Signals follow a fence, and so does what comes after the barrier.
order_of_barrier() {
    # Clang 22 places the barrier's blocks so that their order in the text is not that of execution.
    "$clang" --version | grep -q 'clang version 19[.]' || return 0
    sequence=$(awk "$1" "$code" | tr -d '\n')
    echo "$sequence" | grep -q '^F.*FR.*A.*NF$' && echo "$sequence" | grep -q 'R.*FP' || {
        echo "in the code for $target: the barrier's order is '$sequence'" && exit 1
    }
}

for target in nvptx64 amdgcn-amd-amdhsa; do
    "$clang" --print-targets | grep -q "^ *${target%%-*} " || continue
    compiled=yes
    for language in c c++; do
        for level in -O0 -O2; do
            case $target in
            nvptx64)
                compile "$target" sm_90 "$language" "$level"
                ring_of_requests
                compile "$target" sm_80 "$language" "$level"
                ring_of_requests
                has 'st.release.sys.u64' 'a signal is visible after its data'
                has 'ld.acquire.sys.u64' 'data is visible after its signal'
                has 'ld.acquire.sys.u32' 'a wait for 32 bits'
                has 'fence.sc.sys' 'a fence orders for other devices and the host'
                has 'globaltimer' 'waits end'
                for operation in add.u32 add.u64 add.f32 add.f64 min.s32 max.u64 and.b32 or.b64 xor.b32 exch.b64 cas.b32 cas.b64; do
                    has "atom.relaxed.sys.$operation" 'other devices change the word as well'
                done
                has '[.]weak .*diomp_device_endpoint_pointer' 'libomptarget looks for it'
                has '[.]weak [.]func.*diomp_device_endpoint' 'it marks the image'
                lacks '^[.]extern [.]func.*ompx_' 'all calls are inline, or to functions that the code has: clang 22 without optimisation'
                order_of_barrier '/^[.]func.*diomp_device_barrier.*[(]$/ { inside = 1 }
                    inside && /fence[.]sc[.]sys/ { print "F" } inside && /st[.]release[.]sys[.]u64/ { print "R" }
                    inside && /ld[.]acquire[.]sys[.]u64|diomp_device_wait[^ ]*,/ { print "A" }
                    inside && /diomp_ring_(store|post_by)[^ ]*,/ { print "P" } inside && /st[.]relaxed[.]gpu[.]u64/ { print "N" }
                    inside && /^}/ { exit }'
                ;;
            amdgcn*) # LLVM's representation, whose default scope is the system
                compile "$target" gfx90a "$language" "$level"
                has 'fence seq_cst$' 'a fence orders for other devices and the host'
                has 'store atomic i64 .* release, align 8' 'a signal is visible after its data'
                has 'load atomic i64, .* acquire, align 8' 'data is visible after its signal'
                lacks 'syncscope' 'other devices and the host take part'
                order_of_barrier '/^define .*@[^ (]*diomp_device_barrier/ { inside = 1 } inside && /fence seq_cst/ { print "F" }
                    inside && /store atomic i64 .* release/ { print "R" }
                    inside && /load atomic i64, .* acquire|call .*@[^ (]*diomp_device_wait/ { print "A" }
                    inside && /call .*@[^ (]*diomp_ring_(store|post_by)/ { print "P" }
                    inside && /store atomic i64 .* monotonic/ { print "N" } inside && /^}/ { exit }'
                ;;
            esac
        done
    done
done
[ "$compiled" = yes ] || {
    echo "skipped: $clang has no target for GPUs" && exit 77
}
echo "ok"
