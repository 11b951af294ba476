// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The unmatched messages and posted receives of one group, and what its member reports about calls.
#pragma once

#include "base/ids.h"
#include "group/internal/call_state.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace diomp::group {

/// Number of a call on a group, and a step within it.
struct message_tag {
    std::uint64_t call = 0;
    std::uint64_t step = 0;
    friend auto operator<=>(const message_tag &, const message_tag &) = default;
};

/// Steps of a call. Messages with a step below step_payloads begin with a call_state.
enum message_step : std::uint64_t {
    step_state = 0, ///< + number of the exchange round
    step_payloads = 1024,
    step_list = 2048, ///< member list of a group (merge)
    step_data = 4096, ///< and above
};

/// A posted receive. The first bytes of the message go to `head`, the rest to `body`; excess bytes
/// are dropped.
struct recv_request {
    world_rank from;
    message_tag tag;
    std::span<std::byte> head;
    std::span<std::byte> body;
    std::size_t total_bytes = 0; ///< of the message; set before done
    /// Offset of the rndv buffer in the own slot, plus one; 0: data goes directly to `body`.
    std::uint64_t rndv_buffer = 0;
    std::atomic<bool> done{false};

    [[nodiscard]] bool is_done() const { return done.load(std::memory_order_acquire); }
};

/// A member's report about a call that it has made.
struct call_report {
    call_state state;
    std::int32_t awaited = -1; ///< world rank that it waits for in the call; -1: none
    std::int32_t unused = 0;
};

/// Thread-safe.
class match_queue {
public:
    /// Largest unexpected message that is kept; larger ones are dropped, since only a cancelled
    /// receive leaves them unexpected. More than matcher::eager_bytes, because messages with a head
    /// need no RTR; only few of these are in flight.
    static constexpr std::size_t max_unexpected_bytes = std::size_t{72} << 10;

    /// Starts a call with its number and this rank's state. Messages of earlier calls are dropped.
    void begin_call(std::uint64_t call, const call_state &own);
    /// Updates the call history entry of the current call.
    void update(const call_state &state, std::int32_t awaited);
    /// The newest report about the current call that has not been taken yet.
    std::optional<call_report> take_report();
    /// Own and received state of an earlier call whose message did not match this rank's call.
    std::optional<std::pair<call_state, call_state>> take_late_mismatch();

    /// Adds a receive, or completes it if its message is there. True if it is complete; then it may
    /// be destroyed.
    bool post(recv_request &request);
    /// Removes a posted receive. True if the conduit may still write into its buffer.
    bool remove(const recv_request &request);
    /// Takes the RTR of a large message: the address to put it to; 0: send it in fragments.
    /// nullopt: not received yet. Once per message.
    std::optional<std::uint64_t> take_rtr(world_rank of, message_tag tag);

    // For the handlers of incoming messages, which hold the lock, so that neither the queue nor a
    // posted receive ends meanwhile.

    [[nodiscard]] std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
    /// Bytes [offset, ...) of a message of `total_bytes`.
    void add_fragment(world_rank from, message_tag tag, std::size_t total_bytes, std::size_t offset,
                      std::span<const std::byte> bytes);
    /// A whole message. Returns the rndv buffer that its receive does not need any more; 0: none.
    std::uint64_t add_long(world_rank from, message_tag tag, std::span<const std::byte> head,
                           std::span<const std::byte> body);
    /// Buffer of the posted receive for a message with these sizes, which the conduit may write
    /// until `remove`; null: none.
    std::byte *recv_buffer_for(world_rank from, message_tag tag, std::size_t head_bytes,
                               std::size_t body_bytes);
    /// The message has been put into the buffer of its receive.
    void add_fin(world_rank from, message_tag tag);
    void add_rtr(world_rank from, message_tag tag, std::uint64_t address);
    /// This member's report about one of its last calls.
    [[nodiscard]] std::optional<call_report> report_of(std::uint64_t call) const;
    /// Another member's report; dropped unless it is about the current call.
    void add_report(std::uint64_t call, const call_report &report);

private:
    static constexpr std::size_t history_length = 64;

    struct tagged_message {
        recv_request *posted_recv = nullptr;
        std::vector<std::byte> unexpected_data; ///< received before the receive was posted
        bool started = false;                   ///< a fragment has arrived
        std::size_t total_bytes = 0;
        std::size_t arrived_bytes = 0;
        bool is_zero_copy = false; ///< the conduit writes into the posted buffer
        [[nodiscard]] bool is_complete() const { return started && arrived_bytes == total_bytes; }
    };
    struct history_entry {
        std::uint64_t call = 0;
        call_report report;
    };
    using match_key = std::pair<message_tag, world_rank>;

    void check_late_message(const message_tag &tag, std::span<const std::byte> head);

    std::mutex mutex_; ///< leaf lock; protects all members
    std::uint64_t call_ = 0;
    std::map<match_key, tagged_message> messages_;
    /// RTRs received: the message, and the address that it can be put to, or 0.
    std::vector<std::pair<match_key, std::uint64_t>> rtrs_;
    std::array<history_entry, history_length> history_;
    std::optional<call_report> report_;
    std::atomic<bool> has_report_{false};
    std::optional<std::pair<call_state, call_state>> late_mismatch_;
    std::atomic<bool> has_late_mismatch_{false};
};

} // namespace diomp::group
