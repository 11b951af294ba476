// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sealed frames over one TCP connection, for the head and for agents, after its handshake.
#pragma once

#include "base/secure/frame_codec.h"
#include "base/secure/handshake.h"
#include "event_loop.h"

#include <memory>
#include <string>
#include <string_view>

namespace diomp::run {

class frame_link;

/// Longest frame that is accepted: a set-up with a large environment.
inline constexpr std::size_t max_frame_bytes = std::size_t{16} * 1024 * 1024;

class frame_events {
public:
    virtual ~frame_events() = default;
    /// May close the link, but not destroy it.
    virtual void on_frame(frame_link &from, std::string_view frame) = 0;
    /// The other end has gone. The link is closed already; it must not be destroyed in here.
    virtual void on_link_end(frame_link &from, const std::string &why) = 0;
};

class frame_link {
public:
    /// Silence of the other host's kernel for `timeout_s` ends the connection.
    static result<std::unique_ptr<frame_link>> create(event_loop &loop, frame_events &events,
                                                      unique_fd socket, secure::session proven,
                                                      double timeout_s);
    ~frame_link() { close(); }
    frame_link(const frame_link &) = delete;
    frame_link &operator=(const frame_link &) = delete;

    /// Sends in order, as fast as the other end takes it. Does not block.
    void send(std::string_view frame);
    /// No more will be sent; what is waiting goes out first.
    void finish_sending();
    void close();
    [[nodiscard]] bool is_open() const { return static_cast<bool>(socket_); }
    /// Nothing is waiting to be sent.
    [[nodiscard]] bool flushed() const { return sent_ == out_.size(); }

    int tag = -1; ///< the owner's

private:
    frame_link(event_loop &loop, frame_events &events, unique_fd socket, secure::session proven);
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
    std::size_t sent_ = 0; ///< bytes at the front of out_ that are gone
    bool finishing_ = false;
    bool waits_to_send_ = false;
};

} // namespace diomp::run
