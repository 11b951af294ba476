// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "collective/vendor/plan.h"

#include "collective/block_table.h"

#include <fmt/core.h>

#include <optional>

namespace diomp::collective::vendor {
namespace {

using sync::operation;

std::optional<element> element_of(ompx_type_t type) {
    switch (type) {
    case OMPX_INT8:
        return element::int8;
    case OMPX_UINT8:
        return element::uint8;
    case OMPX_INT32:
        return element::int32;
    case OMPX_UINT32:
        return element::uint32;
    case OMPX_INT64:
        return element::int64;
    case OMPX_UINT64:
        return element::uint64;
    case OMPX_FLOAT16:
        return element::float16;
    case OMPX_BFLOAT16:
        return element::bfloat16;
    case OMPX_FLOAT:
        return element::float32;
    case OMPX_DOUBLE:
        return element::float64;
    default:
        return {};
    }
}

std::optional<reduction> reduction_of(ompx_op_t op) {
    switch (op) {
    case OMPX_SUM:
        return reduction::sum;
    case OMPX_PROD:
        return reduction::prod;
    case OMPX_MIN:
        return reduction::min;
    case OMPX_MAX:
        return reduction::max;
    case OMPX_AVG:
        return reduction::avg;
    default:
        return {};
    }
}

bool is_floating(element type) {
    return type == element::float16 || type == element::bfloat16 || type == element::float32 ||
           type == element::float64;
}

/// NCCL's kernels (its src/device/reduce_kernel.h) call CUDA's fminf, fmaxf and their kin, to which
/// a NaN is a missing value and zeros have no order.
bool drops_nans(reduction op) { return op == reduction::min || op == reduction::max; }

using scratch_function = function_ref<result<std::byte *>(std::size_t)>;

/// Puts a plan together.
class planner {
public:
    planner(const request &asked, const endpoint_buffers &with, position in)
        : asked_(asked), in_(in), dst_(static_cast<std::byte *>(with.dst)),
          src_(static_cast<const std::byte *>(with.src)), dst_blocks_(asked.amount),
          src_blocks_(asked.amount) {
        if (has_block_lists(asked.what)) {
            dst_blocks_ = block_table(lists_of(asked, with).dst);
            src_blocks_ = block_table(lists_of(asked, with).src);
        }
    }

    void broadcast() { library_call(step_kind::broadcast, dst_, dst_); }
    void reduce() { library_call(step_kind::reduce, src_, is_root() ? dst_ : nullptr); }
    void allreduce() { library_call(step_kind::all_reduce, src_, dst_); }

    void gather() {
        if (!is_root()) {
            send(asked_.root, src_, dst_blocks_.size(in_.self));
            return;
        }
        keep_own(dst_ + dst_blocks_.offset(in_.self), src_, dst_blocks_.size(in_.self));
        receive_all();
    }

    void scatter() {
        if (!is_root()) {
            receive(asked_.root, dst_, src_blocks_.size(in_.self));
            return;
        }
        keep_own(dst_, src_ + src_blocks_.offset(in_.self), src_blocks_.size(in_.self));
        send_all(src_);
    }

    void allgather() { library_call(step_kind::all_gather, src_, dst_); }
    void allgatherv() {
        std::size_t const own = dst_blocks_.size(in_.self);
        keep_own(dst_ + dst_blocks_.offset(in_.self), src_, own);
        for (int peer = 0; peer < in_.count; ++peer) {
            send(peer, src_, own);
        }
        receive_all();
    }

    /// The library wants a result in place at the caller's own block, we at the start. Elsewhere
    /// the first block would be overwritten while others still read it.
    status reduce_scatter(scratch_function scratch) {
        std::byte *result_at = dst_;
        std::size_t const nbytes = asked_.amount * ompx_type_size(asked_.type);
        if (dst_ == src_ && in_.self != 0) {
            auto given = scratch(nbytes);
            DIOMP_TRY(given);
            result_at = given.value();
            made_.after.push_back({dst_, result_at, nbytes});
        }
        library_call(step_kind::reduce_scatter, src_, result_at);
        return {};
    }

    status alltoall(scratch_function scratch) {
        const std::byte *from = src_;
        if (asked_.what == operation::alltoall && dst_ == src_ && in_.count > 1) {
            std::size_t const all = asked_.amount * static_cast<std::size_t>(in_.count);
            auto given = scratch(all);
            DIOMP_TRY(given);
            made_.before.push_back({given.value(), src_, all});
            from = given.value();
        } else {
            keep_own(dst_ + dst_blocks_.offset(in_.self), src_ + src_blocks_.offset(in_.self),
                     src_blocks_.size(in_.self));
        }
        send_all(from);
        receive_all();
        return {};
    }

    plan take() { return std::move(made_); }

private:
    [[nodiscard]] bool is_root() const { return asked_.root == in_.self; }

