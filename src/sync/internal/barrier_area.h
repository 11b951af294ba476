// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The shared memory of a node_barrier: what a member writes, and where the others find it.
#pragma once

#include "base/cpu.h"
#include "base/ids.h"
#include "base/result.h"
#include "sync/call_signature.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace diomp::sync {

/// Flag slots per member.
inline constexpr std::size_t num_flag_slots = 128;

/// Bit reversal of the index: no stride that a hardware prefetcher recognises.
inline constexpr auto slot_positions = [] {
    std::array<std::uint8_t, num_flag_slots> positions{};
    for (std::size_t i = 0; i < positions.size(); ++i) {
        for (std::size_t bit = 1; bit < positions.size(); bit *= 2) {
            positions[i] = static_cast<std::uint8_t>(positions[i] * 2 + ((i & bit) != 0 ? 1 : 0));
        }
    }
    return positions;
}();

/// The cache lines of one member, zeroed before its first round. The owner writes them, all members
/// read them.
struct barrier_area {
    static constexpr std::size_t max_inline_bytes = 256;

    struct alignas(cache_line_bytes) flag_slot {
        std::atomic<std::uint64_t> epoch;
        call_signature call;
        round_payload payload;
    };
    static_assert(sizeof(flag_slot) == cache_line_bytes);
    /// Slot of a short_arrive: the tag identifies the round and the call.
    struct short_slot {
        std::atomic<std::uint64_t> tag;
        std::uint64_t word;
    };
    static constexpr std::size_t short_slots_per_line = cache_line_bytes / sizeof(short_slot);
    struct alignas(cache_line_bytes) round_result {
        std::atomic<std::uint64_t> epoch;
        std::uint64_t differing; ///< member whose call differs from member 0's; 0: none
    };

    flag_slot flag_slots[num_flag_slots];
    /// See node_barrier: the round from which the owner goes on after it has given up a call, and
    /// the latest of all members', who write it.
    alignas(cache_line_bytes) std::atomic<std::uint64_t> restart;
    std::atomic<int> restart_code; ///< why: OMPX_ERR_TIMEOUT or OMPX_ERR_PEER
    alignas(cache_line_bytes) std::atomic<std::uint64_t> latest_restart;
    round_result results[2]; ///< of full rounds, by member 0, in large groups
    short_slot short_slots[num_flag_slots];
    std::byte inline_data[num_flag_slots][max_inline_bytes];
    /// Digests of operation and root of all calls up to the call of the flag slot.
    std::atomic<std::uint64_t> digests[num_flag_slots];

    [[nodiscard]] flag_slot &flag_slot_of(std::uint64_t epoch) {
        return flag_slots[slot_positions[epoch % num_flag_slots]];
    }
    /// The short slots of a cache line are consecutive, the lines are not.
    [[nodiscard]] short_slot &short_slot_of(std::uint64_t epoch) {
        // The low bits of the reversed index select within the line: no part of the line is lost.
        std::uint64_t const line = epoch / short_slots_per_line;
        return short_slots[slot_positions[line * short_slots_per_line % num_flag_slots] *
                               short_slots_per_line +
                           epoch % short_slots_per_line];
    }
    [[nodiscard]] std::byte *inline_data_of(std::uint64_t epoch) {
        return inline_data[epoch % num_flag_slots];
    }
    [[nodiscard]] std::atomic<std::uint64_t> &digest_of(std::uint64_t epoch) {
        return digests[epoch % num_flag_slots];
    }
    /// Whether the owner has arrived in a round, at most num_flag_slots before its last one.
    [[nodiscard]] bool has_arrived(std::uint64_t epoch) {
        return flag_slot_of(epoch).epoch.load(std::memory_order_acquire) >= epoch;
    }
    /// The other members' caches have the lines of this round, which they read a ring ago. A store
    /// gets them back while the round before lasts; a prefetch for writing takes longer.
    void touch(std::uint64_t epoch, std::size_t num_inline_bytes) {
        auto const touch = [](void *word) { *static_cast<volatile std::uint64_t *>(word) = 0; };
        touch(&flag_slot_of(epoch).payload.back());
        for (std::size_t at = 0; at < num_inline_bytes; at += cache_line_bytes) {
            touch(inline_data_of(epoch) + at);
        }
    }
};

/// The areas of all members, as one of them sees them.
class barrier_areas {
public:
    /// areas and members: by index; `self` is the caller's.
    barrier_areas(std::span<std::byte *const> areas, std::span<const world_rank> members,
                  std::size_t self);

    [[nodiscard]] std::size_t size() const { return areas_.size(); }
    /// Few enough members that each polls all others.
    [[nodiscard]] bool is_flat() const { return size() <= flat_limit; }
    [[nodiscard]] std::size_t self() const { return self_; }
    [[nodiscard]] const std::vector<world_rank> &members() const { return members_; }
    [[nodiscard]] barrier_area &operator[](std::size_t member) const { return *areas_[member]; }
    [[nodiscard]] barrier_area &own() const { return *areas_[self_]; }

    /// OMPX_ERR_MISMATCH: the calls of two members in a round differ.
    [[nodiscard]] error mismatch(std::size_t one, std::size_t other, std::uint64_t epoch) const;
    /// "waiting for ranks 1, 3 in ompx_barrier()".
    [[nodiscard]] std::string describe_missing(std::uint64_t epoch) const;

private:
    static constexpr std::size_t flat_limit = 16;

    std::vector<barrier_area *> areas_;
    std::vector<world_rank> members_;
    std::size_t self_;
};

} // namespace diomp::sync
