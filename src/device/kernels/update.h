// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parameters of the kernel that updates words of a GPU atomically for other ranks, and its loop.
// Also compiled for GPUs, without a library.
#pragma once

#include "diomp/device_words.h"

namespace diomp::device::kernels {

/// An atomic read-modify-write, as the kernel receives it.
struct update_item {
    unsigned long long address = 0;
    unsigned long long operand = 0; ///< compare and swap: the expected value
    unsigned long long desired = 0;
    int type = 0;
    int op = 0; ///< see compare_swap_op
};

/// The operator of a compare and swap; not one of diomp.h.
inline constexpr int compare_swap_op = -1;

/// The only parameter of the kernel diomp_update: executed in order, by one thread.
struct update_arguments {
    static constexpr unsigned max_updates = 32;

    unsigned long long count = 0;
    unsigned long long old_values = 0; ///< address of `count` words in pinned host memory
    update_item items[max_updates] = {};
};

/// The kernel. What any GPU or processor has stored before its launch is ordered before the
/// updates.
static inline __attribute__((always_inline, unused)) void update(const update_arguments &all) {
    auto *const old_values = reinterpret_cast<diomp_u64_ *>(all.old_values);
    diomp_fence_system();
    for (unsigned long long i = 0; i < all.count; ++i) {
        update_item const &each = all.items[i];
        auto *const at = reinterpret_cast<char *>(each.address);
        diomp_u64_ old = 0;
        if (each.op == compare_swap_op) {
            old = diomp_atomic_exchange_if(at, each.operand, each.desired,
                                           diomp_atomic_bytes(each.type));
        } else {
            diomp_atomic_apply(at, &each.operand, &old, each.type, each.op);
        }
        old_values[i] = old;
    }
    diomp_fence_system();
}

} // namespace diomp::device::kernels
