// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checks of a call that need no communication, and the call's signature.
#pragma once

#include "coll/internal/member_map.h"

#include <span>

namespace diomp::coll {

/// Checks root, sizes and pointers. `own` begins with the caller's endpoint number `first`.
status check(const member_map &map, const request &args, std::span<const endpoint_buffers> own,
             const reducer &reduce, std::size_t first = 0);
/// Signature of a call on ranks.
sync::call_signature signature_of(const request &args);
/// Signature of a call on endpoints: the root is a rank and an index among its endpoints.
sync::call_signature signature_of(const member_map &map, const request &args);

} // namespace diomp::coll
