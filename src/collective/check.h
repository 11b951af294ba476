// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What can be said about a call without the other members.
#pragma once

#include "collective/collective.h"

namespace diomp::collective {

[[nodiscard]] bool is_reduction(sync::operation what);
/// Root, size and pointers.
status check(const group::group &members, const request &asked, std::size_t unit_bytes);
sync::call_signature signature_of(const request &asked);

} // namespace diomp::collective
