// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What can be said about a call without the other members.
#pragma once

#include "collective/roles.h"

#include <span>

namespace diomp::collective {

/// Root, sizes and pointers. `own` as in collectives::check.
status check(const roles &who, const request &asked, std::span<const endpoint_buffers> own,
             const reducer &reduce, std::size_t first = 0);
/// Of a call of ranks.
sync::call_signature signature_of(const request &asked);
/// The same of one in which ranks act for members: the root is a rank and a place.
sync::call_signature signature_of(const roles &who, const request &asked);

} // namespace diomp::collective
