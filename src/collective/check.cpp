// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "collective/check.h"

#include <fmt/core.h>

#include <cstdint>

namespace diomp::collective {
namespace {

using sync::operation;

bool has_root(operation what) {
    return what == operation::bcast || what == operation::reduce || what == operation::gather ||
           what == operation::scatter;
}

bool reads_src(const request &asked, bool is_root) {
    return asked.what != operation::barrier && asked.what != operation::bcast &&
           (asked.what != operation::scatter || is_root);
}

bool writes_dst(const request &asked, bool is_root) {
    if (asked.what == operation::reduce || asked.what == operation::gather) {
        return is_root;
    }
    return asked.what != operation::barrier;
}

/// Blocks in the larger of the two buffers.
std::size_t most_blocks(operation what, std::size_t num_members) {
    bool const single = what == operation::barrier || what == operation::bcast ||
                        what == operation::reduce || what == operation::allreduce;
    return single ? 1 : num_members;
}

} // namespace

bool is_reduction(operation what) {
    return what == operation::reduce || what == operation::allreduce ||
           what == operation::reduce_scatter;
}

status check(const group::group &members, const request &asked, std::size_t unit_bytes) {
    int const size = static_cast<int>(members.size());
    if (has_root(asked.what) && (asked.root < 0 || asked.root >= size)) {
        return error(OMPX_ERR_RANK,
                     fmt::format("root {} is outside the group of {} member{}", asked.root, size,
                                 size == 1 ? "" : "s"),
                     fmt::format("pass a rank of the group, 0 to {}", size - 1));
    }
    std::size_t total = 0;
    if (__builtin_mul_overflow(asked.amount, unit_bytes, &total) ||
        __builtin_mul_overflow(total, most_blocks(asked.what, members.size()), &total) ||
        total > static_cast<std::size_t>(PTRDIFF_MAX)) {
        return error(OMPX_ERR_ARG,
                     fmt::format("the size is negative or overflows ({} of {} bytes each, {} "
                                 "members; as a signed number: {})",
                                 asked.amount, unit_bytes, size,
                                 static_cast<std::ptrdiff_t>(asked.amount)),
                     "check the arithmetic that the size comes from");
    }
    if (asked.amount == 0) {
        return {};
    }
    bool const is_root = members.self().value() == asked.root;
    if (reads_src(asked, is_root) && asked.src == nullptr) {
        return error(OMPX_ERR_ARG, "src is a null pointer",
                     "pass a buffer; only a size of 0 needs none");
    }
    if (writes_dst(asked, is_root) && asked.dst == nullptr) {
        return error(OMPX_ERR_ARG,
                     asked.what == operation::bcast ? "ptr is a null pointer"
                                                    : "dst is a null pointer",
                     "pass a buffer; only a size of 0 needs none");
    }
    return {};
}

sync::call_signature signature_of(const request &asked) {
    sync::call_signature made;
    made.what = asked.what;
    made.amount = asked.amount;
    if (has_root(asked.what)) {
        made.root = static_cast<std::uint16_t>(asked.root);
    }
    if (is_reduction(asked.what)) {
        made.type = static_cast<std::uint32_t>(asked.type);
        made.reduction = user_operators::is_user_defined(asked.op)
                             ? sync::call_signature::user_operator
                             : static_cast<std::uint8_t>(asked.op);
    }
    return made;
}

} // namespace diomp::collective
