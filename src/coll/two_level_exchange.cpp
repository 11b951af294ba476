// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "coll/internal/two_level_exchange.h"

#include "coll/network_costs.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

namespace diomp::coll {
namespace {

using sync::operation;

/// Nodes that a leader exchanges with at the same time in a direct exchange; bounds the receives
/// that are posted.
constexpr std::size_t peers_at_once = 16;

/// The blocks of consecutive nodes in dst, which follow each other without a gap.
class node_ranges {
public:
    explicit node_ranges(const two_level_call &call)
        : layout_(call.layout()), dst_(call.dst()), block_(call.block_bytes()) {}

    [[nodiscard]] std::span<std::byte> of(std::size_t first, std::size_t count) const {
        std::size_t const last = first + count - 1;
        std::size_t const begin = layout_.leaders[first];
        std::size_t const end = count == 0 ? begin : layout_.leaders[last] + layout_.sizes[last];
        return {dst_ + begin * block_, (end - begin) * block_};
    }

private:
    const group::node_layout &layout_;
    std::byte *dst_;
    std::size_t block_;
};

// Each leader sends its node's blocks to every other leader, a window at a time.
status exchange_directly(two_level_call &call, const node_ranges &ranges) {
    std::size_t const num = call.num_nodes();
    std::size_t const own = call.own_node();
    const auto &leaders = call.layout().leaders;
    for (std::size_t first = 1; first < num; first += peers_at_once) {
        std::size_t const end = std::min(num, first + peers_at_once);
        message_stream messages(call);
        for (std::size_t i = first; i < end; ++i) {
            std::size_t const from = (own + num - i) % num;
            messages.post_recv(leaders[from], ranges.of(from, 1));
        }
        for (std::size_t i = first; i < end; ++i) {
            DIOMP_TRY(messages.send(leaders[(own + i) % num], ranges.of(own, 1)));
        }
        DIOMP_TRY(messages.wait_all_received());
        DIOMP_TRY(messages.finish());
    }
    return {};
}

// Bruck's algorithm: after the round with distance d a leader has the blocks of the nodes own ..
// own + 2d - 1, round the ring. The blocks of a message are one range of dst, or two where they
// pass the last node.
status exchange_in_rounds(two_level_call &call, const node_ranges &ranges) {
    std::size_t const num = call.num_nodes();
    std::size_t const own = call.own_node();
    const auto &leaders = call.layout().leaders;
    for (std::size_t distance = 1; distance < num; distance *= 2) {
        std::size_t const count = std::min(distance, num - distance);
        std::size_t const from = (own + distance) % num;
        std::size_t const to = leaders[(own + num - distance) % num];
        auto const before_end = [&](std::size_t first) { return std::min(count, num - first); };
        message_stream front(call);
        message_stream back(call);
        front.post_recv(leaders[from], ranges.of(from, before_end(from)));
        if (before_end(from) < count) {
            back.post_recv(leaders[from], ranges.of(0, count - before_end(from)));
        }
        DIOMP_TRY(front.send(to, ranges.of(own, before_end(own))));
        if (before_end(own) < count) {
            DIOMP_TRY(back.send(to, ranges.of(0, count - before_end(own))));
        }
        DIOMP_TRY(front.wait_all_received());
        DIOMP_TRY(back.wait_all_received());
        DIOMP_TRY(back.finish()); // of the channel, and so of both
    }
    return {};
}

/// J. Bruck et al., Efficient algorithms for all-to-all communications in multiport message-passing
/// systems, IEEE TPDS 8 (1997), radix 2. Block i of `blocks` is the one for the member i after the
/// caller; in round k those with bit k go to the member 2^k after it.
status forward_blocks(two_level_call &call, range chunk, std::byte *blocks, std::byte *out,
                      std::byte *in) {
    std::size_t const n = call.num_members;
    std::size_t const block = call.block_bytes();
    for (std::size_t i = 0; i < n; ++i) {
        std::memcpy(blocks + i * chunk.count,
                    call.src() + (call.self + i) % n * block + chunk.begin, chunk.count);
    }
    for (std::size_t distance = 1; distance < n; distance *= 2) {
        auto const each_moved = [&](auto &&visit) {
            std::size_t moved = 0;
            for (std::size_t i = distance; i < n; ++i) {
                if ((i & distance) != 0) {
                    visit(blocks + i * chunk.count, moved++ * chunk.count);
                }
            }
            return moved * chunk.count;
        };
        std::size_t const nbytes = each_moved([&](const std::byte *from, std::size_t at) {
            std::memcpy(out + at, from, chunk.count);
        });
        message_stream messages(call);
        messages.post_recv((call.self + n - distance) % n, {in, nbytes});
        DIOMP_TRY(messages.send((call.self + distance) % n, {out, nbytes}));
        DIOMP_TRY(messages.wait_all_received());
        DIOMP_TRY(messages.finish());
        each_moved([&](std::byte *to, std::size_t at) { std::memcpy(to, in + at, chunk.count); });
    }
    for (std::size_t i = 0; i < n; ++i) {
        std::memcpy(call.dst() + (call.self + n - i) % n * block + chunk.begin,
                    blocks + i * chunk.count, chunk.count);
    }
    return {};
}

/// One alltoall by nodes. Every node has the same number of members, with consecutive group ranks.
class grouped_alltoall {
public:
    grouped_alltoall(two_level_call &call, std::size_t chunk_bytes)
        : call_(call), layout_(call.layout()), local_(call.internode.local_members()),
          num_local_(call.num_local()), own_(layout_.own_local_index), chunk_bytes_(chunk_bytes) {}

