// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What requests of call.h begin with.
#pragma once

#include <cstdint>

namespace diomp::messaging {

/// First member of every request. The reply goes to the message's source; `id` identifies the
/// request.
struct request_header {
    std::uint64_t id = 0;
};

} // namespace diomp::messaging
