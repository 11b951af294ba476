// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A queue of GPI-2. It tells only how many of its operations are over, not which. So a lane serves
// one peer at a time, towards which operations of a kind are over in the order of their start; what
// is read behind writes (markers) is known by its word instead.
#pragma once

#include "conduit/conduit.h"
#include "conduit/gaspi/memory.h"

#include <deque>

namespace diomp::conduit::gaspi {

class peer;

/// Puts and gets have lanes of their own since they overtake each other, messages since they are
/// not to wait for large transfers of others.
enum class lane_kind : std::uint8_t { put, get, message };
constexpr std::size_t num_lane_kinds = 3;

/// What follows when an operation is over.
struct operation {
    enum class what : std::uint8_t { nothing, put, get } kind = what::nothing;
    std::uint32_t nbytes = 0;
    completion *done = nullptr;
    std::byte *block = nullptr; ///< to be given back
    void *copy_to = nullptr;    ///< of a get: from the block
};

/// One thread at a time.
class lane {
public:
    explicit lane(std::uint8_t queue, lane_kind kind) : kind(kind), queue_(queue) {}

    enum class outcome : std::uint8_t { started, full, failed };
    outcome write(world_rank to, place from, segment remote, std::uint64_t offset,
                  const operation &started);
    outcome read(world_rank from, place to, segment remote, std::uint64_t offset,
                 const operation &started);
    /// A write, and the notification `id` of the remote segment behind it.
    outcome write_and_notify(world_rank to, place from, segment remote, std::uint64_t offset,
                             std::size_t nbytes, std::uint32_t id, std::uint32_t value);
    outcome notify(world_rank to, segment remote, std::uint32_t id, std::uint32_t value);

    /// Asks GPI-2 how many operations are over. False: one has failed.
    bool look();
    /// How many operations at the front are over since the last look.
    [[nodiscard]] bool is_front_over() const { return under_way.size() > num_left_; }
    [[nodiscard]] bool is_idle() const { return under_way.empty(); }
    [[nodiscard]] bool has_room() const { return under_way.size() < most_under_way; }

    lane_kind const kind;
    peer *tenant = nullptr;
    bool is_lost = false; ///< GPI-2's count is wrong since a peer was lost: never used again
    std::deque<operation> under_way;

private:
    /// Fewer than queue_entries, so that GPI-2 never says that it is full.
    static constexpr std::size_t most_under_way = 512;

    outcome note(int code, const operation &started);

    std::uint8_t queue_;
    std::size_t num_left_ = 0; ///< at the last look, and what was started since
};

} // namespace diomp::conduit::gaspi
