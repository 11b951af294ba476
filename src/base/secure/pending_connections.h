// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Connections that have been accepted and have not proved who they are yet.
//
// They have a table of their own, so that unauthenticated connections cannot take the place of
// authenticated ones. When it is full the oldest connection goes, first of those that have sent
// nothing that was made with the secret: a genuine peer sends its first message at once, so that
// it stays ahead of any number of connections that only wait.
#pragma once

#include "base/rate_limiter.h"
#include "base/secure/handshake.h"
#include "base/unique_fd.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace diomp::secure {

struct pending_options {
    std::size_t most_silent = 64;    ///< connections whose first message has not come
    std::size_t most_plausible = 64; ///< whose first message was made with the secret
    std::chrono::milliseconds time_limit{10000};
    int reports_per_minute = 4;
};

/// Not thread-safe.
class pending_connections {
public:
    using clock = std::chrono::steady_clock;
    /// The responder's side for a new connection.
    using handshake_maker = std::function<handshake()>;
    using report_sink = std::function<void(const std::string &)>;

    struct proven_connection {
        unique_fd socket; ///< non-blocking
        session proven;
    };

    /// `listener` is non-blocking. `report` gets a limited number of sentences about connections
    /// that were refused.
    static result<pending_connections> create(unique_fd listener, handshake_maker make,
                                              report_sink report,
                                              const pending_options &options = {});

    /// Readable when advance() has something to do, also when a time limit is over. For epoll or
    /// poll; stays the same.
    [[nodiscard]] int fd() const { return epoll_.get(); }
    /// Accepts, goes on with handshakes, closes what has failed. Returns connections that are
    /// proven. Does not block; its work per call is bounded.
    [[nodiscard]] std::vector<proven_connection> advance();
    /// No connection is accepted from now on; the port is free. Pending ones go on.
    void stop_listening();
    /// Closes the oldest connection, for want of descriptors for proven ones. False: there is none.
    bool drop_oldest();
    [[nodiscard]] std::size_t size() const { return silent_.size() + plausible_.size(); }

private:
    struct entry {
        unique_fd socket;
        handshake exchange;
        clock::time_point accepted;
    };
    using table = std::map<std::uint64_t, entry>; ///< by the order in which they came
    enum class outcome : std::uint8_t { waits, over };

    pending_connections(unique_fd listener, handshake_maker make, report_sink report,
                        const pending_options &options);
    void accept_some();
    [[nodiscard]] unique_fd accept_one(bool &is_drained);
    void add(unique_fd socket);
    void advance_entry(std::uint64_t id);
    [[nodiscard]] outcome exchange_messages(entry &which);
    void make_room();
    void drop_late(clock::time_point now);
    void arm_timer();
    void report(const entry &about, const std::string &why);

    unique_fd listener_;
    handshake_maker make_;
    report_sink report_;
    pending_options options_;
    rate_limiter limiter_;
    unique_fd epoll_;
    unique_fd timer_;
    unique_fd spare_; ///< given up to accept and close a connection where descriptors are used up
    table silent_;
    table plausible_;
    std::uint64_t next_id_;
    clock::time_point armed_for_{};
    std::vector<proven_connection> proven_;
};

/// The numeric address of a connected socket's peer; "a local process" for a Unix socket.
[[nodiscard]] std::string peer_address(int socket);

} // namespace diomp::secure
