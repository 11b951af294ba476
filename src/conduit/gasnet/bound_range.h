// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What of a rank's memory GASNet-EX's own puts and gets reach, as other ranks are told of it.
#pragma once

#include "conduit/conduit.h"

#include <gasnetex.h>
#include <span>
#include <string>
#include <vector>

namespace diomp::conduit::gasnet {

/// Memory that is bound to an endpoint.
struct bound_range {
    memory_range range;
    gex_EP_Index_t endpoint = 0; ///< of its rank
};

/// nullptr: it is not wholly in one of them.
[[nodiscard]] const bound_range *find_around(std::span<const bound_range> all,
                                             const memory_range &part);

[[nodiscard]] std::string to_text(std::span<const bound_range> all);
/// As far as it is such a text.
[[nodiscard]] std::vector<bound_range> ranges_from(const std::string &text);

} // namespace diomp::conduit::gasnet
