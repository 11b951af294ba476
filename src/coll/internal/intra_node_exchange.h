// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The intra-node part of a block exchange: tables and streams in the stage buffers.
#pragma once

#include "coll/internal/block_exchange.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace diomp::coll {

/// The intra-node part of one call.
class intra_node_exchange {
public:
    /// `ranks`: group ranks on the node, ascending.
    intra_node_exchange(const member_call &call, group::local_group &local_members,
                        std::vector<std::uint32_t> ranks)
        : call_(call), local_(local_members), ranks_(std::move(ranks)), plan_(call),
          members_(members_of(call.map, ranks_)), same_for_all_(plan_.same_for_all()) {}

    status run();

private:
    /// A block in a table: in the arena, or at `begin` in its rank's stream.
    struct entry {
        std::uint64_t address = 0; ///< in the arena; 0: in the stream
        std::uint64_t begin = 0;
        std::uint64_t nbytes = 0;
    };
    /// What each rank publishes with its table.
    struct table_header {
        std::uint64_t stream_bytes = 0;
        std::uint64_t in_arena = 0; ///< not 0: other ranks read blocks in the arena
    };
    /// A block that this rank receives from another rank.
    struct incoming_block {
        std::size_t index; ///< local index of the sender's rank
        entry at;
        std::byte *to;
    };

    static std::vector<std::size_t> members_of(const member_map &map,
                                               const std::vector<std::uint32_t> &ranks);
    [[nodiscard]] std::size_t num_columns() const { return same_for_all_ ? 1 : members_.size(); }
    /// Whole cache lines, so that the stream is aligned.
    [[nodiscard]] std::size_t table_bytes() const {
        std::size_t const nbytes = call_.map.max_per_rank() * num_columns() * sizeof(entry);
        return (nbytes + cache_line_bytes - 1) / cache_line_bytes * cache_line_bytes;
    }
    [[nodiscard]] std::size_t self_index() const { return local_.self().index(); }
    [[nodiscard]] std::byte *own_stage_buffer() const {
        return local_.next_stage_buffer(stage_.nbytes);
    }
    [[nodiscard]] const std::byte *stage_buffer_of(std::size_t index) const {
        return local_.stage_buffer_of(index, stage_.nbytes);
    }
    /// Bytes of the stream that fit after the table.
    [[nodiscard]] std::size_t first_chunk_bytes() const { return stage_.nbytes - table_bytes(); }
    /// The largest block of any member; nullopt: not known to all members.
    [[nodiscard]] std::optional<std::size_t> max_block_bytes() const;
    /// Bytes of a stage buffer that a round uses, equal on all members.
    [[nodiscard]] std::size_t choose_stage_bytes() const;
    [[nodiscard]] std::optional<std::span<const std::byte>>
    needed_by_others(std::size_t index, std::size_t column) const;
    [[nodiscard]] bool needs_large_stage_buffers() const;
    /// Adds a block: its address if it lies in the arena and has at least `min_direct_bytes`, else
    /// its position in the stream.
    entry add_table_entry(std::span<const std::byte> block, std::size_t min_direct_bytes);
    void make_table(std::size_t min_direct_bytes);
    void write_table() const;
    /// The table column that an own member reads.
    [[nodiscard]] std::size_t column_of(std::size_t member) const;
    void write_stream(std::size_t round) const;
    /// Bytes [begin, end) of the stream that go with a round.
    [[nodiscard]] std::pair<std::size_t, std::size_t> stream_range_of(std::size_t round) const;
    status exchange();
    void read_tables();
    void read_stream(std::size_t round) const;
    void copy_from_arena() const;
    void copy_own() const;
    void copy_to_user(std::byte *to, const std::byte *from, std::size_t nbytes) const;

    const member_call &call_;
    group::local_group &local_;
    std::vector<std::uint32_t> ranks_;
    block_plan plan_;
    std::vector<std::size_t> members_; ///< on the node, by rank
    bool same_for_all_;                ///< one block for all receivers: the table has one column
    std::vector<entry> table_;         ///< own table, [index][column]
    std::vector<std::pair<std::span<const std::byte>, std::size_t>>
        stream_; ///< block and its position in the stream
    table_header own_header_;
    struct {
        std::size_t nbytes = 0;     ///< of a round
        autotuner *tuner = nullptr; ///< how to write it; null: through the caches
    } stage_;
    std::vector<incoming_block> staged_blocks_;
    std::vector<incoming_block> arena_blocks_;
};

} // namespace diomp::coll
