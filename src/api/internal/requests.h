// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Requests built from the arguments of the collective C functions, on host and device memory.
#pragma once

#include "api/internal/state.h"
#include "coll/collective.h"

#include <cstddef>
#include <utility>

namespace diomp::api {

inline coll::request bcast(void *ptr, std::size_t nbytes, int root) {
    return {.what = sync::operation::bcast, .dst = ptr, .amount = nbytes, .root = root};
}

inline coll::request move(sync::operation what, void *dst, const void *src, std::size_t nbytes,
                          int root = -1) {
    return {.what = what, .dst = dst, .src = src, .amount = nbytes, .root = root};
}

inline coll::request reduction(sync::operation what, void *dst, const void *src, std::size_t count,
                               ompx_type_t type, ompx_op_t op, int root = -1) {
    return {.what = what,
            .dst = dst,
            .src = src,
            .amount = count,
            .type = type,
            .op = op,
            .root = root};
}

/// The sizes and offsets of a v variant, read once the group's size is known.
struct size_lists {
    const std::size_t *nbytes = nullptr;
    const std::size_t *offsets = nullptr; ///< may be null
};

/// A call and the lists of a v variant: gatherv and allgatherv use `of_dst`, scatterv uses
/// `of_src`, alltoallv uses both.
struct list_call {
    list_call(coll::request of) : args(std::move(of)) {}
    list_call(coll::request of, size_lists dst, size_lists src)
        : args(std::move(of)), of_dst(dst), of_src(src) {}
    coll::request args;
    size_lists of_dst;
    size_lists of_src;
};

/// All arguments but the buffers, for messages: "count=1, type=OMPX_DOUBLE, op=OMPX_SUM,
/// group=world".
std::string describe(const coll::request &args, ompx_group_t group);

/// Copies the lists of a v variant into the request. Errors: OMPX_ERR_ARG if a list is missing.
status read_lists(list_call &from, const group::group &members);

} // namespace diomp::api
