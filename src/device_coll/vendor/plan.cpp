// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device_coll/vendor/plan.h"

#include "coll/block_table.h"
#include "diomp/atomic.h"

#include <fmt/core.h>

#include <optional>

namespace diomp::device_coll::vendor {
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

/// NCCL's kernels (its src/device/reduce_kernel.h) use CUDA's fminf and fmaxf, which treat a NaN as
/// a missing value and do not order zeros.
bool ignores_nans(reduction op) { return op == reduction::min || op == reduction::max; }

using scratch_function = function_ref<result<std::byte *>(std::size_t)>;

/// Builds a plan.
class plan_builder {
public:
    plan_builder(const coll::request &args, const coll::endpoint_buffers &buffers, position pos)
        : args_(args), pos_(pos), dst_(static_cast<std::byte *>(buffers.dst)),
          src_(static_cast<const std::byte *>(buffers.src)), dst_blocks_(args.amount),
          src_blocks_(args.amount) {
        if (coll::has_block_lists(args.what)) {
            dst_blocks_ = coll::block_table(lists_of(args, buffers).dst);
            src_blocks_ = coll::block_table(lists_of(args, buffers).src);
        }
    }

    void broadcast() { library_call(step_kind::broadcast, dst_, dst_); }
    void reduce() { library_call(step_kind::reduce, src_, is_root() ? dst_ : nullptr); }
    void allreduce() { library_call(step_kind::all_reduce, src_, dst_); }

    void gather() {
        if (!is_root()) {
            send(args_.root, src_, dst_blocks_.size(pos_.self));
            return;
        }
        copy_own_block(dst_ + dst_blocks_.offset(pos_.self), src_, dst_blocks_.size(pos_.self));
        receive_all();
    }

    void scatter() {
        if (!is_root()) {
            receive(args_.root, dst_, src_blocks_.size(pos_.self));
            return;
        }
        copy_own_block(dst_, src_ + src_blocks_.offset(pos_.self), src_blocks_.size(pos_.self));
        send_all(src_);
    }

    void allgather() { library_call(step_kind::all_gather, src_, dst_); }
    void allgatherv() {
        std::size_t const own = dst_blocks_.size(pos_.self);
        copy_own_block(dst_ + dst_blocks_.offset(pos_.self), src_, own);
        for (int peer = 0; peer < pos_.count; ++peer) {
            send(peer, src_, own);
        }
        receive_all();
    }

    /// The library's in-place result is at the caller's own block, ours at the start of the buffer.
    /// For other members the first block would be overwritten while others still read it.
    status reduce_scatter(scratch_function scratch) {
        std::byte *result_at = dst_;
        std::size_t const nbytes = args_.amount * ompx_type_size(args_.type);
        if (dst_ == src_ && pos_.self != 0) {
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
        if (args_.what == operation::alltoall && dst_ == src_ && pos_.count > 1) {
            std::size_t const all = args_.amount * static_cast<std::size_t>(pos_.count);
            auto given = scratch(all);
            DIOMP_TRY(given);
            made_.before.push_back({given.value(), src_, all});
            from = given.value();
        } else {
            copy_own_block(dst_ + dst_blocks_.offset(pos_.self),
                           src_ + src_blocks_.offset(pos_.self), src_blocks_.size(pos_.self));
        }
        send_all(from);
        receive_all();
        return {};
    }

    plan take() { return std::move(made_); }

private:
    [[nodiscard]] bool is_root() const { return args_.root == pos_.self; }

    void library_call(step_kind kind, const void *from, void *to) {
        element const type = args_.type == 0 ? element::int8 : *element_of(args_.type);
        reduction const op =
            coll::is_reduction(args_.what) ? *reduction_of(args_.op) : reduction::sum;
        made_.steps.push_back({kind, from, to, args_.amount, type, op, args_.root});
    }
    void send(int peer, const std::byte *from, std::size_t nbytes) {
        if (peer != pos_.self && nbytes > 0) {
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
        if (peer != pos_.self && nbytes > 0) {
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
        for (int peer = 0; peer < pos_.count; ++peer) {
            if (src_blocks_.size(peer) > 0) {
                send(peer, from + src_blocks_.offset(peer), src_blocks_.size(peer));
            }
        }
    }
    void receive_all() {
        for (int peer = 0; peer < pos_.count; ++peer) {
            if (dst_blocks_.size(peer) > 0) {
                receive(peer, dst_ + dst_blocks_.offset(peer), dst_blocks_.size(peer));
            }
        }
    }
    /// Copies the block that stays on the device.
    void copy_own_block(std::byte *to, const std::byte *from, std::size_t nbytes) {
        if (to != from && nbytes > 0) {
            made_.before.push_back({to, from, nbytes});
        }
    }

    const coll::request &args_;
    position const pos_;
    std::byte *const dst_;
    const std::byte *const src_;
    coll::block_table dst_blocks_;
    coll::block_table src_blocks_;
    plan made_;
};

status check_lists(const coll::request &args, const coll::endpoint_buffers &buffers, int count) {
    if (!coll::has_block_lists(args.what)) {
        return {};
    }
    bool const in_dst = args.what != operation::scatterv;
    bool const in_src = args.what == operation::scatterv || args.what == operation::alltoallv;
    auto const fits = [count](const coll::block_list &of) {
        auto const blocks = static_cast<std::size_t>(count);
        return of.nbytes.size() == blocks && of.offsets.size() == blocks;
    };
    bool const are_there = buffers.blocks != nullptr || args.blocks != nullptr;
    if (!are_there || (in_dst && !fits(lists_of(args, buffers).dst)) ||
        (in_src && !fits(lists_of(args, buffers).src))) {
        return error(OMPX_ERR_ARG, fmt::format("{}: lists of sizes and offsets need {} entries",
                                               name_of(args.what), count));
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

bool supports(const coll::request &args) {
    if (coll::is_scan(args.what)) {
        return false;
    }
    if (!coll::is_reduction(args.what)) {
        return true;
    }
    auto const type = element_of(args.type);
    auto const op = reduction_of(args.op);
    return type && op && !(is_floating(*type) && ignores_nans(*op));
}

result<plan> make_plan(const coll::request &args, const coll::endpoint_buffers &buffers,
                       position pos, scratch_function scratch) {
    if (coll::has_root(args.what) && (args.root < 0 || args.root >= pos.count)) {
        return error(OMPX_ERR_RANK, fmt::format("{}: root {} is not a member: there are 0 to {}",
                                                name_of(args.what), args.root, pos.count - 1));
    }
    DIOMP_TRY(check_lists(args, buffers, pos.count));
    // Data movement counts bytes.
    coll::request counted = args;
    if (!coll::is_reduction(args.what)) {
        counted.amount *= args.type == 0 ? 1 : ompx_type_size(args.type);
        counted.type = 0;
    }
    plan_builder builder(counted, buffers, pos);
    switch (args.what) {
    case operation::bcast:
        builder.broadcast();
        break;
    case operation::reduce:
        builder.reduce();
        break;
    case operation::allreduce:
        builder.allreduce();
        break;
    case operation::gather:
    case operation::gatherv:
        builder.gather();
        break;
    case operation::scatter:
    case operation::scatterv:
        builder.scatter();
        break;
    case operation::allgather:
        builder.allgather();
        break;
    case operation::allgatherv:
        builder.allgatherv();
        break;
    case operation::reduce_scatter:
        DIOMP_TRY(builder.reduce_scatter(scratch));
        break;
    default:
        DIOMP_TRY(builder.alltoall(scratch));
        break;
    }
    return builder.take();
}

} // namespace diomp::device_coll::vendor
