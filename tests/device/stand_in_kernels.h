// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The runtime's kernels as stand-ins for vendors' libraries run them: their source, compiled for
// the processor, one thread after the other.
#pragma once

#include "device/kernels/reduction.h"
#include "device/kernels/update.h"

#include <cstddef>
#include <string>

namespace stand_in {

using diomp::device::kernels::reduction_arguments;
using diomp::device::kernels::update_arguments;

struct kernel {
    const char *name;
    std::size_t element_bytes;
    void (*run)(const reduction_arguments &all); ///< null: the kernel of update.h
};
/// Null: there is none of the name.
const kernel *find_kernel(const std::string &name);
/// All threads of a launch. One launch at a time.
void run_threads(const kernel &which, const reduction_arguments &all,
                 unsigned long long num_threads);

/// The kernel of update.h. The processor can load and store the words.
void run_updates(const update_arguments &all);

} // namespace stand_in
