// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The steps of one endpoint in a call: copies on its own stream and calls of the library. No
// library call has a count of zero, and in-place calls follow the library's rules.
#pragma once

#include "base/function_ref.h"
#include "base/result.h"
#include "coll/request.h"
#include "device_coll/vendor/nccl.h"

#include <cstddef>
#include <vector>

namespace diomp::device_coll::vendor {

enum class step_kind { broadcast, reduce, all_reduce, all_gather, reduce_scatter, send, receive };
[[nodiscard]] const char *symbol_of(step_kind kind);

struct step {
    step_kind kind = step_kind::broadcast;
    const void *from = nullptr;
    void *to = nullptr;
    std::size_t count = 0;
    element type = element::int8;
    reduction op = reduction::sum;
    int peer = -1; ///< or the root
};

/// A copy on the endpoint's own device.
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

/// Number `self` of the endpoint in a group of `count`.
struct position {
    int self = 0;
    int count = 1;
};

/// Whether the library supports the call with this type and operator: sum, product and average of
/// integers of 8, 32 and 64 bits and of floating point up to double; minimum and maximum of those
/// integers (the library's floating-point versions ignore NaNs); data movement of any bytes. Other
/// calls use the native collectives. Equal on all members.
[[nodiscard]] bool supports(const coll::request &args);

/// `scratch` allocates device memory until the end of the call, at most once, for in-place calls
/// that the library defines differently. OMPX_ERR_ARG, OMPX_ERR_RANK: invalid arguments. Requires
/// supports.
result<plan> make_plan(const coll::request &args, const coll::endpoint_buffers &buffers,
                       position pos, function_ref<result<std::byte *>(std::size_t nbytes)> scratch);

} // namespace diomp::device_coll::vendor
