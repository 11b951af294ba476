// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Handling of received frames.
#pragma once

#include "transport/tcp/acceptor.h"
#include "transport/tcp/frame_receiver.h"
#include "transport/tcp/peer.h"

namespace diomp::transport {
class arena;
class arrivals;
} // namespace diomp::transport

namespace diomp::transport::tcp {

class connection;

/// Handles the frames of all connections: transfers to and from this rank's segment, messages, and
/// replies.
class frame_dispatcher final : public frame_handler {
public:
    frame_dispatcher(world_rank own_rank, const arena &arena, arrivals &arrived,
                     acceptor &accepting);

private:
    std::byte *find_body_buffer(connection &conn, const frame &head,
                                std::span<const std::byte> front) override;
    std::byte *find_recv_buffer(connection &conn, const frame &head,
                                std::span<const std::byte> front);
    bool handle_frame(connection &conn, const frame &head, std::span<const std::byte> front,
                      const std::byte *body) override;
    bool handle_reply(connection &conn, peer &from, const frame &head);
    [[nodiscard]] bool is_in_segment(std::uint64_t address, std::size_t nbytes) const;

    world_rank own_rank_;
    std::uint64_t slot_begin_;
    std::size_t slot_bytes_;
    arrivals &arrived_;
    acceptor &acceptor_;
};

} // namespace diomp::transport::tcp
