// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which kernel carries out a reduction, and with what it is launched: the same for all vendors.
#pragma once

#include "device/device.h"
#include "device/kernels/reduction.h"

#include <optional>
#include <span>
#include <string>

namespace diomp::device::kernels {

/// The kernel for a reduction, whose elements are parts of those of the type: a complex sum is one
/// of twice as many floats.
struct kernel_choice {
    std::string name;
    std::size_t element_bytes = 0;
    std::size_t per_element = 1;
};
/// nullopt: there is none.
std::optional<kernel_choice> choose(const reduction &how);

/// A launch in one dimension.
struct launch {
    static constexpr unsigned block_threads = reduction_arguments::block_threads;
    /// So many fill a device's multiprocessors several times; each thread takes more than one
    /// element of arrays that are longer.
    static constexpr std::size_t most_blocks = 4096;

    std::string kernel;
    reduction_arguments arguments;
    unsigned num_blocks = 1;
};
/// Of queue::reduce with `count` > 0. Errors as there.
result<launch> prepare(const reduction &how, void *dst, std::span<const void *const> sources,
                       std::size_t count);

} // namespace diomp::device::kernels
