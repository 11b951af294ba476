// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arguments of a collective call, for our own algorithms and for the vendors' libraries.
#pragma once

#include "diomp/types.h"
#include "sync/call_signature.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace diomp::coll {

/// Sizes and offsets of the blocks of a buffer, [member], in bytes.
struct block_list {
    std::vector<std::size_t> nbytes;
    std::vector<std::size_t> offsets;
};
/// The lists of a v form: gatherv and allgatherv use dst, scatterv src, alltoallv both.
struct block_lists {
    block_list dst;
    block_list src;
};

/// The list that is equal on all members; for alltoallv the receive list, which only the receiver
/// has.
[[nodiscard]] inline const block_list &blocks_of(const block_lists &of) {
    return of.dst.nbytes.empty() ? of.src : of.dst;
}

/// Arguments of one collective call by a rank or an endpoint, as in the C interface.
struct request {
    sync::operation what = sync::operation::barrier;
    void *dst = nullptr; ///< also the buffer of a bcast
    const void *src = nullptr;
    std::size_t amount = 0; ///< elements if `type` is set, else bytes; unused in v forms
    ompx_type_t type = 0;
    ompx_op_t op = 0;
    int root = -1; ///< number in the group; rooted operations only
    std::shared_ptr<const block_lists> blocks = nullptr; ///< v forms only
};

/// Buffers of one of the caller's endpoints in a call.
struct endpoint_buffers {
    void *dst = nullptr;
    const void *src = nullptr;
    std::shared_ptr<const block_lists> blocks = nullptr; ///< alltoallv only
};

/// The blocks of one endpoint in a v form.
[[nodiscard]] inline const block_lists &lists_of(const request &args, const endpoint_buffers &own) {
    return own.blocks ? *own.blocks : *args.blocks;
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
/// Whether a member, or the root, contributes a block for each member.
[[nodiscard]] inline bool has_block_for_each(sync::operation what) {
    using sync::operation;
    return what == operation::scatter || what == operation::alltoall ||
           what == operation::reduce_scatter;
}
/// True for gatherv, scatterv, allgatherv, alltoallv.
[[nodiscard]] inline bool has_block_lists(sync::operation what) {
    using sync::operation;
    return what == operation::gatherv || what == operation::scatterv ||
           what == operation::allgatherv || what == operation::alltoallv;
}

} // namespace diomp::coll
