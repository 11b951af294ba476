// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device_coll/internal/node_collectives.h"

#include "base/log.h"
#include "device_coll/internal/buffer_info.h"
#include "diomp/atomic.h"
#include "group/group.h"
#include "offload/offload.h"
#include "offload/stream_copies.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace diomp::device_coll {
namespace {

using coll::collectives;
using coll::request;
using sync::operation;

/// Size of the host buffer through which a call between nodes is pipelined.
constexpr std::size_t chunk_bytes = std::size_t{4} << 20;

/// Call signature for rounds of a subgroup, in which the call's root may not be a member.
/// Never destroyed: threads may be in calls when the process ends.
request const &phase_request = *new request{.what = operation::barrier};

request bcast_request(std::size_t nbytes, std::size_t root) {
    return {.what = operation::bcast, .amount = nbytes, .root = static_cast<int>(root)};
}

/// An average is computed as a sum and divided once all operands are in.
request as_sum(request args) {
    if (args.op == OMPX_AVG) {
        args.op = OMPX_SUM;
    }
    return args;
}

std::optional<std::uint64_t> veto_if(bool objects) {
    return objects ? std::optional<std::uint64_t>(0) : std::nullopt;
}

/// Calls work(begin, count) for every chunk of `total` units of a call.
template <typename Work>
status for_each_chunk(std::size_t total, std::size_t unit_bytes, Work &&work) {
    std::size_t const each = std::max<std::size_t>(1, chunk_bytes / unit_bytes);
    for (std::size_t begin = 0; begin < total; begin += each) {
        DIOMP_TRY(work(begin, std::min(each, total - begin)));
    }
    return {};
}

/// Host memory for one chunk.
std::unique_ptr<std::byte[]> make_chunk_buffer(std::size_t total, std::size_t unit_bytes) {
    return std::make_unique_for_overwrite<std::byte[]>(
        std::max(unit_bytes, std::min(chunk_bytes, total * unit_bytes)));
}

} // namespace

/// A call and the subgroups of its group.
struct node_collectives::call {
    group::group &members;
    const coll::request &args;
    std::span<const buffers> own;
    group::group &intra_node;
    group::group *inter_node; ///< null: the caller is not a leader

    [[nodiscard]] std::size_t own_node() const { return members.layout().own_node; }
    [[nodiscard]] std::size_t node_of(std::size_t member) const {
        return members.layout().node(members.endpoints()[member].member);
    }
    [[nodiscard]] std::size_t block_bytes() const {
        return args.amount * (args.type == 0 ? 1 : ompx_type_size(args.type));
    }
    [[nodiscard]] std::vector<std::size_t> members_of(std::size_t node) const; ///< ascending
    /// A call on the node's members that uses the buffers as this one does.
    [[nodiscard]] coll::request intra_node_form() const;
};

bool node_collectives::has_plan(const request &args) {
    return args.what == operation::bcast || args.what == operation::allreduce ||
           args.what == operation::allgather;
}

std::vector<std::size_t> node_collectives::call::members_of(std::size_t node) const {
    std::vector<std::size_t> found;
    for (std::size_t member = 0; member < members.count(); ++member) {
        if (node_of(member) == node) {
            found.push_back(member);
        }
    }
    return found;
}

// In an allgather the node's blocks get their final offsets among the blocks of all nodes.
request node_collectives::call::intra_node_form() const {
    if (args.what == operation::bcast) {
        return bcast_request(block_bytes(), 0);
    }
    if (args.what == operation::allreduce) {
        return as_sum(args);
    }
    auto blocks = std::make_shared<coll::block_lists>();
    for (std::size_t const member : members_of(own_node())) {
        blocks->dst.nbytes.push_back(block_bytes());
        blocks->dst.offsets.push_back(member * block_bytes());
    }
    return {.what = operation::allgatherv, .blocks = std::move(blocks)};
}

std::vector<direct_collectives::buffers>
node_collectives::intra_node_buffers(const call &of, const request &args, std::size_t offset) {
    std::vector<buffers> made;
    for (std::size_t index = 0; index < of.own.size(); ++index) {
        buffers each = of.own[index];
        each.use = coll::use_of(args, {}, of.intra_node.count(), of.intra_node.own(index));
        each.blocks = args.blocks;
        each.dst.address += offset;
        if (each.use.src_bytes == 0) {
            each.src = {};
        }
        made.push_back(std::move(each));
    }
    return made;
}

