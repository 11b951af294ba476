// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/node_collectives.h"

#include "base/log.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace diomp::runtime {
namespace {

using collective::collectives;
using collective::request;
using sync::operation;

/// Between nodes a call goes through so much host memory at a time.
constexpr std::size_t piece_bytes = std::size_t{4} << 20;

/// For meetings on parts, where the call's root may have no number.
/// Never destroyed: threads may be in calls when the process ends.
request const &some_step = *new request{.what = operation::barrier};

request bytes_to_all(std::size_t nbytes, std::size_t root) {
    return {.what = operation::bcast, .amount = nbytes, .root = static_cast<int>(root)};
}

/// Averages are sums until all operands have come.
request summed(request asked) {
    if (asked.op == OMPX_AVG) {
        asked.op = OMPX_SUM;
    }
    return asked;
}

std::optional<std::uint64_t> objection_if(bool objects) {
    return objects ? std::optional<std::uint64_t>(0) : std::nullopt;
}

/// Calls work(begin, count) for every piece of `total` units of a call.
template <typename Work>
status in_pieces(std::size_t total, std::size_t unit_bytes, Work &&work) {
    std::size_t const each = std::max<std::size_t>(1, piece_bytes / unit_bytes);
    for (std::size_t begin = 0; begin < total; begin += each) {
        DIOMP_TRY(work(begin, std::min(each, total - begin)));
    }
    return {};
}

/// Host memory for pieces.
std::unique_ptr<std::byte[]> room_for(std::size_t total, std::size_t unit_bytes) {
    return std::make_unique_for_overwrite<std::byte[]>(
        std::max(unit_bytes, std::min(piece_bytes, total * unit_bytes)));
}

} // namespace

