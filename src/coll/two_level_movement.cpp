// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two-level data movement. Call leaders gather or scatter a node's blocks with intra-node calls,
// and exchange them with the other call leaders. Blocks are sent in chunks, which limits the
// scratch memory.
#include "coll/internal/two_level.h"
#include "coll/internal/two_level_exchange.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <optional>
#include <vector>

namespace diomp::coll {
namespace {

using sync::operation;

/// Steps of a bcast's agreement with its parent and children.
constexpr std::uint64_t step_ready = group::step_state + 512;
constexpr std::uint64_t step_refused = step_ready + 1;

/// The inter-node and the intra-node bcast alternate after this many bytes.
constexpr std::size_t bcast_chunk_bytes = std::size_t{1} << 20;

/// Member of each block in a buffer that is ordered by node, then by local index.
std::vector<std::uint32_t> order_by_node(const group::node_layout &layout) {
    std::vector<std::uint32_t> order;
    for (std::size_t node = 0; node < layout.num_nodes(); ++node) {
        auto const members = layout.members_of(node);
        order.insert(order.end(), members.begin(), members.end());
    }
    return order;
}

/// Number of blocks of the nodes before `node`.
std::size_t first_of(const group::node_layout &layout, std::size_t node) {
    std::size_t first = 0;
    for (std::size_t before = 0; before < node; ++before) {
        first += layout.sizes[before];
    }
    return first;
}

/// A call leader's buffer in a gather or scatter: a chunk of its node's blocks; at the root, of all
/// blocks, ordered by node.
struct leader_blocks {
    explicit leader_blocks(two_level_call &call)
        : layout(call.layout()), chunks(chunk_blocks(call, call.num_members)) {
        if (call.is_root()) {
            order = order_by_node(layout);
        }
        if (call.internode.current().is_call_leader()) {
            std::size_t const num = call.is_root() ? call.num_members : call.num_local();
            all = call.internode.channel().scratch(num * chunks.chunk);
        }
    }

    /// The blocks of a node. Only at the root.
    [[nodiscard]] std::span<std::byte> of_node(std::size_t node, std::size_t chunk_bytes) const {
        return {all + first_of(layout, node) * chunk_bytes, layout.sizes[node] * chunk_bytes};
    }

    const group::node_layout &layout;
    chunking chunks;                  ///< equal on all members
    std::vector<std::uint32_t> order; ///< only at the root
    std::byte *all = nullptr;
};

// Counts message steps, one for each message that a node sends. In a chain the last node is
// complete after the number of messages plus one step for each node in between, since messages are
// pipelined; in a binomial tree the root alone takes one step for each message and level.
bool is_chain_faster(std::size_t num_nodes, std::size_t num_messages) {
    auto const levels = static_cast<std::size_t>(std::bit_width(num_nodes - 1));
    return num_messages + num_nodes - 2 < num_messages * levels;
}

/// A bcast's parent and children of this node; empty if this member is not the call leader.
struct bcast_tree {
    explicit bcast_tree(const two_level_call &call) {
        if (!call.internode.current().is_call_leader()) {
            return;
        }
        std::size_t const num = call.num_nodes();
        std::size_t const base = call.layout().node(call.root());
        std::size_t const number = (call.own_node() + num - base) % num; // relative to the root's
        auto const call_leader = [&](std::size_t of) {
            return call.internode.current().call_leader_of((of + base) % num);
        };
        std::size_t const messages =
            (call.block_bytes() - 1) / message_stream::default_message_bytes + 1;
        bool const is_chain = call.takes(algorithm::chain, is_chain_faster(num, messages));
        log_algorithm(is_chain ? algorithm::chain : algorithm::binomial_tree);
        std::size_t const lowest = number == 0 ? std::bit_ceil(num) : number & (~number + 1);
        if (number != 0) {
            from = call_leader(is_chain ? number - 1 : number - lowest);
        }
        if (is_chain && number + 1 < num) {
            to.push_back(call_leader(number + 1));
        }
        for (std::size_t bit = is_chain ? 0 : lowest / 2; bit > 0; bit /= 2) {
            if (number + bit < num) {
                to.push_back(call_leader(number + bit));
            }
        }
    }

