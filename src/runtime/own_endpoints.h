// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The caller's endpoints in a group. Of a group of ranks the caller counts as one.
#pragma once

#include "group/group.h"

namespace diomp::runtime {

inline std::size_t num_own(const group::group &members) {
    return members.endpoints().empty() ? 1 : members.endpoints().of(members.self().index()).size();
}

/// Number in the group of the caller's endpoint number `place`.
inline std::size_t own_member(const group::group &members, std::size_t place) {
    return members.endpoints().empty() ? members.self().index()
                                       : members.endpoints().of(members.self().index())[place];
}

/// Its device; of a group of endpoints.
inline int own_device(const group::group &members, std::size_t place) {
    return members.endpoints()[own_member(members, place)].device;
}

} // namespace diomp::runtime
