// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collective calls as the C functions take them, for host memory and for devices alike.
#pragma once

#include "api/state.h"
#include "collective/collective.h"

#include <cstddef>
#include <utility>

namespace diomp::api {

inline collective::request bcast(void *ptr, std::size_t nbytes, int root) {
    return {.what = sync::operation::bcast, .dst = ptr, .amount = nbytes, .root = root};
}

inline collective::request move(sync::operation what, void *dst, const void *src,
                                std::size_t nbytes, int root = -1) {
    return {.what = what, .dst = dst, .src = src, .amount = nbytes, .root = root};
}

inline collective::request reduction(sync::operation what, void *dst, const void *src,
                                     std::size_t count, ompx_type_t type, ompx_op_t op,
                                     int root = -1) {
    return {.what = what,
            .dst = dst,
            .src = src,
            .amount = count,
            .type = type,
            .op = op,
            .root = root};
}

/// The sizes and offsets of a v form; the lists are read when the group is known.
struct size_lists {
    const std::size_t *nbytes = nullptr;
    const std::size_t *offsets = nullptr; ///< may be null
};

/// A call with the lists of a v form: of gatherv and allgatherv `of_dst` counts, of scatterv
/// `of_src`, of alltoallv both.
struct called {
    called(collective::request of) : asked(std::move(of)) {}
    called(collective::request of, size_lists dst, size_lists src)
        : asked(std::move(of)), of_dst(dst), of_src(src) {}
    collective::request asked;
    size_lists of_dst;
    size_lists of_src;
};

/// "count=1, type=OMPX_DOUBLE, op=OMPX_SUM, group=world": all but the buffers, for messages.
std::string describe(const collective::request &asked, ompx_group_t group);

/// Takes the lists over into the request, if it is a v form. OMPX_ERR_ARG: a list is missing.
status read_lists(called &from, const group::group &members);

} // namespace diomp::api