    std::optional<std::size_t> from;
    std::vector<std::size_t> to;
};

/// A chunk of a bcast between nodes; the constructor posts the receives.
class bcast_chunk {
public:
    using rtr_mode = message_stream::rtr_mode;

    bcast_chunk(two_level_call &call, const bcast_tree &tree, range where, rtr_mode rtr)
        : tree_(tree), data_(call.dst() + where.begin, where.count),
          messages_(call, rtr, message_bytes(call, rtr)) {
        if (tree_.from) {
            messages_.post_recv(*tree_.from, data_);
        }
    }

    [[nodiscard]] std::span<std::byte> data() const { return data_; }

    /// Receives the first message before the agreement. False if the parent sends no data.
    bool receive_first() { return messages_.receive_first(*tree_.from, step_refused); }

    status wait_all_received() { return messages_.wait_all_received(); }

    /// Forwards each message as soon as it has arrived.
    status run() {
        std::size_t const num = messages_.num_messages(data_.size());
        for (std::size_t message = 0; message < num; ++message) {
            if (tree_.from) {
                DIOMP_TRY(messages_.wait_received(message));
            }
            for (std::size_t const member : tree_.to) {
                DIOMP_TRY(messages_.send_message(member, data_, message));
            }
        }
        return {};
    }

private:
    /// One message is best between two members, where no member forwards it.
    static std::size_t message_bytes(const two_level_call &call, rtr_mode rtr) {
        if (call.num_members > 2 || rtr == rtr_mode::announced) {
            return message_stream::default_message_bytes;
        }
        return std::max(call.internode.channel().max_am_long_bytes(1 - call.self),
                        message_stream::default_message_bytes);
    }

