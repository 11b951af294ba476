// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The part of a call of moves.h that stays on one node: tables and streams through the stages.
#pragma once

#include "collective/moves.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace diomp::collective {

/// The part of a call that stays on one node.
class node_moves {
public:
    /// `ranks` of the group, ascending: those on the node.
    node_moves(const member_call &call, group::local_group &here, std::vector<std::uint32_t> ranks)
        : call_(call), here_(here), ranks_(std::move(ranks)), plan_(call),
          members_(members_of(call.who, ranks_)), same_for_all_(plan_.same_for_all()),
          num_columns_(same_for_all_ ? 1 : members_.size()) {}

    status run();

private:
    /// A block in a table: in the window, or from `begin` on in its rank's stream.
    struct entry {
        std::uint64_t address = 0; ///< 0: in the stream
        std::uint64_t begin = 0;
        std::uint64_t nbytes = 0;
    };
    /// What the ranks of a node tell with their tables.
    struct announcement {
        std::uint64_t stream_bytes = 0;
        std::uint64_t in_window = 0; ///< not 0: others will read blocks there
    };
    /// A block of another rank's stream, for this one.
    struct expected_block {
        std::size_t place; ///< of the sender's rank on the node
        entry at;
        std::byte *to;
    };

    static std::vector<std::size_t> members_of(const roles &who,
                                               const std::vector<std::uint32_t> &ranks);
    [[nodiscard]] std::size_t table_bytes() const {
        return call_.who.most_per_rank() * num_columns_ * sizeof(entry);
    }
    [[nodiscard]] std::size_t self_place() const { return here_.self().index(); }
    [[nodiscard]] std::byte *own_stage() const { return here_.next_stage(here_.stage_bytes()); }
    [[nodiscard]] const std::byte *stage_of(std::size_t place) const {
        return here_.stage_of(place, here_.stage_bytes());
    }
    /// Bytes of the stream that fit beside the table.
    [[nodiscard]] std::size_t first_room() const { return here_.stage_bytes() - table_bytes(); }
    [[nodiscard]] std::optional<std::span<const std::byte>>
    wanted_by_others(std::size_t place, std::size_t column) const;
    [[nodiscard]] bool wants_large_stages() const;
    /// Where others find a block: where it lies if that is in the window and it may stay there,
    /// else in the stream.
    entry announce(std::span<const std::byte> block, bool may_stay);
    void make_table(bool may_stay);
    void write_table() const;
    /// Of what an own member reads in others' tables.
    [[nodiscard]] std::size_t column_of(std::size_t member) const;
    void write_stream(std::size_t round) const;
    /// Bytes [begin, end) of the stream go with a round.
    [[nodiscard]] std::pair<std::size_t, std::size_t> window_of(std::size_t round) const;
    void read_tables();
    void read_stream(std::size_t round) const;
    void copy_in_window() const;
    void copy_own() const;
    void deliver(std::byte *to, const std::byte *from, std::size_t nbytes) const;

    const member_call &call_;
    group::local_group &here_;
    std::vector<std::uint32_t> ranks_;
    block_plan plan_;
    std::vector<std::size_t> members_; ///< on the node, by rank
    bool same_for_all_;                ///< a member's block: the table has one column
    std::size_t num_columns_;
    std::vector<entry> table_; ///< own, [place][column]
    std::vector<std::pair<std::span<const std::byte>, std::size_t>> stream_; ///< with its begin
    announcement own_;
    std::vector<expected_block> staged_;
    std::vector<expected_block> direct_;
};

} // namespace diomp::collective