status node_collectives::run_intra_node(const call &of, const request &args, std::size_t offset) {
    auto ran = direct_.run(of.intra_node, args, intra_node_buffers(of, args, offset), 0);
    DIOMP_TRY(ran);
    if (ran.value() != outcome::done) {
        return error(OMPX_ERR_SYSTEM,
                     "devices of this node can no longer access each other's memory",
                     "set DIOMP_LOG=info to see which");
    }
    return {};
}

status node_collectives::run_inter_node(const call &of, status local_status,
                                        function_ref<status()> work) {
    if (of.inter_node != nullptr) {
        auto agreed = collectives::agree(*of.inter_node, phase_request, veto_if(!local_status));
        if (local_status && !agreed) {
            local_status = agreed.take_failure();
        } else if (local_status && agreed.value()) {
            local_status =
                error(OMPX_ERR_SYSTEM,
                      fmt::format("a device on the node of rank {} failed in {}: "
                                  "the contents of the buffers are undefined",
                                  of.inter_node->members()[agreed.value()->member].value(),
                                  sync::name_of(of.args.what)),
                      "see the errors of that node");
        } else if (local_status) {
            local_status = work();
        }
    }
    status met =
        collectives::arrive_and_wait(of.intra_node, phase_request, {local_status ? 1U : 0U});
    DIOMP_TRY(local_status);
    DIOMP_TRY(met);
    if (of.intra_node.payload_of(0)[0] == 0) {
        return error(OMPX_ERR_SYSTEM,
                     fmt::format("rank {}, the leader of this node, failed in {}: "
                                 "the contents of the buffers are undefined",
                                 of.intra_node.members().front().value(),
                                 sync::name_of(of.args.what)),
                     "see that rank's error");
    }
    return {};
}

status node_collectives::copy_leader_buffer(const call &of, std::size_t offset, std::byte *host,
                                            std::size_t nbytes, bool to_device) {
    offload::device_ptr const &dst = of.own.front().dst;
    return to_device ? devices_.copies().copy(*dst.on, dst.address + offset, host, nbytes)
                     : devices_.copies().copy(*dst.on, host, dst.address + offset, nbytes);
}

status node_collectives::bcast_between_leaders(const call &of, std::size_t root_node) {
    bool const is_source = of.own_node() == root_node;
    auto const host = make_chunk_buffer(of.block_bytes(), 1);
    return for_each_chunk(of.block_bytes(), 1, [&](std::size_t at, std::size_t nbytes) -> status {
        if (is_source) {
            DIOMP_TRY(copy_leader_buffer(of, at, host.get(), nbytes, false));
        }
        request chunk = bcast_request(nbytes, root_node);
        chunk.dst = host.get();
        DIOMP_TRY(collectives_.run(*of.inter_node, chunk));
        return is_source ? status{} : copy_leader_buffer(of, at, host.get(), nbytes, true);
    });
}

status node_collectives::bcast(const call &of) {
    auto const root = static_cast<std::size_t>(of.args.root);
    std::size_t const root_node = of.node_of(root);
    bool const is_source = of.own_node() == root_node;
    status local_status;
    if (is_source) {
        auto const here = of.members_of(root_node);
        auto const number = static_cast<std::size_t>(std::ranges::find(here, root) - here.begin());
        local_status = run_intra_node(of, bcast_request(of.block_bytes(), number));
    }
    DIOMP_TRY(run_inter_node(of, std::move(local_status),
                             [&] { return bcast_between_leaders(of, root_node); }));
    return is_source ? status{} : run_intra_node(of, bcast_request(of.block_bytes(), 0));
}

status node_collectives::reduce_between_leaders(const call &of) {
    std::size_t const unit = ompx_type_size(of.args.type);
    auto reduce = collectives_.operators().resolve(of.args.type, of.args.op);
    DIOMP_TRY(reduce);
    auto const host = make_chunk_buffer(of.args.amount, unit);
    return for_each_chunk(
        of.args.amount, unit, [&](std::size_t begin, std::size_t count) -> status {
            DIOMP_TRY(copy_leader_buffer(of, begin * unit, host.get(), count * unit, false));
            request chunk = as_sum(of.args);
            chunk.dst = host.get();
            chunk.src = host.get();
            chunk.amount = count;
            DIOMP_TRY(collectives_.run(*of.inter_node, chunk));
            if (auto const average = reduce.value().average) {
                average(host.get(), count, of.members.count());
            }
            return copy_leader_buffer(of, begin * unit, host.get(), count * unit, true);
        });
}

status node_collectives::allreduce(const call &of) {
    request to_leader = as_sum(of.args);
    to_leader.what = operation::reduce;
    to_leader.root = 0;
    DIOMP_TRY(run_inter_node(of, run_intra_node(of, to_leader),
                             [&] { return reduce_between_leaders(of); }));
    return run_intra_node(of, bcast_request(of.block_bytes(), 0));
}

