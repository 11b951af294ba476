// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which way a transfer goes, as the rank sees it that asks for it.
#pragma once

#include <cstdint>

namespace diomp::rma {

/// Also in messages.
enum class direction : std::uint32_t {
    put, ///< from local to remote memory
    get, ///< from remote to local memory
};

} // namespace diomp::rma
