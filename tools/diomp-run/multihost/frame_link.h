// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sealed frames over a TCP connection between the head and an agent, after the handshake.
#pragma once

#include "base/secure/frame_codec.h"
#include "base/secure/handshake.h"
#include "core/event_loop.h"

#include <memory>
#include <string>
#include <string_view>

namespace diomp::run {

class frame_link;

/// Longest accepted frame: `setup` with a large environment.
inline constexpr std::size_t max_frame_bytes = std::size_t{16} * 1024 * 1024;

class frame_events {
public:
    virtual ~frame_events() = default;
    /// Handles a frame. May close the link, but not destroy it.
    virtual void on_frame(frame_link &from, std::string_view frame) = 0;
    /// Called after the peer has disconnected. The link is closed already; the callee must not
    /// destroy it.
    virtual void on_disconnect(frame_link &from, const std::string &why) = 0;
};

class frame_link {
public:
    /// The connection fails if the other host's kernel does not respond for `timeout_s`.
    static result<std::unique_ptr<frame_link>> create(event_loop &loop, frame_events &events,
                                                      unique_fd socket, secure::session_keys proven,
                                                      double timeout_s);
    ~frame_link() { close(); }
    frame_link(const frame_link &) = delete;
    frame_link &operator=(const frame_link &) = delete;

    /// Queues a frame; frames are sent in order. Does not block.
    void send(std::string_view frame);
    /// Shuts the sending direction down after the queued frames are sent. Does not block.
    void finish_sending();
    void close();
    [[nodiscard]] bool is_open() const { return static_cast<bool>(socket_); }
    /// Returns whether all frames have been sent.
    [[nodiscard]] bool flushed() const { return sent_ == out_.size(); }

    int tag = -1; ///< for use by the owner

private:
    frame_link(event_loop &loop, frame_events &events, unique_fd socket,
               secure::session_keys proven);
    void receive();
    void dispatch();
    void send_some();
    void fail(const std::string &why);

    event_loop &loop_;
    frame_events &events_;
    unique_fd socket_;
    event_loop::token token_ = event_loop::token::none;
    secure::frame_encoder encoder_;
    secure::frame_decoder decoder_;
    std::string out_;
    std::size_t sent_ = 0; ///< bytes at the front of out_ that are sent
    bool finishing_ = false;
    bool send_blocked_ = false;
};

} // namespace diomp::run