status node_collectives::allgather_between_leaders(const call &of) {
    std::size_t const n = of.members.count();
    std::vector<std::size_t> order; // [index in host memory] member
    std::vector<std::size_t> first;
    for (std::size_t node = 0; node < of.inter_node->count(); ++node) {
        auto const there = of.members_of(node);
        first.push_back(order.size());
        order.insert(order.end(), there.begin(), there.end());
    }
    first.push_back(n);
    auto const host = make_chunk_buffer(of.block_bytes(), n);
    return for_each_chunk(of.block_bytes(), n, [&](std::size_t at, std::size_t nbytes) -> status {
        auto const copy = [&](std::size_t index, bool to_device) {
            return copy_leader_buffer(of, order[index] * of.block_bytes() + at,
                                      host.get() + index * nbytes, nbytes, to_device);
        };
        std::size_t const begin = first[of.own_node()];
        std::size_t const end = first[of.own_node() + 1];
        for (std::size_t index = begin; index < end; ++index) {
            DIOMP_TRY(copy(index, false));
        }
        auto lists = std::make_shared<coll::block_lists>();
        for (std::size_t node = 0; node + 1 < first.size(); ++node) {
            lists->dst.nbytes.push_back((first[node + 1] - first[node]) * nbytes);
            lists->dst.offsets.push_back(first[node] * nbytes);
        }
        DIOMP_TRY(collectives_.run(*of.inter_node, {.what = operation::allgatherv,
                                                    .dst = host.get(),
                                                    .src = host.get() + begin * nbytes,
                                                    .blocks = std::move(lists)}));
        for (std::size_t index = 0; index < n; ++index) {
            if (index < begin || index >= end) {
                DIOMP_TRY(copy(index, true));
            }
        }
        return {};
    });
}

status node_collectives::allgather(const call &of) {
    DIOMP_TRY(run_inter_node(of, run_intra_node(of, of.intra_node_form()),
                             [&] { return allgather_between_leaders(of); }));
    for (std::size_t begin = 0; begin < of.members.count();) {
        std::size_t end = begin;
        while (end < of.members.count() && of.node_of(end) != of.own_node()) {
            ++end;
        }
        if (end > begin) {
            DIOMP_TRY(run_intra_node(of, bcast_request((end - begin) * of.block_bytes(), 0),
                                     begin * of.block_bytes()));
        }
        begin = end + 1;
    }
    return {};
}

result<direct_collectives::outcome> node_collectives::agree_on_path(const call &of) {
    request const intra_node = of.intra_node_form();
    bool fits = call_info::fits_stage_buffer(of.intra_node, intra_node);
    for (std::size_t index = 0; index < of.own.size(); ++index) {
        fits = fits && direct_.is_eligible(of.members, of.args, index, of.own[index]);
    }
    auto agreed = collectives::agree(of.members, of.args, veto_if(!fits));
    DIOMP_TRY(agreed);
    if (agreed.value()) {
        return outcome::not_applicable;
    }
    group::node_subgroups &subgroups = *of.members.subgroups();
    if (subgroups.are_probed) {
        return outcome::done;
    }
    auto tried = direct_.probe(of.intra_node, intra_node, intra_node_buffers(of, intra_node, 0));
    // No node writes before all nodes have probed.
    bool const succeeded = tried && tried.value() == outcome::done;
    agreed = collectives::agree(of.members, of.args, veto_if(!succeeded));
    DIOMP_TRY(tried);
    DIOMP_TRY(agreed);
    subgroups.are_probed = !agreed.value();
    return agreed.value() ? outcome::unreachable : outcome::done;
}

result<direct_collectives::outcome>
node_collectives::run(group::group &members, const request &args, std::span<const buffers> own) {
    group::node_subgroups const &subgroups = *members.subgroups();
    call const of{members, args, own, *subgroups.intra_node, subgroups.inter_node.get()};
    auto agreed_path = agree_on_path(of);
    DIOMP_TRY(agreed_path);
    if (agreed_path.value() != outcome::done) {
        return agreed_path;
    }
    switch (args.what) {
    case operation::bcast:
        DIOMP_TRY(bcast(of));
        break;
    case operation::allreduce:
        DIOMP_TRY(allreduce(of));
        break;
    default:
        DIOMP_TRY(allgather(of));
        break;
    }
    log(log_level::debug,
        "{} of {} elements on {} endpoints: from device to device inside {} nodes",
        sync::name_of(args.what), args.amount, members.count(), members.layout().num_nodes());
    return outcome::done;
}

} // namespace diomp::device_coll
