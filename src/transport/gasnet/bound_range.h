// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The memory of a rank that GASNet-EX's own puts and gets can access, as published to other ranks.
#pragma once

#include "transport/types.h"

#include <gasnetex.h>
#include <span>
#include <string>
#include <vector>

namespace diomp::transport::gasnet {

/// Memory that is bound to an endpoint.
struct bound_range {
    memory_range range;
    gex_EP_Index_t endpoint = 0; ///< index in its rank
};

/// The range that contains all of `range_inside`; nullptr if none does.
[[nodiscard]] const bound_range *find_enclosing(std::span<const bound_range> all,
                                                const memory_range &range_inside);

[[nodiscard]] std::string to_text(std::span<const bound_range> all);
/// Parses the output of to_text(); stops at the first malformed range.
[[nodiscard]] std::vector<bound_range> ranges_from(const std::string &text);

} // namespace diomp::transport::gasnet
