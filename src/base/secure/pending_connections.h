// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Connections that have been accepted and are not authenticated yet.
//
// They have a table of their own, so that unauthenticated connections cannot displace authenticated
// ones. When it is full, the oldest connection is closed, first among those that have sent nothing
// sealed with the secret: a genuine peer sends its first message at once, so that any number of
// idle connections does not displace it.
#pragma once

#include "base/rate_limiter.h"
#include "base/secure/epoll.h"
#include "base/secure/handshake.h"
#include "base/unique_fd.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace diomp::secure {

struct pending_options {
    std::size_t max_silent = 64;    ///< connections without a first message
    std::size_t max_plausible = 64; ///< connections whose first message was sealed with the secret
    std::chrono::milliseconds time_limit{10000};
    int reports_per_minute = 4;
};

/// Sentences about refused connections, at a limited rate.
class refusal_reports {
public:
    using sink = std::function<void(const std::string &)>;

    refusal_reports(sink report, int per_minute)
        : report_(std::move(report)), limiter_(per_minute, std::chrono::minutes(1)) {}
    void add(const std::string &text);
    /// Adds the socket's peer, and the number of sentences that the limit has suppressed.
    void add(int socket, const std::string &why);

private:
    sink report_;
    rate_limiter limiter_;
};

struct proven_connection {
    unique_fd socket; ///< non-blocking
    session_keys proven;
};

/// Not thread-safe.
class pending_connections {
public:
    using clock = std::chrono::steady_clock;
    /// Creates the responder's side of a new connection's handshake.
    using handshake_maker = std::function<handshake()>;

    using proven_connection = secure::proven_connection;

    /// `listener` is non-blocking. `report` is called with a limited number of sentences about
    /// refused connections.
    static result<pending_connections> create(unique_fd listener, handshake_maker make,
                                              refusal_reports::sink report,
                                              const pending_options &options = {});

    /// Descriptor that is readable when advance() has work, also when a time limit is over. For
    /// epoll or poll; never changes.
    [[nodiscard]] int fd() const { return epoll_.get(); }
    /// Accepts connections, continues handshakes, closes failed ones. Returns authenticated
    /// connections. Does not block; its work per call is bounded.
    [[nodiscard]] std::vector<proven_connection> advance();
    /// Stops accepting connections and frees the port. Pending ones continue.
    void stop_listening();
    /// Closes the oldest connection, to free a descriptor for authenticated ones. False: there is
    /// none.
    bool close_oldest();
    [[nodiscard]] std::size_t size() const { return silent_.size() + plausible_.size(); }

private:
    struct entry {
        unique_fd socket;
        handshake exchange;
        clock::time_point accepted;
    };
    using table = std::map<std::uint64_t, entry>; ///< in the order of arrival
    enum class outcome : std::uint8_t { waits, over };

    pending_connections(unique_fd listener, handshake_maker make, refusal_reports::sink report,
                        const pending_options &options);
    void accept_some();
    [[nodiscard]] unique_fd accept_one(bool &is_queue_empty);
    void add(unique_fd socket);
    void advance_entry(std::uint64_t id);
    [[nodiscard]] outcome exchange_messages(entry &which);
    void evict_oldest();
    void close_expired(clock::time_point now);
    void arm_timer();

    unique_fd listener_;
    handshake_maker make_;
    pending_options options_;
    refusal_reports reports_;
    unique_fd epoll_;
    deadline_timer timer_;
    /// closed in order to accept and close a connection when descriptors are used up
    unique_fd spare_;
    table silent_;
    table plausible_;
    std::uint64_t next_id_;
    std::vector<proven_connection> proven_;
};

/// The numeric address of a connected socket's peer; "a local process" for a Unix socket.
[[nodiscard]] std::string peer_address(int socket);

} // namespace diomp::secure
