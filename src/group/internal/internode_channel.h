// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tagged messages of the current call to members on other nodes.
//
// A message is sent in one of three ways. Eager: up to matcher::eager_bytes, at once. Long active
// message: larger, if the conduit has them and the receive was posted before the agreement of the
// call. Else the receiver sends RTR, and the sender puts the data where the RTR says, then FIN; or,
// if the receiver has no memory for that, sends it in fragments.
#pragma once

#include "base/result.h"
#include "group/internal/match_queue.h"
#include "group/internal/node_layout.h"
#include "transport/types.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace diomp::messaging {
class engine;
}

namespace diomp::group {

class current_call;
class deadlock_probe;
class matcher;
struct call_state;

/// One per member and group.
class internode_channel {
public:
    internode_channel(messaging::engine &engine, matcher &messages, std::uint64_t group_id,
                      match_queue &queue, current_call &call, deadlock_probe &probe);
    ~internode_channel();
    internode_channel(const internode_channel &) = delete;
    internode_channel &operator=(const internode_channel &) = delete;

    /// Larger messages are sent as one long active message to members that accept it
    /// (max_am_long_bytes), not in fragments.
    static constexpr std::size_t max_copied_bytes = 4096;

    /// Messages that begin with the call state; data of at most
    /// arrival_protocol::max_data_with_state_bytes. The send always happens; the receive only if
    /// nothing has failed before. The receive returns true if the data is complete and the calls
    /// match. Data of more than max_copied_bytes must stay unchanged until finish_sends.
    void send_with_state(std::size_t member, std::uint64_t step, std::span<const std::byte> data);
    bool receive_with_state(std::size_t member, std::uint64_t step, std::span<std::byte> data);
    /// receive_with_state in two parts, so that many receives can be posted at once. Both objects
    /// and `data` must live until `cancel`. The sender's state goes to `received`.
    void post_recv_with_state(recv_request &request, call_state &received, std::size_t member,
                              std::uint64_t step, std::span<std::byte> data);
    /// Waits for the message unless something has failed before, and merges its state. True if the
    /// calls agree and the message has its data. The call fails if the sender has sent none.
    bool finish_recv_with_state(recv_request &request, const call_state &received,
                                std::size_t member);
    /// Whether the message of a posted receive is there. Serves messages from other nodes, but does
    /// not wait for any.
    bool has_arrived(const recv_request &request);
    /// How the sender of a large message learns that the receive is posted (RTR, ready to receive):
    /// announced by a control message of the receiver, or implied, because the receive is posted
    /// before the agreement of the call. Both sides pass the same mode.
    enum class rtr_mode : std::uint8_t { announced, implied };
    /// Messages without a state header, allowed only after agreement. Post the receive before
    /// sending anything that the peer's message may depend on. Large messages may still be in
    /// flight on return; `data` must stay unchanged until finish_sends.
    status send(std::size_t member, std::uint64_t step, std::span<const std::byte> data,
                rtr_mode rtr = rtr_mode::announced);
    /// Waits until all sends are complete. Returns the first failure since the last call.
    status finish_sends();
    /// finish_sends for messages with state: a failure becomes the failure of the call.
    void finish_sends_or_fail_call();
    void post_recv(recv_request &request, std::size_t member, std::uint64_t step,
                   std::span<std::byte> data, rtr_mode rtr = rtr_mode::announced);
    status wait_received(recv_request &request);
    /// Receives the first message of a call without agreement. A sender that refuses to send it
    /// sends its state with the step `refusal` instead. True if the message has arrived.
    bool receive_unless_refused(recv_request &request, std::size_t member, std::uint64_t refusal);
    /// Cancels a posted receive, complete or not.
    void cancel(recv_request &request);
    /// Messages up to this size go to this member as one long active message if the receive was
    /// posted before the agreement; equal on both sides. 0: unknown.
    [[nodiscard]] std::size_t max_am_long_bytes(std::size_t member) const;
    /// Scratch memory for one call, aligned to a cache line. The next request invalidates it.
    std::byte *scratch(std::size_t nbytes);

private:
    /// A large message in flight.
    struct outgoing_message {
        world_rank to;
        message_tag tag;
        bool implies_fin = false; ///< the message itself completes the receive, no FIN follows
        transport::completion done;
        std::vector<std::vector<std::byte>> kept_scratch; ///< scratch memory of failed calls
    };

    [[nodiscard]] bool fits_am_long(world_rank peer, std::size_t nbytes) const;
    /// The message goes as one long active message; the receiver sends no RTR.
    [[nodiscard]] bool uses_am_long(world_rank peer, std::size_t nbytes, rtr_mode rtr) const {
        return rtr == rtr_mode::implied && fits_am_long(peer, nbytes);
    }
    status send_am_long(world_rank to, message_tag tag, std::span<const std::byte> data);
    status send_after_rtr(world_rank to, message_tag tag, std::span<const std::byte> data);
    void progress_sends();

    messaging::engine &engine_;
    matcher &matcher_;
    std::uint64_t group_id_;
    match_queue &queue_;
    const node_layout &layout_;
    current_call &call_;
    deadlock_probe &probe_;
    std::vector<std::byte> scratch_;
    /// The conduit uses these completions until the messages are sent, even if the call fails.
    std::unique_ptr<std::deque<outgoing_message>> outgoing_;
    std::optional<error> send_failure_; ///< the first failure since the last finish_sends
};

} // namespace diomp::group