    void library_call(step_kind kind, const void *from, void *to) {
        element const type = asked_.type == 0 ? element::int8 : *element_of(asked_.type);
        reduction const op = is_reduction(asked_.what) ? *reduction_of(asked_.op) : reduction::sum;
        made_.steps.push_back({kind, from, to, asked_.amount, type, op, asked_.root});
    }
    void send(int peer, const std::byte *from, std::size_t nbytes) {
        if (peer != in_.self && nbytes > 0) {
            made_.steps.push_back({.kind = step_kind::send,
                                   .from = from,
                                   .to = nullptr,
                                   .count = nbytes,
                                   .type = element::int8,
                                   .op = reduction::sum,
                                   .peer = peer});
        }
    }
    void receive(int peer, std::byte *to, std::size_t nbytes) {
        if (peer != in_.self && nbytes > 0) {
            made_.steps.push_back({.kind = step_kind::receive,
                                   .from = nullptr,
                                   .to = to,
                                   .count = nbytes,
                                   .type = element::int8,
                                   .op = reduction::sum,
                                   .peer = peer});
        }
    }
    void send_all(const std::byte *from) {
        for (int peer = 0; peer < in_.count; ++peer) {
            if (src_blocks_.size(peer) > 0) {
                send(peer, from + src_blocks_.offset(peer), src_blocks_.size(peer));
            }
        }
    }
    void receive_all() {
        for (int peer = 0; peer < in_.count; ++peer) {
            if (dst_blocks_.size(peer) > 0) {
                receive(peer, dst_ + dst_blocks_.offset(peer), dst_blocks_.size(peer));
            }
        }
    }
    /// The block that does not leave the device.
    void keep_own(std::byte *to, const std::byte *from, std::size_t nbytes) {
        if (to != from && nbytes > 0) {
            made_.before.push_back({to, from, nbytes});
        }
    }

    const request &asked_;
    position const in_;
    std::byte *const dst_;
    const std::byte *const src_;
    block_table dst_blocks_;
    block_table src_blocks_;
    plan made_;
};

status check_lists(const request &asked, const endpoint_buffers &with, int count) {
    if (!has_block_lists(asked.what)) {
        return {};
    }
    bool const in_dst = asked.what != operation::scatterv;
    bool const in_src = asked.what == operation::scatterv || asked.what == operation::alltoallv;
    auto const fits = [count](const block_list &of) {
        auto const blocks = static_cast<std::size_t>(count);
        return of.nbytes.size() == blocks && of.offsets.size() == blocks;
    };
    bool const are_there = with.blocks != nullptr || asked.blocks != nullptr;
    if (!are_there || (in_dst && !fits(lists_of(asked, with).dst)) ||
        (in_src && !fits(lists_of(asked, with).src))) {
        return error(OMPX_ERR_ARG, fmt::format("{}: lists of sizes and offsets need {} entries",
                                               name_of(asked.what), count));
    }
    return {};
}

} // namespace

const char *symbol_of(step_kind kind) {
    switch (kind) {
    case step_kind::broadcast:
        return "ncclBroadcast";
    case step_kind::reduce:
        return "ncclReduce";
    case step_kind::all_reduce:
        return "ncclAllReduce";
    case step_kind::all_gather:
        return "ncclAllGather";
    case step_kind::reduce_scatter:
        return "ncclReduceScatter";
    case step_kind::send:
        return "ncclSend";
    case step_kind::receive:
        return "ncclRecv";
    }
    return "?";
}

bool can_do(const request &asked) {
    if (is_scan(asked.what)) {
        return false;
    }
    if (!is_reduction(asked.what)) {
        return true;
    }
    auto const type = element_of(asked.type);
    auto const op = reduction_of(asked.op);
    return type && op && !(is_floating(*type) && drops_nans(*op));
}

result<plan> make_plan(const request &asked, const endpoint_buffers &with, position in,
                       scratch_function scratch) {
    if (has_root(asked.what) && (asked.root < 0 || asked.root >= in.count)) {
        return error(OMPX_ERR_RANK, fmt::format("{}: root {} is not a member: there are 0 to {}",
                                                name_of(asked.what), asked.root, in.count - 1));
    }
    DIOMP_TRY(check_lists(asked, with, in.count));
    // Moves count bytes.
    request counted = asked;
    if (!is_reduction(asked.what)) {
        counted.amount *= asked.type == 0 ? 1 : ompx_type_size(asked.type);
        counted.type = 0;
    }
    planner making(counted, with, in);
    switch (asked.what) {
    case operation::bcast:
        making.broadcast();
        break;
    case operation::reduce:
        making.reduce();
        break;
    case operation::allreduce:
        making.allreduce();
        break;
    case operation::gather:
    case operation::gatherv:
        making.gather();
        break;
    case operation::scatter:
    case operation::scatterv:
        making.scatter();
        break;
    case operation::allgather:
        making.allgather();
        break;
    case operation::allgatherv:
        making.allgatherv();
        break;
    case operation::reduce_scatter:
        DIOMP_TRY(making.reduce_scatter(scratch));
        break;
    default:
        DIOMP_TRY(making.alltoall(scratch));
        break;
    }
    return making.take();
}

} // namespace diomp::collective::vendor
