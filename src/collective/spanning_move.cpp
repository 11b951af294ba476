// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls over several nodes that move data. Speakers collect or spread a node's blocks with the
// calls for one node, and exchange them with the other speakers. Blocks go in pieces, so that
// scratch memory stays small.
#include "collective/spanning.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <optional>
#include <vector>

namespace diomp::collective {
namespace {

using sync::operation;

/// Steps of a bcast's agreement with those whom its data comes from and goes to.
constexpr std::uint64_t step_ready = group::step_state + 512;
constexpr std::uint64_t step_refused = step_ready + 1;

/// A bcast between nodes and the one on the node alternate after so many bytes.
constexpr std::size_t bcast_piece_bytes = std::size_t{1} << 20;

/// Where each member's block lies in a buffer that is ordered by node, then by place.
std::vector<std::uint32_t> order_by_node(const group::node_layout &layout) {
    std::vector<std::uint32_t> order;
    for (std::size_t node = 0; node < layout.num_nodes(); ++node) {
        auto const members = layout.members_of(node);
        order.insert(order.end(), members.begin(), members.end());
    }
    return order;
}

/// Blocks of the nodes before.
std::size_t first_of(const group::node_layout &layout, std::size_t node) {
    std::size_t first = 0;
    for (std::size_t before = 0; before < node; ++before) {
        first += layout.sizes[before];
    }
    return first;
}

/// What a speaker holds of a gather or scatter: a piece of its node's blocks, the root's speaker of
/// all blocks, ordered by node.
struct speaker_blocks {
    explicit speaker_blocks(spanning_call &call)
        : layout(call.layout()), pieces(cut_blocks(call, call.num_members)) {
        if (call.is_root()) {
            order = order_by_node(layout);
        }
        if (call.across.speaks()) {
            std::size_t const num = call.is_root() ? call.num_members : call.num_here();
            all = call.across.scratch(num * pieces.chunk);
        }
    }

    /// At the root.
    [[nodiscard]] std::span<std::byte> of_node(std::size_t node, std::size_t piece_bytes) const {
        return {all + first_of(layout, node) * piece_bytes, layout.sizes[node] * piece_bytes};
    }

    const group::node_layout &layout;
    chunking pieces;                  ///< alike on all members
    std::vector<std::uint32_t> order; ///< at the root
    std::byte *all = nullptr;
};

// Letter by letter a node takes a turn for each that it sends. In a chain the last node has all
// after as many as the call has, whose pieces follow each other without a gap, and one for each
// node in between; in a binomial tree the root alone takes one for each letter and level.
bool is_chain_quicker(std::size_t num_nodes, std::size_t num_letters) {
    auto const levels = static_cast<std::size_t>(std::bit_width(num_nodes - 1));
    return num_letters + num_nodes - 2 < num_letters * levels;
}

/// From which member a bcast's letters come, and to whom they go on. None: it does not speak.
struct bcast_ways {
    explicit bcast_ways(const spanning_call &call) {
        if (!call.across.speaks()) {
            return;
        }
        std::size_t const num = call.num_nodes();
        std::size_t const base = call.layout().node(call.root());
        std::size_t const number = (call.own_node() + num - base) % num; // from the root's
        auto const speaker = [&](std::size_t of) {
            return call.across.speaker_of((of + base) % num);
        };
        std::size_t const letters = (call.block_bytes() - 1) / stream::usual_letter_bytes + 1;
        bool const is_chain = is_chain_quicker(num, letters);
        std::size_t const lowest = number == 0 ? std::bit_ceil(num) : number & (~number + 1);
        if (number != 0) {
            from = speaker(is_chain ? number - 1 : number - lowest);
        }
        if (is_chain && number + 1 < num) {
            to.push_back(speaker(number + 1));
        }
        for (std::size_t bit = is_chain ? 0 : lowest / 2; bit > 0; bit /= 2) {
            if (number + bit < num) {
                to.push_back(speaker(number + bit));
            }
        }
    }

    std::optional<std::size_t> from;
    std::vector<std::size_t> to;
};

/// A piece of a bcast on its way between nodes; when made, its letters are expected.
class bcast_piece {
public:
    using readiness = stream::readiness;

    bcast_piece(spanning_call &call, const bcast_ways &ways, range where, readiness how)
        : ways_(ways), data_(call.dst() + where.begin, where.count),
          letters_(call, how, letter_bytes(call, how)) {
        if (ways_.from) {
            letters_.expect(*ways_.from, data_);
        }
    }

    [[nodiscard]] std::span<std::byte> data() const { return data_; }

    /// Before all agree: false if nothing comes.
    bool hear_first() { return letters_.hear_first(*ways_.from, step_refused); }

    status await_all() { return letters_.await_all(); }

