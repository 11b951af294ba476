// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The groups whose barriers target regions on GPUs may call.
#pragma once

#include "base/result.h"
#include "diomp/types.h"

#include <functional>

namespace diomp::group {
class group_registry;
}
namespace diomp::offload {
struct group_members;
}

namespace diomp::runtime {

/// For offload::devices::set_groups. The registry must outlive the function.
std::function<result<offload::group_members>(ompx_group_t)>
region_groups(group::group_registry &all);

} // namespace diomp::runtime
