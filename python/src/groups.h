// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Groups as arguments.
#pragma once

#include "library.h"

namespace diomp::python {

/// A handle of a group. The garbage collector does not free groups, since that is collective.
struct group {
    ompx_group_t handle;
};
/// None stands for the world.
[[nodiscard]] inline ompx_group_t handle_of(const group *given) {
    return given != nullptr ? given->handle : ompx_group_world;
}

} // namespace diomp::python