    /// Each letter goes on as soon as it is there.
    status run() {
        std::size_t const num = letters_.num_letters(data_.size());
        for (std::size_t letter = 0; letter < num; ++letter) {
            if (ways_.from) {
                DIOMP_TRY(letters_.await(letter));
            }
            for (std::size_t const member : ways_.to) {
                DIOMP_TRY(letters_.send_letter(member, data_, letter));
            }
        }
        return {};
    }

private:
    /// One is best between two members, where nobody passes it on.
    static std::size_t letter_bytes(const spanning_call &call, readiness how) {
        if (call.num_members > 2 || how == readiness::told) {
            return stream::usual_letter_bytes;
        }
        return std::max(call.across.most_whole_bytes(1 - call.self), stream::usual_letter_bytes);
    }

    const bcast_ways &ways_;
    std::span<std::byte> data_;
    stream letters_;
};

// Members look at those only whom the data comes from and goes to: who gets it tells that it
// expects it, and what it believes the call to be. So the root may be a call ahead of those at the
// other end of the tree. What is sent to a member that then finds one behind it to disagree still
// comes.
status meet_neighbours(spanning_call &call, const bcast_ways &ways, bcast_piece &all) {
    group::bridge &across = call.across;
    across.enter();
    if (!across.speaks()) {
        across.follow();
        return across.outcome();
    }
    across.collect();
    bool comes = false;
    if (ways.from) {
        across.tell(*ways.from, step_ready, {});
        comes = across.is_clean() && all.hear_first();
    }
    for (std::size_t const member : ways.to) {
        if (across.is_clean()) {
            across.hear(member, step_ready, {});
        }
    }
    if (!across.is_clean()) {
        for (std::size_t const member : ways.to) {
            across.tell(member, step_refused, {});
        }
    }
    across.announce();
    status outcome = across.outcome();
    if (!outcome && comes) {
        static_cast<void>(all.await_all()); // there is an error to tell already
    }
    return outcome;
}

} // namespace

// While one piece goes, the next one is expected already.
status spanning_bcast(spanning_call &call, bool tight) {
    chunking const pieces{call.block_bytes(), bcast_piece_bytes};
    bcast_ways const ways(call);
    std::deque<bcast_piece> under_way;
    under_way.emplace_back(call, ways, pieces[0], stream::readiness::agreed);
    DIOMP_TRY(tight || pieces.num_chunks() > 1 ? call.across.meet_begun()
                                               : meet_neighbours(call, ways, under_way.front()));
    for (std::size_t next = 1; !under_way.empty(); ++next) {
        if (next < pieces.num_chunks()) {
            under_way.emplace_back(call, ways, pieces[next], stream::readiness::told);
        }
        bcast_piece &current = under_way.front();
        DIOMP_TRY(current.run());
        std::span<std::byte> const data = current.data();
        DIOMP_TRY(call.run_near(operation::bcast, data.data(), nullptr, data.size(),
                                call.speaker_place()));
        under_way.pop_front();
    }
    return call.across.finish_sends();
}

// Each speaker collects the blocks of its node and sends them to the root.
status spanning_gather(spanning_call &call) {
    const group::bridge &across = call.across;
    speaker_blocks const blocks(call);
    for (std::size_t i = 0; i < blocks.pieces.num_chunks(); ++i) {
        range const piece = blocks.pieces[i];
        stream letters(call);
        for (std::size_t node = 0; call.is_root() && node < call.num_nodes(); ++node) {
            if (node != call.own_node()) {
                letters.expect(across.speaker_of(node), blocks.of_node(node, piece.count));
            }
        }
        std::byte *const near =
            call.is_root() ? blocks.of_node(call.own_node(), piece.count).data() : blocks.all;
        DIOMP_TRY(call.run_near(operation::gather, near, call.src() + piece.begin, piece.count,
                                call.speaker_place()));
        if (call.is_root()) {
            DIOMP_TRY(letters.await_all());
            for (std::size_t block = 0; block < blocks.order.size(); ++block) {
                std::memcpy(call.dst() + blocks.order[block] * call.block_bytes() + piece.begin,
                            blocks.all + block * piece.count, piece.count);
            }
        } else if (across.speaks() && call.own_node() != blocks.layout.node(call.root())) {
            DIOMP_TRY(letters.send(call.root(), {near, call.num_here() * piece.count}));
            DIOMP_TRY(letters.finish());
        }
    }
    return {};
}

// The root sends each speaker the blocks of its node.
status spanning_scatter(spanning_call &call) {
    const group::bridge &across = call.across;
    speaker_blocks const blocks(call);
    for (std::size_t i = 0; i < blocks.pieces.num_chunks(); ++i) {
        range const piece = blocks.pieces[i];
        stream letters(call);
        std::byte *near = blocks.all;
        if (call.is_root()) {
            for (std::size_t block = 0; block < blocks.order.size(); ++block) {
                std::memcpy(blocks.all + block * piece.count,
                            call.src() + blocks.order[block] * call.block_bytes() + piece.begin,
                            piece.count);
            }
            for (std::size_t node = 0; node < call.num_nodes(); ++node) {
                std::span<std::byte> const part = blocks.of_node(node, piece.count);
                if (node == call.own_node()) {
                    near = part.data();
                } else {
                    DIOMP_TRY(letters.send(across.speaker_of(node), part));
                }
            }
        } else if (across.speaks()) {
            letters.expect(call.root(), {blocks.all, call.num_here() * piece.count});
            DIOMP_TRY(letters.await_all());
        }
        DIOMP_TRY(call.run_near(operation::scatter, call.dst() + piece.begin, near, piece.count,
                                call.speaker_place()));
        DIOMP_TRY(letters.finish());
    }
    return {};
}

// Leaders collect, exchange with each other, and spread all blocks.
status allgather_piece(spanning_call &call, std::byte *to, const std::byte *from,
                       std::size_t piece_bytes, std::byte *aside) {
    group::bridge &across = call.across; // NOLINT(misc-const-correctness): it sends
    const group::node_layout &layout = call.layout();
    stream letters(call);
    auto const of_node = [&](std::size_t node) {
        return std::span(aside + first_of(layout, node) * piece_bytes,
                         layout.sizes[node] * piece_bytes);
    };
    std::span<std::byte> const near = of_node(call.own_node());
    if (across.is_leader()) {
        for (std::size_t node = 0; node < call.num_nodes(); ++node) {
            if (node != call.own_node()) {
                letters.expect(layout.leaders[node], of_node(node));
            }
        }
    }
    DIOMP_TRY(call.run_near(operation::gather, near.data(), from, piece_bytes, 0));
    if (across.is_leader()) {
        for (std::size_t i = 1; i < call.num_nodes(); ++i) {
            std::size_t const node = (call.own_node() + i) % call.num_nodes();
            DIOMP_TRY(letters.send(layout.leaders[node], near));
        }
        DIOMP_TRY(letters.await_all());
    }
    DIOMP_TRY(call.run_near(operation::bcast, aside, nullptr, call.num_members * piece_bytes, 0));
    DIOMP_TRY(letters.finish());
    std::vector<std::uint32_t> const order = order_by_node(layout);
    for (std::size_t block = 0; block < order.size(); ++block) {
        std::memcpy(to + order[block] * piece_bytes, aside + block * piece_bytes, piece_bytes);
    }
    return {};
}

status spanning_allgather(spanning_call &call) {
    std::size_t const n = call.num_members;
    chunking const pieces = cut_blocks(call, 2 * n);
    std::byte *const ordered = call.across.scratch(2 * n * pieces.chunk);
    for (std::size_t i = 0; i < pieces.num_chunks(); ++i) {
        range const piece = pieces[i];
        DIOMP_TRY(allgather_piece(call, ordered, call.src() + piece.begin, piece.count,
                                  ordered + n * pieces.chunk));
        for (std::size_t member = 0; member < n; ++member) {
            std::memcpy(call.dst() + member * call.block_bytes() + piece.begin,
                        ordered + member * piece.count, piece.count);
        }
    }
    return {};
}

// Between nodes every member sends every other its piece; on the node there is a call for that.
status spanning_alltoall(spanning_call &call) {
    group::bridge &across = call.across;
    const group::node_layout &layout = call.layout();
    std::size_t const n = call.num_members;
    std::size_t const block = call.block_bytes();
    std::size_t const num_here = call.num_here();
    // The same pieces on all nodes.
    std::size_t const num_blocks = n + 2 * std::size_t{std::ranges::max(layout.sizes)};
    chunking const pieces = cut_blocks(call, num_blocks);
    std::byte *const out = across.scratch(num_blocks * pieces.chunk);
    std::byte *const near_out = out + n * pieces.chunk;
    std::byte *const near_in = near_out + num_here * pieces.chunk;
    for (std::size_t i = 0; i < pieces.num_chunks(); ++i) {
        range const piece = pieces[i];
        stream letters(call);
        // In place, what arrives overwrites what has to go.
        for (std::size_t to = 0; to < n; ++to) {
            std::memcpy(out + to * piece.count, call.src() + to * block + piece.begin, piece.count);
        }
        for (std::size_t from = 0; from < n; ++from) {
            if (layout.node(from) != call.own_node()) {
                letters.expect(from, {call.dst() + from * block + piece.begin, piece.count});
            }
        }
        for (std::size_t step = 1; step < n; ++step) {
            std::size_t const to = (call.self + step) % n;
            if (layout.node(to) != call.own_node()) {
                DIOMP_TRY(letters.send(to, {out + to * piece.count, piece.count}));
            }
        }
        for (std::size_t place = 0; place < num_here; ++place) {
            std::memcpy(near_out + place * piece.count, out + layout.here[place] * piece.count,
                        piece.count);
        }
        DIOMP_TRY(call.run_near(operation::alltoall, near_in, near_out, piece.count));
        for (std::size_t place = 0; place < num_here; ++place) {
            std::memcpy(call.dst() + layout.here[place] * block + piece.begin,
                        near_in + place * piece.count, piece.count);
        }
        DIOMP_TRY(letters.await_all());
        DIOMP_TRY(letters.finish());
    }
    return {};
}

} // namespace diomp::collective
