// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/tcp/tcp.h"

#include "transport/common/network_base.h"
#include "transport/options.h"
#include "transport/tcp/connection.h"
#include "transport/tcp/iface.h"

#include <fmt/core.h>

namespace diomp::transport::tcp {
namespace {

/// Limit of copied data that waits to be sent to a peer; a put waits beyond it.
constexpr std::size_t max_backlog_bytes = std::size_t{4} << 20;

class tcp_network final : public network_base {
public:
    tcp_network(launch::launcher &launcher, const conduit_options &options, doorbell ring)
        : network_base(launcher, options, std::move(ring)) {
        caps_.name = "tcp";
        caps_.max_message_bytes = max_message_payload_bytes;
        caps_.max_am_long = max_am_long_payload_bytes;
    }
    ~tcp_network() override { stop_thread(); }
    tcp_network(const tcp_network &) = delete;
    tcp_network &operator=(const tcp_network &) = delete;

    status start(const arena &arena, const conduit_options &options);

    status put(world_rank rank, std::uint64_t remote_address, const void *source,
               std::size_t nbytes, completion &source_free) override;
    status get(world_rank rank, std::uint64_t remote_address, void *destination, std::size_t nbytes,
               completion &done) override;
    status flush(world_rank rank, completion &done) override;
    status flush_all(completion &done) override;
    bool try_send(world_rank rank, handler_id handler, std::span<const std::byte> payload) override;
    result<bool> send_long(world_rank rank, handler_id handler, std::span<const std::byte> payload,
                           std::span<const std::byte> data, completion &source_free) override;
    result<bool> put_with_message(world_rank rank, std::uint64_t remote_address,
                                  std::span<const std::byte> source, handler_id handler,
                                  std::span<const std::byte> payload,
                                  completion &source_free) override;
    void revoke_recv_buffer(const std::byte *buffer) override {
        iface_->revoke_recv_buffer(buffer);
    }
    int poll(message_handler sink) override { return dispatch(iface_->advance(), sink); }
    std::string describe_path(world_rank rank) const override;

private:
    /// A peer and the connection to it.
    struct active_connection {
        peer &to;
        connection &conn;
    };

    bool serve() override { return iface_->serve(); }
    bool arm() override { return iface_->connections().arm(); }
    void ping(network_peer &silent) override;
    std::vector<network_peer *> known_peers() const override {
        return pointers_to(iface_->all_peers());
    }
    std::string fail(network_peer &lost, const std::string &why) override;
    void note_handled(const message &each) override;
    status drain() override;

    result<active_connection> find_connection(world_rank rank);
    /// Sends queued data now; the network thread sends the rest if the socket is full.
    void transmit_now(connection &conn) {
        conn.transmit();
        if (conn.has_queued_data()) {
            wake();
        }
    }
    void request_flush(connection &conn, std::uint64_t number) {
        conn.send({.what = kind::flush, .number = number}, nullptr, 0, nullptr);
        transmit_now(conn);
    }