    status run() {
        // The scratch memory holds what this member sends and receives.
        out_ = call_.internode.channel().scratch(2 * num_handled() * message_bytes(chunk_bytes_));
        in_ = out_ + num_handled() * message_bytes(chunk_bytes_);
        DIOMP_TRY(local_.barrier().wait_all_arrived());
        chunking const chunks{call_.block_bytes(), chunk_bytes_};
        for (std::size_t i = 0; i < chunks.num_chunks(); ++i) {
            DIOMP_TRY(run_chunk(chunks[i]));
        }
        return {};
    }

    /// Bytes of a stage buffer for each byte of a block.
    static std::size_t stage_factor(const two_level_call &call) {
        std::size_t const m = call.num_local();
        std::size_t const handled = (call.num_nodes() + m - 1) / m;
        return std::max(call.num_members, handled * m * m);
    }

private:
    /// Nodes with the same remainder as this member's local index; its own node may be among them.
    [[nodiscard]] std::size_t num_handled() const {
        return (call_.num_nodes() + num_local_ - 1 - own_) / num_local_;
    }
    [[nodiscard]] std::size_t handled(std::size_t index) const { return own_ + index * num_local_; }
    /// The member of another node that handles this one.
    [[nodiscard]] std::size_t partner(std::size_t node) const {
        return layout_.leaders[node] + layout_.own_node % num_local_;
    }
    [[nodiscard]] std::size_t message_bytes(std::size_t nbytes) const {
        return num_local_ * num_local_ * nbytes;
    }
    [[nodiscard]] std::size_t stage_bytes(std::size_t nbytes) const {
        return stage_factor(call_) * nbytes;
    }
    [[nodiscard]] const std::byte *stage_of(std::size_t index, std::size_t nbytes) const {
        return local_.stage_buffer_of(index, stage_bytes(nbytes));
    }
    [[nodiscard]] std::byte *dst_of(std::size_t member, range chunk) const {
        return call_.dst() + member * call_.block_bytes() + chunk.begin;
    }

    template <typename Then>
    status for_each_other_node(Then &&then) {
        for (std::size_t i = 0; i < num_handled(); ++i) {
            if (handled(i) != layout_.own_node) {
                DIOMP_TRY(then(i, handled(i)));
            }
        }
        return {};
    }

    void stage_own_blocks(range chunk) const {
        std::byte *const stage = local_.next_stage_buffer(stage_bytes(chunk.count));
        for (std::size_t to = 0; to < call_.num_members; ++to) {
            std::memcpy(stage + to * chunk.count,
                        call_.src() + to * call_.block_bytes() + chunk.begin, chunk.count);
        }
    }
    void take_blocks_of_node(range chunk) const {
        std::size_t const first = layout_.leaders[layout_.own_node];
        for (std::size_t from = 0; from < num_local_; ++from) {
            std::memcpy(dst_of(first + from, chunk),
                        stage_of(from, chunk.count) + (first + own_) * chunk.count, chunk.count);
        }
    }
    /// The blocks for the members of a node: those of one sender are adjacent in its stage buffer.
    [[nodiscard]] std::span<const std::byte> collect(std::size_t index, std::size_t nbytes) const {
        std::byte *const message = out_ + index * message_bytes(nbytes);
        std::size_t const row = num_local_ * nbytes;
        for (std::size_t from = 0; from < num_local_; ++from) {
            std::memcpy(message + from * row,
                        stage_of(from, nbytes) + layout_.leaders[handled(index)] * nbytes, row);
        }
        return {message, message_bytes(nbytes)};
    }
    void take_blocks_of_others(range chunk) const {
        for (std::size_t node = 0; node < call_.num_nodes(); ++node) {
            if (node == layout_.own_node) {
                continue;
            }
            const std::byte *const message = stage_of(node % num_local_, chunk.count) +
                                             node / num_local_ * message_bytes(chunk.count);
            for (std::size_t from = 0; from < num_local_; ++from) {
                std::memcpy(dst_of(layout_.leaders[node] + from, chunk),
                            message + (from * num_local_ + own_) * chunk.count, chunk.count);
            }
        }
    }

