// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Connections that this process opens, until the other end has proved who it is. The counterpart of
// pending_connections.h.
#pragma once

#include "base/secure/handshake.h"
#include "base/unique_fd.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace diomp::secure {

/// Not thread-safe.
class opening_connections {
public:
    using clock = std::chrono::steady_clock;

    /// How an attempt ended.
    enum class outcome : std::uint8_t {
        proven,
        unreachable, ///< nothing listens there, or there is no answer in time
        closed,      ///< the other end has closed the connection during the handshake; it may have
                     ///< had too many, so that the same address may be tried again
        refused,     ///< it did not prove who it is, or has refused this process
    };
    struct result_of_attempt {
        std::uint64_t tag = 0;
        outcome how{};
        unique_fd socket;              ///< proven: non-blocking
        std::optional<session> proven; ///< proven
        std::string why;               ///< otherwise
    };

    static result<opening_connections> create();

    /// Readable when advance() has something to do, also when a time limit is over. For epoll or
    /// poll; stays the same.
    [[nodiscard]] int fd() const { return epoll_.get(); }
    /// A non-blocking socket that is being connected, and the initiator's side of its handshake.
    /// `tag` is the caller's, and not in use.
    void add(std::uint64_t tag, unique_fd socket, handshake exchange, clock::duration time_limit);
    /// Closes the connection, if the attempt has not ended.
    void remove(std::uint64_t tag) { attempts_.erase(tag); }
    /// Goes on with the attempts; returns those that have ended. Does not block. At most one of
    /// them is proven: a caller that tries several addresses of one peer then removes the others
    /// before they have proved anything, so that the peer does not take two connections for good.
    [[nodiscard]] std::vector<result_of_attempt> advance();
    [[nodiscard]] std::size_t size() const { return attempts_.size(); }

private:
    struct attempt {
        unique_fd socket;
        handshake exchange;
        clock::time_point end;
        bool is_connected = false;
    };

    opening_connections();
    void advance_attempt(std::uint64_t tag, attempt &which);
    [[nodiscard]] bool finish_connecting(std::uint64_t tag, attempt &which);
    [[nodiscard]] bool send_output(std::uint64_t tag, attempt &which);
    void end(std::uint64_t tag, outcome how, std::string why);
    void end_late();
    void arm_timer();

    unique_fd epoll_;
    unique_fd timer_;
    std::map<std::uint64_t, attempt> attempts_; ///< by tag
    std::vector<result_of_attempt> ended_;
};

} // namespace diomp::secure
