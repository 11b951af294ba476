// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Connections that this process opens, until the peer is authenticated. The counterpart of
// pending_connections.h.
#pragma once

#include "base/secure/epoll.h"
#include "base/secure/handshake.h"
#include "base/unique_fd.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace diomp::secure {

/// Outcome of an attempt.
enum class attempt_outcome : std::uint8_t {
    proven,
    unreachable, ///< no process listens there, or there is no response in time
    /// the peer has closed the connection during the handshake, possibly because it had too
    /// many; the same address may be tried again
    closed,
    refused, ///< the peer is not authenticated, or has refused this process
};

struct attempt_result {
    std::uint64_t tag = 0;
    attempt_outcome how{};
    unique_fd socket;                   ///< set if proven: non-blocking
    std::optional<session_keys> proven; ///< set if proven
    std::string why;                    ///< reason, if not proven
};

/// Not thread-safe.
class opening_connections {
public:
    using clock = std::chrono::steady_clock;

    using outcome = attempt_outcome;
    using attempt_result = secure::attempt_result;

    static result<opening_connections> create();

    /// Descriptor that is readable when advance() has work, also when a time limit is over. For
    /// epoll or poll; never changes.
    [[nodiscard]] int fd() const { return epoll_.get(); }
    /// Adds a non-blocking socket that is being connected, and the initiator's side of its
    /// handshake. The caller chooses `tag`, which must not be in use. `time_limit`: of the attempt;
    /// it is extended by `handshake_limit` when the socket is connected.
    void add(std::uint64_t tag, unique_fd socket, handshake exchange, clock::duration time_limit,
             clock::duration handshake_limit = {});
    /// Closes the connection, unless the attempt has ended.
    void remove(std::uint64_t tag) { attempts_.erase(tag); }
    /// Continues the attempts; returns those that have ended. Does not block. At most one of them
    /// is proven: a caller that tries several addresses of one peer then removes the other attempts
    /// before they authenticate, so that the peer does not keep two connections.
    [[nodiscard]] std::vector<attempt_result> advance();
    [[nodiscard]] std::size_t size() const { return attempts_.size(); }

private:
    struct attempt {
        unique_fd socket;
        handshake exchange;
        clock::time_point end;
        clock::duration handshake_limit;
        bool is_connected = false;
    };

    opening_connections();
    void advance_attempt(std::uint64_t tag, attempt &which);
    [[nodiscard]] bool finish_connecting(std::uint64_t tag, attempt &which);
    [[nodiscard]] bool send_output(std::uint64_t tag, attempt &which);
    void end(std::uint64_t tag, outcome how, std::string why);
    void end_expired();
    void arm_timer();

    unique_fd epoll_;
    deadline_timer timer_;
    std::map<std::uint64_t, attempt> attempts_; ///< by tag
    std::vector<attempt_result> ended_;
};

} // namespace diomp::secure