    const bcast_tree &tree_;
    std::span<std::byte> data_;
    message_stream messages_;
};

// Agreement with the parent and the children only: a child sends its state when its receive is
// posted. So the root may be a call ahead of the leaves of the tree. If a member finds that a child
// made a different call, it sends all its children an error instead of data, and still receives its
// own data.
status agree_with_neighbours(two_level_call &call, const bcast_tree &tree, bcast_chunk &all) {
    group::current_call &current = call.internode.current();
    group::arrival_protocol &arrivals = call.internode.arrivals();
    group::internode_channel &channel = call.internode.channel();
    arrivals.arrive();
    if (!current.is_call_leader()) {
        arrivals.wait_for_result();
        return current.outcome();
    }
    arrivals.gather();
    bool data_follows = false;
    if (tree.from) {
        channel.send_with_state(*tree.from, step_ready, {});
        data_follows = current.is_clean() && all.receive_first();
    }
    for (std::size_t const member : tree.to) {
        if (current.is_clean()) {
            channel.receive_with_state(member, step_ready, {});
        }
    }
    if (!current.is_clean()) {
        for (std::size_t const member : tree.to) {
            channel.send_with_state(member, step_refused, {});
        }
    }
    arrivals.publish_result();
    status outcome = current.outcome();
    if (!outcome && data_follows) {
        static_cast<void>(all.wait_all_received()); // the error of the call is reported instead
    }
    return outcome;
}

} // namespace

// While one chunk is sent, the receives of the next one are posted.
status two_level_bcast(two_level_call &call, bool wait_for_all) {
    bool const has_chunk_bytes = call.choice && call.choice->chunk_bytes != 0;
    chunking const chunks{call.block_bytes(),
                          has_chunk_bytes ? call.choice->chunk_bytes : bcast_chunk_bytes};
    bcast_tree const tree(call);
    std::deque<bcast_chunk> in_flight;
    in_flight.emplace_back(call, tree, chunks[0], message_stream::rtr_mode::implied);
    DIOMP_TRY(wait_for_all || chunks.num_chunks() > 1
                  ? call.internode.agree_on_call()
                  : agree_with_neighbours(call, tree, in_flight.front()));
    for (std::size_t next = 1; !in_flight.empty(); ++next) {
        if (next < chunks.num_chunks()) {
            in_flight.emplace_back(call, tree, chunks[next], message_stream::rtr_mode::announced);
        }
        bcast_chunk &current = in_flight.front();
        DIOMP_TRY(current.run());
        std::span<std::byte> const data = current.data();
        DIOMP_TRY(call.run_intra_node(operation::bcast, data.data(), nullptr, data.size(),
                                      call.call_leader_index()));
        in_flight.pop_front();
    }
    return call.internode.channel().finish_sends();
}

// Each call leader gathers the blocks of its node and sends them to the root.
status two_level_gather(two_level_call &call) {
    const group::current_call &current = call.internode.current();
    leader_blocks const blocks(call);
    for (std::size_t i = 0; i < blocks.chunks.num_chunks(); ++i) {
        range const chunk = blocks.chunks[i];
        message_stream messages(call);
        for (std::size_t node = 0; call.is_root() && node < call.num_nodes(); ++node) {
            if (node != call.own_node()) {
                messages.post_recv(current.call_leader_of(node), blocks.of_node(node, chunk.count));
            }
        }
        std::byte *const intra_node =
            call.is_root() ? blocks.of_node(call.own_node(), chunk.count).data() : blocks.all;
        DIOMP_TRY(call.run_intra_node(operation::gather, intra_node, call.src() + chunk.begin,
                                      chunk.count, call.call_leader_index()));
        if (call.is_root()) {
            DIOMP_TRY(messages.wait_all_received());
            for (std::size_t block = 0; block < blocks.order.size(); ++block) {
                std::memcpy(call.dst() + blocks.order[block] * call.block_bytes() + chunk.begin,
                            blocks.all + block * chunk.count, chunk.count);
            }
        } else if (current.is_call_leader() && call.own_node() != blocks.layout.node(call.root())) {
            DIOMP_TRY(messages.send(call.root(), {intra_node, call.num_local() * chunk.count}));
            DIOMP_TRY(messages.finish());
        }
    }
    return {};
}

// The root sends each call leader the blocks of its node.
status two_level_scatter(two_level_call &call) {
    const group::current_call &current = call.internode.current();
    leader_blocks const blocks(call);
    for (std::size_t i = 0; i < blocks.chunks.num_chunks(); ++i) {
        range const chunk = blocks.chunks[i];
        message_stream messages(call);
        std::byte *intra_node = blocks.all;
        if (call.is_root()) {
            for (std::size_t block = 0; block < blocks.order.size(); ++block) {
                std::memcpy(blocks.all + block * chunk.count,
                            call.src() + blocks.order[block] * call.block_bytes() + chunk.begin,
                            chunk.count);
            }
            for (std::size_t node = 0; node < call.num_nodes(); ++node) {
                std::span<std::byte> const node_blocks = blocks.of_node(node, chunk.count);
                if (node == call.own_node()) {
                    intra_node = node_blocks.data();
                } else {
                    DIOMP_TRY(messages.send(current.call_leader_of(node), node_blocks));
                }
            }
        } else if (current.is_call_leader()) {
            messages.post_recv(call.root(), {blocks.all, call.num_local() * chunk.count});
            DIOMP_TRY(messages.wait_all_received());
        }
        DIOMP_TRY(call.run_intra_node(operation::scatter, call.dst() + chunk.begin, intra_node,
                                      chunk.count, call.call_leader_index()));
        DIOMP_TRY(messages.finish());
    }
    return {};
}

// The leaders gather, exchange with each other, and broadcast all blocks.
status allgather_chunk(two_level_call &call, std::byte *to, const std::byte *from,
                       std::size_t chunk_bytes, std::byte *scratch) {
    const group::node_layout &layout = call.layout();
    message_stream messages(call);
    auto const of_node = [&](std::size_t node) {
        return std::span(scratch + first_of(layout, node) * chunk_bytes,
                         layout.sizes[node] * chunk_bytes);
    };
    std::span<std::byte> const intra_node = of_node(call.own_node());
    if (call.layout().is_leader()) {
        for (std::size_t node = 0; node < call.num_nodes(); ++node) {
            if (node != call.own_node()) {
                messages.post_recv(layout.leaders[node], of_node(node));
            }
        }
    }
    DIOMP_TRY(call.run_intra_node(operation::gather, intra_node.data(), from, chunk_bytes, 0));
    if (call.layout().is_leader()) {
        for (std::size_t i = 1; i < call.num_nodes(); ++i) {
            std::size_t const node = (call.own_node() + i) % call.num_nodes();
            DIOMP_TRY(messages.send(layout.leaders[node], intra_node));
        }
        DIOMP_TRY(messages.wait_all_received());
    }
    DIOMP_TRY(
        call.run_intra_node(operation::bcast, scratch, nullptr, call.num_members * chunk_bytes, 0));
    DIOMP_TRY(messages.finish());
    std::vector<std::uint32_t> const order = order_by_node(layout);
    for (std::size_t block = 0; block < order.size(); ++block) {
        std::memcpy(to + order[block] * chunk_bytes, scratch + block * chunk_bytes, chunk_bytes);
    }
    return {};
}

status two_level_allgather(two_level_call &call) {
    if (has_ranges(call)) {
        return two_level_allgather_ranges(call);
    }
    std::size_t const n = call.num_members;
    chunking const chunks = chunk_blocks(call, 2 * n);
    std::byte *const ordered = call.internode.channel().scratch(2 * n * chunks.chunk);
    for (std::size_t i = 0; i < chunks.num_chunks(); ++i) {
        range const chunk = chunks[i];
        DIOMP_TRY(allgather_chunk(call, ordered, call.src() + chunk.begin, chunk.count,
                                  ordered + n * chunks.chunk));
        for (std::size_t member = 0; member < n; ++member) {
            std::memcpy(call.dst() + member * call.block_bytes() + chunk.begin,
                        ordered + member * chunk.count, chunk.count);
        }
    }
    return {};
}

// Between nodes every member sends each other member its chunk; within a node an intra-node call
// does.
status two_level_alltoall(two_level_call &call) {
    if (forwards_blocks(call)) {
        return two_level_forwarded_alltoall(call);
    }
    std::size_t const stage_bytes = call.internode.has_large_stage_buffers().value_or(false)
                                        ? group::arrival_protocol::max_data_with_state_bytes
                                        : group::arrival_protocol::max_stage_data_bytes;
    if (std::size_t const chunk = grouped_chunk_bytes(call, stage_bytes); chunk > 0) {
        return two_level_grouped_alltoall(call, chunk);
    }
    log_algorithm(algorithm::pairwise);
    const group::node_layout &layout = call.layout();
    std::size_t const n = call.num_members;
    std::size_t const block = call.block_bytes();
    std::size_t const num_local = call.num_local();
    // Equal chunks on all nodes.
    std::size_t const num_blocks = n + 2 * std::size_t{std::ranges::max(layout.sizes)};
    chunking const chunks = chunk_blocks(call, num_blocks);
    std::byte *const out = call.internode.channel().scratch(num_blocks * chunks.chunk);
    std::byte *const intra_node_out = out + n * chunks.chunk;
    std::byte *const intra_node_in = intra_node_out + num_local * chunks.chunk;
    for (std::size_t i = 0; i < chunks.num_chunks(); ++i) {
        range const chunk = chunks[i];
        message_stream messages(call);
        // In place, received data overwrites data that still has to be sent.
        for (std::size_t to = 0; to < n; ++to) {
            std::memcpy(out + to * chunk.count, call.src() + to * block + chunk.begin, chunk.count);
        }
        for (std::size_t from = 0; from < n; ++from) {
            if (layout.node(from) != call.own_node()) {
                messages.post_recv(from, {call.dst() + from * block + chunk.begin, chunk.count});
            }
        }
        for (std::size_t step = 1; step < n; ++step) {
            std::size_t const to = (call.self + step) % n;
            if (layout.node(to) != call.own_node()) {
                DIOMP_TRY(messages.send(to, {out + to * chunk.count, chunk.count}));
            }
        }
        for (std::size_t index = 0; index < num_local; ++index) {
            std::memcpy(intra_node_out + index * chunk.count,
                        out + layout.local_members[index] * chunk.count, chunk.count);
        }
        DIOMP_TRY(
            call.run_intra_node(operation::alltoall, intra_node_in, intra_node_out, chunk.count));
        for (std::size_t index = 0; index < num_local; ++index) {
            std::memcpy(call.dst() + layout.local_members[index] * block + chunk.begin,
                        intra_node_in + index * chunk.count, chunk.count);
        }
        DIOMP_TRY(messages.wait_all_received());
        DIOMP_TRY(messages.finish());
    }
    return {};
}

} // namespace diomp::coll