    std::unique_ptr<iface> iface_;
};

status tcp_network::start(const arena &arena, const conduit_options &options) {
    auto made = iface::create(launcher(), arena, options, arrived(),
                              [this](peer &lost, const std::string &why) { fail_peer(lost, why); });
    DIOMP_TRY(made);
    iface_ = made.take();
    return start_thread(iface_->connections().epoll_fd());
}

void tcp_network::ping(network_peer &silent) {
    if (connection *const conn = static_cast<peer &>(silent).active_connection(); conn != nullptr) {
        conn->send({.what = kind::ping}, nullptr, 0, nullptr);
        conn->transmit();
    }
}

std::string tcp_network::fail(network_peer &lost, const std::string &why) {
    std::string sentence = lost.fail(why);
    iface_->disconnect(static_cast<peer &>(lost), why);
    return sentence;
}

result<tcp_network::active_connection> tcp_network::find_connection(world_rank rank) {
    peer &to = iface_->peer_of(rank);
    connection *const conn = to.is_failed() ? nullptr : iface_->find_or_connect(to);
    if (conn == nullptr) {
        return to.lost_error().take_failure();
    }
    return active_connection{to, *conn};
}

status tcp_network::put(world_rank rank, std::uint64_t remote_address, const void *source,
                        std::size_t nbytes, completion &source_free) {
    auto found = find_connection(rank);
    DIOMP_TRY(found);
    auto const [to, conn] = found.value();
    bool const with_flush = nbytes > send_queue::max_copied_bytes && to.should_piggyback_flush();
    bool const is_copied = !with_flush && send_queue::is_copied(kind::put, nbytes);
    if (is_copied) {
        advance_until([&] { return conn.copied_bytes() <= max_backlog_bytes || to.is_failed(); },
                      [&] { return iface_->advance(); });
    }
    if (nbytes > 0) {
        frame const head{.what = kind::put, .nbytes = nbytes, .address = remote_address};
        std::uint64_t const flush_number = to.send_put(conn, head, source, source_free, with_flush);
        if (flush_number != 0) {
            to.note_flush_requested(flush_number);
        }
        // Small puts are coalesced until a flush, or until there are many.
        if (!is_copied && conn.has_queued_data()) {
            wake();
        }
    }
    return {};
}

status tcp_network::get(world_rank rank, std::uint64_t remote_address, void *destination,
                        std::size_t nbytes, completion &done) {
    auto found = find_connection(rank);
    DIOMP_TRY(found);
    if (nbytes > 0) {
        auto const [to, conn] = found.value();
        // The thread that handles the reply to an earlier get sends further queued ones.
        bool const is_first = to.num_gets() == 0;
        get_id const id = to.begin_get(destination, nbytes, done);
        conn.send({.what = kind::get,
                   .nbytes = nbytes,
                   .address = remote_address,
                   .number = to_number(id)},
                  nullptr, 0, nullptr);
        if (is_first) {
            transmit_now(conn);
        }
    }
    return {};
}

status tcp_network::flush(world_rank rank, completion &done) {
    peer *const known = iface_->find_peer(rank);
    if (known == nullptr) {
        return {};
    }
    if (known->is_failed()) {
        return known->lost_error();
    }
    known->drain_coalescers();
    if (std::uint64_t number = 0; known->begin_flush(done, number)) {
        request_flush(*known->active_connection(), number);
    }
    return {};
}

status tcp_network::flush_all(completion &done) {
    for (auto const &known : iface_->all_peers()) {
        known->drain_coalescers();
        if (std::uint64_t number = 0; known->begin_flush(done, number)) {
            request_flush(*known->active_connection(), number);
        }
    }
    return {};
}

bool tcp_network::try_send(world_rank rank, handler_id handler,
                           std::span<const std::byte> payload) {
    auto found = find_connection(rank);
    if (!found) {
        return true; // messages to failed peers are dropped
    }
    if (!found.value().to.take_credit(payload.size())) {
        return false;
    }
    found.value().conn.send({.what = kind::message, .handler = handler, .nbytes = payload.size()},
                            payload.data(), payload.size(), nullptr);
    if (found.value().to.may_transmit_immediately(iface_->round())) {
        transmit_now(found.value().conn);
    } else {
        wake();
    }
    return true;
}

result<bool> tcp_network::send_long(world_rank rank, handler_id handler,
                                    std::span<const std::byte> payload,
                                    std::span<const std::byte> data, completion &source_free) {
    if (payload.size() > max_am_long_header_bytes || data.size() > max_am_long_payload_bytes) {
        return false;
    }
    auto found = find_connection(rank);
    DIOMP_TRY(found);
    if (found.value().conn.copied_bytes() > max_backlog_bytes) {
        return false;
    }
    found.value().conn.send({.what = kind::am_long,
                             .handler = handler,
                             .head = static_cast<std::uint32_t>(payload.size()),
                             .nbytes = data.size()},
                            data.data(), data.size(), &source_free, payload);
    transmit_now(found.value().conn);
    return true;
}

result<bool> tcp_network::put_with_message(world_rank rank, std::uint64_t remote_address,
                                           std::span<const std::byte> source, handler_id handler,
                                           std::span<const std::byte> payload,
                                           completion &source_free) {
    auto found = find_connection(rank);
    DIOMP_TRY(found);
    auto const [to, conn] = found.value();
    if (conn.copied_bytes() > max_backlog_bytes || !to.take_credit(payload.size())) {
        return false;
    }
    conn.send({.what = kind::put, .nbytes = source.size(), .address = remote_address},
              source.data(), source.size(), &source_free);
    conn.send({.what = kind::message, .handler = handler, .nbytes = payload.size()}, payload.data(),
              payload.size(), nullptr);
    transmit_now(conn);
    return true;
}

void tcp_network::note_handled(const message &each) {
    peer &from = iface_->peer_of(each.source);
    if (from.note_handled(each.payload.size())) {
        from.active_connection()->send({.what = kind::handled, .number = from.take_handled_bytes()},
                                       nullptr, 0, nullptr);
    }
}

std::string tcp_network::describe_path(world_rank rank) const {
    peer const *const known = iface_->find_peer(rank);
    connection *const conn = known != nullptr ? known->active_connection() : nullptr;
    return conn != nullptr ? fmt::format("tcp ({})", conn->describe_path()) : "tcp";
}

status tcp_network::drain() {
    completion arrived;
    for (auto const &each : iface_->all_peers()) {
        connection const *const conn = each->active_connection();
        // Both sides have received everything before a connection is closed.
        bool const is_drained = conn != nullptr &&
                                (conn->current_state() == connection::state::ended ||
                                 conn->current_state() == connection::state::dormant) &&
                                !conn->has_queued_data() && !each->has_outstanding();
        if (conn != nullptr && !is_drained) {
            // Counted as an empty put: the flush is then acknowledged after all messages, too.
            each->num_puts().fetch_add(1);
        }
    }
    DIOMP_TRY(flush_all(arrived));
    advance_until([&] { return arrived.is_done(); }, [&] { return iface_->advance(); });
    iface_->begin_shutdown();
    return {};
}

} // namespace

result<std::unique_ptr<network>> create(launch::launcher &launcher, const arena &arena,
                                        const conduit_options &options, doorbell ring) {
    auto made = std::make_unique<tcp_network>(launcher, options, std::move(ring));
    DIOMP_TRY(made->start(arena, options));
    return std::unique_ptr<network>(std::move(made));
}

} // namespace diomp::transport::tcp
