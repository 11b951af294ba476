// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A queue of GPI-2. GPI-2 reports how many of its operations are complete, not which. A queue
// therefore serves one peer at a time: towards one peer, operations of one kind complete in the
// order of their start. The completion of a marker (a read after writes) shows in its word instead.
#pragma once

#include "transport/gaspi/memory.h"
#include "transport/types.h"

#include <deque>
#include <optional>

namespace diomp::transport::gaspi {

class peer;

/// Puts and gets have separate queues since they overtake each other. Messages have their own so
/// that they do not wait for large transfers to other peers.
enum class queue_kind : std::uint8_t { put, get, message };
constexpr std::size_t num_queue_kinds = 3;

/// An operation of a queue, and the actions on its completion.
struct operation {
    enum class what : std::uint8_t { nothing, put, get } kind = what::nothing;
    std::uint32_t nbytes = 0;
    completion *done = nullptr;
    std::byte *block = nullptr; ///< staging block to release, or nullptr
    void *copy_to = nullptr;    ///< a get's destination of the staged bytes
};

/// One thread at a time.
class gaspi_queue {
public:
    explicit gaspi_queue(std::uint8_t queue, queue_kind kind) : kind(kind), queue_(queue) {}

    enum class outcome : std::uint8_t { started, full, failed };
    outcome write(world_rank to, location from, segment remote, std::uint64_t offset,
                  const operation &started);
    outcome read(world_rank from, location to, segment remote, std::uint64_t offset,
                 const operation &started);
    /// A write, followed by the notification `id` of the remote segment.
    outcome write_and_notify(world_rank to, location from, segment remote, std::uint64_t offset,
                             std::size_t nbytes, std::uint32_t id, std::uint32_t value);
    outcome notify(world_rank to, segment remote, std::uint32_t id, std::uint32_t value);

    /// Reads from GPI-2 how many operations are complete. False: one has failed.
    bool poll_completions();
    /// Whether the oldest operation was complete at the last poll_completions().
    [[nodiscard]] bool is_front_complete() const { return outstanding.size() > num_pending_; }
    [[nodiscard]] bool is_idle() const { return outstanding.empty(); }
    [[nodiscard]] bool has_space() const { return outstanding.size() < max_outstanding; }

    queue_kind const kind;
    peer *assigned_peer = nullptr;
    bool is_lost = false; ///< a lost peer made GPI-2's count wrong; the queue is not used again
    std::deque<operation> outstanding;

private:
    /// Fewer than queue_entries, so that GPI-2 never reports a full queue.
    static constexpr std::size_t max_outstanding = 512;

    outcome track(int code, const operation &started);

    std::uint8_t queue_;
    std::size_t num_pending_ = 0; ///< at the last poll_completions(), plus operations started since
};

/// The first notification of the work segment in [begin, begin + count) that has a value.
[[nodiscard]] std::optional<std::uint32_t> find_notification(std::uint32_t begin,
                                                             std::uint32_t count);
/// Takes the notification's value since the last call; 0: none.
std::uint32_t take_notification(std::uint32_t id);

} // namespace diomp::transport::gaspi
