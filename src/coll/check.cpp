// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "coll/internal/check.h"

#include "diomp/atomic.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>

namespace diomp::coll {
namespace {

using sync::operation;

/// Number of blocks in the larger of the two buffers.
std::size_t max_blocks(operation what, std::size_t num_members) {
    bool const single = what == operation::barrier || what == operation::bcast ||
                        what == operation::reduce || what == operation::allreduce || is_scan(what);
    return single ? 1 : num_members;
}

error no_size(const std::string &text) {
    return {OMPX_ERR_ARG, text, "check the arithmetic that the size comes from"};
}

status check_amount(const member_map &map, const request &args, std::size_t unit_bytes) {
    std::size_t total = 0;
    if (__builtin_mul_overflow(args.amount, unit_bytes, &total) ||
        __builtin_mul_overflow(total, max_blocks(args.what, map.size()), &total) ||
        total > static_cast<std::size_t>(PTRDIFF_MAX)) {
        return no_size(fmt::format("the size is negative or overflows ({} of {} bytes each, {} "
                                   "members; as a signed number: {})",
                                   args.amount, unit_bytes, map.size(),
                                   static_cast<std::ptrdiff_t>(args.amount)));
    }
    return {};
}

/// Offsets of a buffer that is not used here, or of no bytes, may have any value.
status check_list(const block_list &blocks, bool are_offsets_used) {
    for (std::size_t i = 0; i < blocks.nbytes.size(); ++i) {
        std::size_t const offset = are_offsets_used && blocks.nbytes[i] > 0 ? blocks.offsets[i] : 0;
        std::size_t end = 0;
        if (__builtin_add_overflow(blocks.nbytes[i], offset, &end) ||
            end > static_cast<std::size_t>(PTRDIFF_MAX)) {
            return no_size(fmt::format("the block of member {} is negative or overflows ({} bytes, "
                                       "{} from the start; as signed numbers: {} and {})",
                                       i, blocks.nbytes[i], offset,
                                       static_cast<std::ptrdiff_t>(blocks.nbytes[i]),
                                       static_cast<std::ptrdiff_t>(offset)));
        }
    }
    return {};
}

/// From the start of the buffer to the end of the last block.
std::size_t extent_of(const block_list &blocks) {
    std::size_t extent = 0;
    for (std::size_t i = 0; i < blocks.nbytes.size(); ++i) {
        if (blocks.nbytes[i] > 0) {
            extent = std::max(extent, blocks.offsets[i] + blocks.nbytes[i]);
        }
    }
    return extent;
}

buffer_use use_of_lists(const request &args, const block_lists &lists, std::size_t member,
                        bool is_root) {
    switch (args.what) {
    case operation::gatherv:
        return {lists.dst.nbytes[member], is_root ? extent_of(lists.dst) : 0, true};
    case operation::allgatherv:
        return {lists.dst.nbytes[member], extent_of(lists.dst), true};
    case operation::scatterv:
        return {is_root ? extent_of(lists.src) : 0, lists.src.nbytes[member], false};
    default:
        return {extent_of(lists.src), extent_of(lists.dst), true};
    }
}

/// FNV-1a (Fowler, Noll, Vo) over the sizes.
std::uint64_t hash_of(const std::vector<std::size_t> &nbytes) {
    std::uint64_t hash = 0xcbf29ce484222325ull;
    for (std::size_t const each : nbytes) {
        hash = (hash ^ each) * 0x100000001b3ull;
        hash ^= hash >> 32;
    }
    return hash;
}

} // namespace

buffer_use use_of(const request &args, const endpoint_buffers &buffers, std::size_t num_members,
                  std::size_t member) {
    bool const is_root = args.root >= 0 && member == static_cast<std::size_t>(args.root);
    if (has_block_lists(args.what)) {
        return use_of_lists(args, lists_of(args, buffers), member, is_root);
    }
    std::size_t const one = args.amount * (args.type == 0 ? 1 : ompx_type_size(args.type));
    std::size_t const all = one * num_members;
    switch (args.what) {
    case operation::barrier:
        return {};
    case operation::bcast:
        return {0, one, is_root};
    case operation::reduce:
        return {one, is_root ? one : 0, false};
    case operation::gather:
        return {one, is_root ? all : 0, false};
    case operation::scatter:
        return {is_root ? all : 0, one, false};
    case operation::allgather:
        return {one, all, false};
    case operation::reduce_scatter:
        return {all, one, false};
    case operation::alltoall:
        return {all, all, false};
    case operation::exscan:
        return {one, one, member == 0};
    default:
        return {one, one, false};
    }
}

status check(const member_map &map, const request &args, std::span<const endpoint_buffers> own,
             const reducer &reduce, std::size_t first) {
    if (is_scan(args.what) && reduce.average != nullptr) {
        return error(OMPX_ERR_ARG, "OMPX_AVG is not defined for a scan",
                     "use OMPX_SUM and divide the results");
    }
    if (has_root(args.what) &&
        (args.root < 0 || static_cast<std::size_t>(args.root) >= map.size())) {
        return error(OMPX_ERR_RANK,
                     fmt::format("root {} is outside the group of {} member{}", args.root,
                                 map.size(), map.size() == 1 ? "" : "s"),
                     fmt::format("pass a member of the group, 0 to {}", map.size() - 1));
    }
    DIOMP_TRY(check_amount(map, args, reduce.element_bytes));
    for (std::size_t i = 0; i < own.size(); ++i) {
        std::size_t const member = map.own(first + i);
        if (has_block_lists(args.what)) {
            const block_lists &lists = lists_of(args, own[i]);
            bool const are_offsets_used =
                !has_root(args.what) || member == static_cast<std::size_t>(args.root);
            DIOMP_TRY(check_list(lists.dst, are_offsets_used));
            DIOMP_TRY(check_list(lists.src, are_offsets_used));
        }
        buffer_use const use = use_of(args, own[i], map.size(), member);
        if (use.src_bytes > 0 && own[i].src == nullptr) {
            return error(OMPX_ERR_ARG, "src is a null pointer",
                         "pass a buffer; only a size of 0 needs none");
        }
        if (use.dst_bytes > 0 && own[i].dst == nullptr) {
            return error(OMPX_ERR_ARG,
                         args.what == operation::bcast ? "ptr is a null pointer"
                                                       : "dst is a null pointer",
                         "pass a buffer; only a size of 0 needs none");
        }
    }
    return {};
}

sync::call_signature signature_of(const request &args) {
    sync::call_signature made;
    made.what = args.what;
    made.amount = args.amount;
    if (has_block_lists(args.what) && args.what != operation::alltoallv) {
        made.amount = hash_of(blocks_of(*args.blocks).nbytes);
    }
    if (has_root(args.what)) {
        made.root = static_cast<std::uint16_t>(args.root);
    }
    if (is_reduction(args.what)) {
        made.type = static_cast<std::uint32_t>(args.type);
        made.reduction =
            !user_operators::is_user_defined(args.op) ? static_cast<std::uint8_t>(args.op)
            : user_operators::is_commutative(args.op) ? sync::call_signature::user_operator
                                                      : sync::call_signature::ordered_user_operator;
    }
    return made;
}

sync::call_signature signature_of(const member_map &map, const request &args) {
    sync::call_signature made = signature_of(args);
    if (has_root(args.what)) {
        auto const root = static_cast<std::size_t>(args.root);
        made.root = static_cast<std::uint16_t>(map.rank_of(root));
        made.type |= static_cast<std::uint32_t>(map.index_in_rank(root)) << 24;
    }
    return made;
}

} // namespace diomp::coll
