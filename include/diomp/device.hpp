// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The devices of this rank.
#ifndef DIOMP_DEVICE_HPP
#define DIOMP_DEVICE_HPP

#include "diomp/error.hpp"

#include <vector>

namespace diomp {
inline namespace v1 {

/// OpenMP's numbers of the devices that this rank drives, nearest first; empty if there are none.
/// Any thread. Calls ompx_num_rank_devices() and ompx_rank_device().
[[nodiscard]] inline std::vector<int> rank_devices() {
    int const num = detail::check(ompx_num_rank_devices());
    std::vector<int> devices;
    for (int index = 0; index < num; ++index) {
        devices.push_back(detail::check(ompx_rank_device(index)));
    }
    return devices;
}

} // namespace v1
} // namespace diomp

#endif // DIOMP_DEVICE_HPP
