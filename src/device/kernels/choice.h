// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Selects the kernel for a reduction and its launch parameters, for all vendors.
#pragma once

#include "device/device.h"
#include "device/kernels/reduction.h"
#include "device/kernels/update.h"

#include <optional>
#include <span>
#include <string>

namespace diomp::device::kernels {

/// A kernel. Its elements may be components of the type's elements: a complex sum is a sum of twice
/// as many floats.
struct kernel_choice {
    std::string name;
    std::size_t element_bytes = 0;
    std::size_t per_element = 1;
};
/// Selects a kernel; nullopt: none.
std::optional<kernel_choice> choose(const reduction &how);

/// A one-dimensional launch.
struct launch {
    static constexpr unsigned block_threads = reduction_arguments::block_threads;
    /// Enough to fill a device's multiprocessors several times; for longer arrays, each thread
    /// processes more than one element.
    static constexpr std::size_t max_blocks = 4096;

    std::string kernel;
    reduction_arguments arguments;
    unsigned num_blocks = 1;
};
/// Prepares the launch of queue::reduce with `count` > 0. Errors as for queue::reduce.
result<launch> prepare(const reduction &how, void *dst, std::span<const void *const> sources,
                       std::size_t count);

/// Prepares the parameter of the kernel diomp_update; see queue::update.
result<update_arguments> prepare(std::span<const word_update> all, std::uint64_t *old_values);

} // namespace diomp::device::kernels
