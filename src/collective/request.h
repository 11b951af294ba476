// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A collective call as the C interface takes it, for our own algorithms and for the vendors'.
#pragma once

#include "diomp.h"
#include "sync/call_signature.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace diomp::collective {

/// Sizes and places of the blocks of a buffer, [member], in bytes.
struct block_list {
    std::vector<std::size_t> nbytes;
    std::vector<std::size_t> offsets;
};
/// Of a v form. gatherv and allgatherv have blocks in dst, scatterv in src, alltoallv in both.
struct block_lists {
    block_list dst;
    block_list src;
};

/// The one that all members know alike; of an alltoallv what comes, which only its receiver knows.
[[nodiscard]] inline const block_list &blocks_of(const block_lists &of) {
    return of.dst.nbytes.empty() ? of.src : of.dst;
}

/// One collective call as the C interface takes it, by a rank or by an endpoint.
struct request {
    sync::operation what = sync::operation::barrier;
    void *dst = nullptr; ///< also the buffer of a bcast
    const void *src = nullptr;
    std::size_t amount = 0; ///< elements of `type` where there is one, else bytes; not of v forms
    ompx_type_t type = 0;
    ompx_op_t op = 0;
    int root = -1; ///< number in the group; only for operations that have one
    std::shared_ptr<const block_lists> blocks = nullptr; ///< of v forms
};

/// What one of the caller's endpoints brings to a call.
struct endpoint_buffers {
    void *dst = nullptr;
    const void *src = nullptr;
    std::shared_ptr<const block_lists> blocks = nullptr; ///< of an alltoallv
};

/// The blocks of one endpoint in a v form.
[[nodiscard]] inline const block_lists &lists_of(const request &asked,
                                                 const endpoint_buffers &own) {
    return own.blocks ? *own.blocks : *asked.blocks;
}

[[nodiscard]] inline bool has_root(sync::operation what) {
    using sync::operation;
    return what == operation::bcast || what == operation::reduce || what == operation::gather ||
           what == operation::scatter || what == operation::gatherv || what == operation::scatterv;
}
[[nodiscard]] inline bool is_scan(sync::operation what) {
    return what == sync::operation::scan || what == sync::operation::exscan;
}
[[nodiscard]] inline bool is_reduction(sync::operation what) {
    using sync::operation;
    return what == operation::reduce || what == operation::allreduce ||
           what == operation::reduce_scatter || is_scan(what);
}
/// gatherv, scatterv, allgatherv, alltoallv.
[[nodiscard]] inline bool has_block_lists(sync::operation what) {
    using sync::operation;
    return what == operation::gatherv || what == operation::scatterv ||
           what == operation::allgatherv || what == operation::alltoallv;
}

} // namespace diomp::collective