    status run_chunk(range chunk) {
        message_stream messages(call_);
        DIOMP_TRY(for_each_other_node([&](std::size_t index, std::size_t node) -> status {
            messages.post_recv(partner(node), {in_ + index * message_bytes(chunk.count),
                                               message_bytes(chunk.count)});
            return {};
        }));
        stage_own_blocks(chunk);
        DIOMP_TRY(local_.barrier().arrive_and_wait(call_.signature));
        DIOMP_TRY(for_each_other_node([&](std::size_t index, std::size_t node) -> status {
            return messages.send(partner(node), collect(index, chunk.count));
        }));
        take_blocks_of_node(chunk);
        DIOMP_TRY(messages.wait_all_received());
        std::memcpy(local_.next_stage_buffer(stage_bytes(chunk.count)), in_,
                    num_handled() * message_bytes(chunk.count));
        DIOMP_TRY(local_.barrier().arrive_and_wait(call_.signature));
        take_blocks_of_others(chunk);
        return messages.finish();
    }

    two_level_call &call_;
    const group::node_layout &layout_;
    group::local_group &local_;
    std::size_t num_local_;
    std::size_t own_; ///< local index
    std::size_t chunk_bytes_;
    std::byte *out_ = nullptr;
    std::byte *in_ = nullptr;
};

} // namespace

bool has_one_member_each(const two_level_call &call) {
    return call.num_nodes() == call.num_members;
}

bool has_alike_nodes(const two_level_call &call) {
    auto const [min_count, max_count] = std::ranges::minmax(call.layout().sizes);
    return min_count == max_count && max_count >= 2 && call.layout().contiguous;
}

bool has_ranges(const two_level_call &call) { return call.layout().contiguous; }

status two_level_allgather_ranges(two_level_call &call) {
    node_ranges const ranges(call);
    DIOMP_TRY(call.run_intra_node(operation::gather, ranges.of(call.own_node(), 1).data(),
                                  call.src(), call.block_bytes(), 0));
    if (call.layout().is_leader()) {
        network_costs const costs = costs_or_usual(call.chosen.costs);
        bool const in_rounds =
            call.takes(algorithm::bruck, costs.doubling_exchange_us(call.num_nodes()) <
                                             costs.direct_exchange_us(call.num_nodes()));
        log_algorithm(in_rounds ? algorithm::bruck : algorithm::direct);
        DIOMP_TRY(in_rounds ? exchange_in_rounds(call, ranges) : exchange_directly(call, ranges));
    }
    return call.run_intra_node(operation::bcast, call.dst(), nullptr,
                               call.num_members * call.block_bytes(), 0);
}

std::size_t grouped_chunk_bytes(const two_level_call &call, std::size_t stage_bytes) {
    if (!has_alike_nodes(call)) {
        return 0;
    }
    std::size_t const m = call.num_local();
    std::size_t const fitting = stage_bytes / grouped_alltoall::stage_factor(call);
    std::size_t const chunk = std::min(fitting, call.block_bytes());
    if (chunk == 0) {
        return 0;
    }
    network_costs const costs = costs_or_usual(call.chosen.costs);
    std::size_t const chunks = (call.block_bytes() + chunk - 1) / chunk;
    std::size_t const nodes_handled = (call.num_nodes() + m - 1) / m;
    auto const num_chunks = static_cast<double>(chunks);
    auto const num_handled = static_cast<double>(nodes_handled);
    // Each byte is copied into a stage buffer, into a message, back and out; in pairs, into a
    // message.
    double const copy_us =
        static_cast<double>(call.num_members * call.block_bytes()) * costs.copy_us;
    double const by_nodes = num_chunks * (2 * costs.node_round_us(m) + costs.latency_us +
                                          num_handled * 2 * costs.overhead_us) +
                            4 * copy_us;
    double const in_pairs = static_cast<double>(call.num_members - m) * 2 * costs.overhead_us +
                            costs.latency_us + copy_us;
    return call.takes(algorithm::by_nodes, by_nodes < in_pairs) ? chunk : 0;
}

status two_level_grouped_alltoall(two_level_call &call, std::size_t chunk_bytes) {
    log_algorithm(algorithm::by_nodes);
    return grouped_alltoall(call, chunk_bytes).run();
}

bool forwards_blocks(const two_level_call &call) {
    constexpr std::size_t min_members = 16;
    constexpr std::size_t max_block_bytes = 256;
    return has_one_member_each(call) &&
           call.takes(algorithm::bruck,
                      call.num_members >= min_members && call.block_bytes() <= max_block_bytes);
}

status two_level_forwarded_alltoall(two_level_call &call) {
    log_algorithm(algorithm::bruck);
    std::size_t const n = call.num_members;
    chunking const chunks = chunk_blocks(call, 2 * n);
    std::byte *const blocks = call.internode.channel().scratch(2 * n * chunks.chunk);
    std::byte *const out = blocks + n * chunks.chunk;
    std::byte *const in = out + n / 2 * chunks.chunk;
    for (std::size_t i = 0; i < chunks.num_chunks(); ++i) {
        DIOMP_TRY(forward_blocks(call, chunks[i], blocks, out, in));
    }
    return {};
}

} // namespace diomp::coll
