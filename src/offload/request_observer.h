// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What statistics and traces learn of the requests that target regions make.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

namespace diomp::offload {

/// A request that the proxy thread has executed, successfully or not.
struct executed_request {
    const char *function = ""; ///< the call in the region, a string literal
    std::size_t nbytes = 0;
    int rank = -1; ///< the peer; -1: none
    std::chrono::steady_clock::time_point begin;
    std::chrono::steady_clock::time_point end;
};

/// Called by the proxy thread; must not block. May be empty.
using request_observer = std::function<void(const executed_request &)>;

} // namespace diomp::offload
