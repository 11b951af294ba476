// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What one endpoint does for a call: copies on its own stream and calls of the library. No call of
// it has a count of zero, and none is in place in a way that the library does not know.
#pragma once

#include "base/function_ref.h"
#include "base/result.h"
#include "collective/request.h"
#include "collective/vendor/nccl.h"

#include <cstddef>
#include <vector>

namespace diomp::collective::vendor {

enum class step_kind { broadcast, reduce, all_reduce, all_gather, reduce_scatter, send, receive };
[[nodiscard]] const char *symbol_of(step_kind kind);

struct step {
    step_kind kind = step_kind::broadcast;
    const void *from = nullptr;
    void *to = nullptr;
    std::size_t count = 0;
    element type = element::int8;
    reduction op = reduction::sum;
    int peer = -1; ///< or root
};

/// On the endpoint's own device.
struct local_copy {
    void *dst = nullptr;
    const void *src = nullptr;
    std::size_t nbytes = 0;
};

struct plan {
    std::vector<local_copy> before;
    std::vector<step> steps;
    std::vector<local_copy> after;
};

/// Where the endpoint `self` of `count` stands in the group.
struct position {
    int self = 0;
    int count = 1;
};

/// Whether the library has the call with this type and operator: sum, product and average of
/// integers of 8, 32 and 64 bits and of floating point up to double; minimum and maximum of those
/// integers (of floating point the library's drop NaNs); moves of any bytes. Else the native
/// collectives do it. Says the same on all members.
[[nodiscard]] bool can_do(const request &asked);

/// `scratch` gives device memory of so many bytes until the call is over, for calls in place that
/// the library does otherwise; asked once at most. OMPX_ERR_ARG, OMPX_ERR_RANK: what is asked makes
/// no sense. The call passes can_do.
result<plan> make_plan(const request &asked, const endpoint_buffers &with, position in,
                       function_ref<result<std::byte *>(std::size_t nbytes)> scratch);

} // namespace diomp::collective::vendor
