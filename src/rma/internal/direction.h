// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Direction of a transfer, as seen by the initiating rank.
#pragma once

#include <cstdint>

namespace diomp::rma {

/// Part of the wire format.
enum class direction : std::uint32_t {
    put, ///< from local to remote memory
    get, ///< from remote to local memory
};

} // namespace diomp::rma