bool node_collectives::has_plan(const request &asked) {
    return asked.what == operation::bcast || asked.what == operation::allreduce ||
           asked.what == operation::allgather;
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

// Blocks of an allgather lie where they belong among those of all nodes.
request node_collectives::call::inside_form() const {
    if (asked.what == operation::bcast) {
        return bytes_to_all(block_bytes(), 0);
    }
    if (asked.what == operation::allreduce) {
        return summed(asked);
    }
    auto blocks = std::make_shared<collective::block_lists>();
    for (std::size_t const member : members_of(own_node())) {
        blocks->dst.nbytes.push_back(block_bytes());
        blocks->dst.offsets.push_back(member * block_bytes());
    }
    return {.what = operation::allgatherv, .blocks = std::move(blocks)};
}

std::vector<direct_collectives::buffers>
node_collectives::buffers_inside(const call &of, const request &asked, std::size_t offset) {
    std::vector<buffers> made;
    for (std::size_t place = 0; place < of.own.size(); ++place) {
        buffers each = of.own[place];
        each.use = collective::use_of(asked, {}, of.inside.count(), of.inside.own(place));
        each.blocks = asked.blocks;
        each.dst.address += offset;
        if (each.use.src_bytes == 0) {
            each.src = {};
        }
        made.push_back(std::move(each));
    }
    return made;
}

status node_collectives::run_inside(const call &of, const request &asked, std::size_t offset) {
    auto ran = direct_.run(of.inside, asked, buffers_inside(of, asked, offset), 0);
    DIOMP_TRY(ran);
    if (ran.value() != outcome::done) {
        return error(OMPX_ERR_SYSTEM,
                     "devices of this node that have reached each other do not any more",
                     "DIOMP_LOG=info says which");
    }
    return {};
}

status node_collectives::run_between(const call &of, status so_far, function_ref<status()> work) {
    if (of.between != nullptr) {
        auto agreed = collectives::agree(*of.between, some_step, objection_if(!so_far));
        if (so_far && !agreed) {
            so_far = agreed.take_failure();
        } else if (so_far && agreed.value()) {
            so_far = error(OMPX_ERR_SYSTEM,
                           fmt::format("a device on the node of rank {} failed in its part of {}: "
                                       "the buffers have any contents",
                                       of.between->members()[agreed.value()->member].value(),
                                       sync::name_of(of.asked.what)),
                           "the errors there say more");
        } else if (so_far) {
            so_far = work();
        }
    }
    status met = collectives::meet(of.inside, some_step, {so_far ? 1U : 0U});
    DIOMP_TRY(so_far);
    DIOMP_TRY(met);
    if (of.inside.payload_of(0)[0] == 0) {
        return error(OMPX_ERR_SYSTEM,
                     fmt::format("rank {}, which speaks for this node, failed in its part of {}: "
                                 "the buffers have any contents",
                                 of.inside.members().front().value(), sync::name_of(of.asked.what)),
                     "that rank's error says more");
    }
    return {};
}

status node_collectives::copy_leading(const call &of, std::size_t offset, std::byte *host,
                                      std::size_t nbytes, bool to_device) {
    offload::end const &dst = of.own.front().dst;
    return devices_.copy_own({dst.address + offset, dst.on}, host, nbytes, to_device);
}

status node_collectives::pass_on(const call &of, std::size_t root_node) {
    bool const is_source = of.own_node() == root_node;
    auto const host = room_for(of.block_bytes(), 1);
    return in_pieces(of.block_bytes(), 1, [&](std::size_t at, std::size_t nbytes) -> status {
        if (is_source) {
            DIOMP_TRY(copy_leading(of, at, host.get(), nbytes, false));
        }
        request piece = bytes_to_all(nbytes, root_node);
        piece.dst = host.get();
        DIOMP_TRY(collectives_.run(*of.between, piece));
        return is_source ? status{} : copy_leading(of, at, host.get(), nbytes, true);
    });
}

status node_collectives::bcast(const call &of) {
    auto const root = static_cast<std::size_t>(of.asked.root);
    std::size_t const root_node = of.node_of(root);
    bool const is_source = of.own_node() == root_node;
    status so_far;
    if (is_source) {
        auto const here = of.members_of(root_node);
        auto const number = static_cast<std::size_t>(std::ranges::find(here, root) - here.begin());
        so_far = run_inside(of, bytes_to_all(of.block_bytes(), number));
    }
    DIOMP_TRY(run_between(of, std::move(so_far), [&] { return pass_on(of, root_node); }));
    return is_source ? status{} : run_inside(of, bytes_to_all(of.block_bytes(), 0));
}

status node_collectives::combine_nodes(const call &of) {
    std::size_t const unit = ompx_type_size(of.asked.type);
    auto reduce = collectives_.operators().resolve(of.asked.type, of.asked.op);
    DIOMP_TRY(reduce);
    auto const host = room_for(of.asked.amount, unit);
    return in_pieces(of.asked.amount, unit, [&](std::size_t begin, std::size_t count) -> status {
        DIOMP_TRY(copy_leading(of, begin * unit, host.get(), count * unit, false));
        request piece = summed(of.asked);
        piece.dst = host.get();
        piece.src = host.get();
        piece.amount = count;
        DIOMP_TRY(collectives_.run(*of.between, piece));
        if (auto const average = reduce.value().average) {
            average(host.get(), count, of.members.count());
        }
        return copy_leading(of, begin * unit, host.get(), count * unit, true);
    });
}

status node_collectives::allreduce(const call &of) {
    request to_leader = summed(of.asked);
    to_leader.what = operation::reduce;
    to_leader.root = 0;
    DIOMP_TRY(run_between(of, run_inside(of, to_leader), [&] { return combine_nodes(of); }));
    return run_inside(of, bytes_to_all(of.block_bytes(), 0));
}

status node_collectives::exchange_blocks(const call &of) {
    std::size_t const n = of.members.count();
    std::vector<std::size_t> order; // [place in host memory] member
    std::vector<std::size_t> first;
    for (std::size_t node = 0; node < of.between->count(); ++node) {
        auto const there = of.members_of(node);
        first.push_back(order.size());
        order.insert(order.end(), there.begin(), there.end());
    }
    first.push_back(n);
    auto const host = room_for(of.block_bytes(), n);
    return in_pieces(of.block_bytes(), n, [&](std::size_t at, std::size_t nbytes) -> status {
        auto const copy = [&](std::size_t place, bool to_device) {
            return copy_leading(of, order[place] * of.block_bytes() + at,
                                host.get() + place * nbytes, nbytes, to_device);
        };
        std::size_t const begin = first[of.own_node()];
        std::size_t const end = first[of.own_node() + 1];
        for (std::size_t place = begin; place < end; ++place) {
            DIOMP_TRY(copy(place, false));
        }
        auto lists = std::make_shared<collective::block_lists>();
        for (std::size_t node = 0; node + 1 < first.size(); ++node) {
            lists->dst.nbytes.push_back((first[node + 1] - first[node]) * nbytes);
            lists->dst.offsets.push_back(first[node] * nbytes);
        }
        DIOMP_TRY(collectives_.run(*of.between, {.what = operation::allgatherv,
                                                 .dst = host.get(),
                                                 .src = host.get() + begin * nbytes,
                                                 .blocks = std::move(lists)}));
        for (std::size_t place = 0; place < n; ++place) {
            if (place < begin || place >= end) {
                DIOMP_TRY(copy(place, true));
            }
        }
        return {};
    });
}

status node_collectives::allgather(const call &of) {
    DIOMP_TRY(
        run_between(of, run_inside(of, of.inside_form()), [&] { return exchange_blocks(of); }));
    for (std::size_t begin = 0; begin < of.members.count();) {
        std::size_t end = begin;
        while (end < of.members.count() && of.node_of(end) != of.own_node()) {
            ++end;
        }
        if (end > begin) {
            DIOMP_TRY(run_inside(of, bytes_to_all((end - begin) * of.block_bytes(), 0),
                                 begin * of.block_bytes()));
        }
        begin = end + 1;
    }
    return {};
}

result<direct_collectives::outcome> node_collectives::settle(const call &of) {
    request const inside = of.inside_form();
    bool fits = told_call::has_room(of.inside, inside);
    for (std::size_t place = 0; place < of.own.size(); ++place) {
        fits = fits && direct_.is_fit(of.members, of.asked, place, of.own[place]);
    }
    auto agreed = collectives::agree(of.members, of.asked, objection_if(!fits));
    DIOMP_TRY(agreed);
    if (agreed.value()) {
        return outcome::not_so;
    }
    group::node_parts &parts = *of.members.parts();
    if (parts.are_tried) {
        return outcome::done;
    }
    auto tried = direct_.try_out(of.inside, inside, buffers_inside(of, inside, 0));
    // Nobody writes anything before all nodes have tried.
    bool const is_well = tried && tried.value() == outcome::done;
    agreed = collectives::agree(of.members, of.asked, objection_if(!is_well));
    DIOMP_TRY(tried);
    DIOMP_TRY(agreed);
    parts.are_tried = !agreed.value();
    return agreed.value() ? outcome::unreachable : outcome::done;
}

result<direct_collectives::outcome>
node_collectives::run(group::group &members, const request &asked, std::span<const buffers> own) {
    group::node_parts const &parts = *members.parts();
    call const of{members, asked, own, *parts.inside, parts.between.get()};
    auto settled = settle(of);
    DIOMP_TRY(settled);
    if (settled.value() != outcome::done) {
        return settled;
    }
    switch (asked.what) {
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
        sync::name_of(asked.what), asked.amount, members.count(), members.across()->num_nodes());
    return outcome::done;
}

} // namespace diomp::runtime
