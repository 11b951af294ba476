// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/tcp/tcp.h"

#include "conduit/network_frame.h"
#include "conduit/tcp/traffic.h"

#include <fmt/core.h>

namespace diomp::conduit::tcp {
namespace {

/// Copies of what a peer has no room for; a put waits then.
constexpr std::size_t most_copies = std::size_t{4} << 20;

class tcp_network final : public network_frame {
public:
    tcp_network(launch::launcher &launcher, const conduit_options &options, doorbell ring)
        : network_frame(launcher, options, std::move(ring)) {}
    ~tcp_network() override { stop_thread(); }
    tcp_network(const tcp_network &) = delete;
    tcp_network &operator=(const tcp_network &) = delete;

    status start(const window &window, const conduit_options &options);

    const char *name() const override { return "tcp"; }
    status put(world_rank rank, std::uint64_t remote_address, const void *source,
               std::size_t nbytes, completion &source_free) override;
    status get(world_rank rank, std::uint64_t remote_address, void *destination, std::size_t nbytes,
               completion &done) override;
    status flush(world_rank rank, completion &done) override;
    status flush_all(completion &done) override;
    std::size_t max_message_bytes() const override { return most_message_bytes; }
    bool try_send(world_rank rank, handler_id handler, std::span<const std::byte> payload) override;
    result<bool> send_bulk(world_rank rank, handler_id handler, std::span<const std::byte> payload,
                           std::span<const std::byte> data, completion &source_free) override;
    std::size_t sure_bulk_bytes() const override { return most_bulk_bytes; }
    result<bool> put_with_message(world_rank rank, std::uint64_t remote_address,
                                  std::span<const std::byte> source, handler_id handler,
                                  std::span<const std::byte> payload,
                                  completion &source_free) override;
    void divert_bulk(const std::byte *place) override { traffic_->divert_bulk(place); }
    int poll(message_sink sink) override { return hand_over(traffic_->advance(), sink); }
    std::string describe_path(world_rank rank) const override;

private:
    /// A peer and the connection to it.
    struct way {
        peer &to;
        link &by;
    };

    bool serve() override { return traffic_->serve(); }
    bool arm() override { return traffic_->arm(); }
    void ping(network_peer &silent) override;
    std::vector<network_peer *> known_peers() const override {
        return pointers_to(traffic_->spoken_to());
    }
    std::string fail(network_peer &lost, const std::string &why) override;
    void note_handled(const message &each) override;
    status drain() override;

    result<way> find_way(world_rank rank);
    /// Lets what has been queued leave now; the network thread takes care of what has no room.
    void send_off(link &by) {
        by.ship();
        if (by.has_waiting()) {
            nudge();
        }
    }
    void ask_for_flush(link &by, std::uint64_t number) {
        by.send({.what = kind::flush, .number = number}, nullptr, 0, nullptr);
        send_off(by);
    }

    std::unique_ptr<traffic> traffic_;
};

status tcp_network::start(const window &window, const conduit_options &options) {
    auto made = traffic::create(launcher(), window, options, arrived(),
                                [this](peer &lost, const std::string &why) { lose(lost, why); });
    DIOMP_TRY(made);
    traffic_ = made.take();
    return start_thread(traffic_->epoll_fd());
}

void tcp_network::ping(network_peer &silent) {
    if (link *const by = static_cast<peer &>(silent).way(); by != nullptr) {
        by->send({.what = kind::ping}, nullptr, 0, nullptr);
        by->ship();
    }
}

std::string tcp_network::fail(network_peer &lost, const std::string &why) {
    std::string sentence = lost.fail(why);
    if (link *const by = static_cast<peer &>(lost).way(); by != nullptr) {
        by->break_off(why);
    }
    return sentence;
}

result<tcp_network::way> tcp_network::find_way(world_rank rank) {
    peer &to = traffic_->peer_of(rank);
    link *const by = to.is_failed() ? nullptr : traffic_->way_to(to);
    if (by == nullptr) {
        return to.gone().take_failure();
    }
    return way{to, *by};
}

status tcp_network::put(world_rank rank, std::uint64_t remote_address, const void *source,
                        std::size_t nbytes, completion &source_free) {
    auto found = find_way(rank);
    DIOMP_TRY(found);
    auto const [to, by] = found.value();
    bool const brings_flush = nbytes > link::most_copied && to.flushes_ahead();
    bool const is_copied = !brings_flush && link::is_copied(kind::put, nbytes);
    if (is_copied) {
        advance_until([&] { return by.copied_bytes() <= most_copies || to.is_failed(); },
                      [&] { return traffic_->advance(); });
    }
    if (nbytes > 0) {
        frame const head{.what = kind::put, .nbytes = nbytes, .address = remote_address};
        std::uint64_t const asked =
            by.send_put(head, source, source_free, to.num_puts(), brings_flush);
        if (asked != 0) {
            to.note_asked(asked);
        }
        // Small ones gather until a flush, or until there are many.
        if (!is_copied && by.has_waiting()) {
            nudge();
        }
    }
    return {};
}

status tcp_network::get(world_rank rank, std::uint64_t remote_address, void *destination,
                        std::size_t nbytes, completion &done) {
    auto found = find_way(rank);
    DIOMP_TRY(found);
    if (nbytes > 0) {
        auto const [to, by] = found.value();
        // Who serves the answer to an earlier one sends what has gathered meanwhile.
        bool const is_first = to.num_gets() == 0;
        get_id const id = to.begin_get(destination, nbytes, done);
        by.send({.what = kind::get,
                 .nbytes = nbytes,
                 .address = remote_address,
                 .number = to_number(id)},
                nullptr, 0, nullptr);
        if (is_first) {
            send_off(by);
        }
    }
    return {};
}

status tcp_network::flush(world_rank rank, completion &done) {
    peer *const known = traffic_->find_peer(rank);
    if (known == nullptr) {
        return {};
    }
    if (known->is_failed()) {
        return known->gone();
    }
    known->collect_puts();
    if (std::uint64_t number = 0; known->begin_flush(done, number)) {
        ask_for_flush(*known->way(), number);
    }
    return {};
}

status tcp_network::flush_all(completion &done) {
    for (auto const &known : traffic_->spoken_to()) {
        known->collect_puts();
        if (std::uint64_t number = 0; known->begin_flush(done, number)) {
            ask_for_flush(*known->way(), number);
        }
    }
    return {};
}

bool tcp_network::try_send(world_rank rank, handler_id handler,
                           std::span<const std::byte> payload) {
    auto found = find_way(rank);
    if (!found) {
        return true; // nobody will miss it
    }
    if (!found.value().to.take_room(payload.size())) {
        return false;
    }
    found.value().by.send({.what = kind::message, .handler = handler, .nbytes = payload.size()},
                          payload.data(), payload.size(), nullptr);
    if (found.value().by.may_leave_alone(traffic_->round())) {
        send_off(found.value().by);
    } else {
        nudge();
    }
    return true;
}

result<bool> tcp_network::send_bulk(world_rank rank, handler_id handler,
                                    std::span<const std::byte> payload,
                                    std::span<const std::byte> data, completion &source_free) {
    if (payload.size() > most_bulk_head_bytes || data.size() > most_bulk_bytes) {
        return false;
    }
    auto found = find_way(rank);
    DIOMP_TRY(found);
    if (found.value().by.copied_bytes() > most_copies) {
        return false;
    }
    found.value().by.send({.what = kind::bulk,
                           .handler = handler,
                           .head = static_cast<std::uint32_t>(payload.size()),
                           .nbytes = data.size()},
                          payload, data.data(), data.size(), &source_free);
    send_off(found.value().by);
    return true;
}

result<bool> tcp_network::put_with_message(world_rank rank, std::uint64_t remote_address,
                                           std::span<const std::byte> source, handler_id handler,
                                           std::span<const std::byte> payload,
                                           completion &source_free) {
    auto found = find_way(rank);
    DIOMP_TRY(found);
    auto const [to, by] = found.value();
    if (by.copied_bytes() > most_copies || !to.take_room(payload.size())) {
        return false;
    }
    by.send({.what = kind::put, .nbytes = source.size(), .address = remote_address}, source.data(),
            source.size(), &source_free);
    by.send({.what = kind::message, .handler = handler, .nbytes = payload.size()}, payload.data(),
            payload.size(), nullptr);
    send_off(by);
    return true;
}

void tcp_network::note_handled(const message &each) {
    peer &from = traffic_->peer_of(each.source);
    if (from.note_handled(each.payload.size())) {
        from.way()->send({.what = kind::handled, .number = from.take_handled()}, nullptr, 0,
                         nullptr);
    }
}

std::string tcp_network::describe_path(world_rank rank) const {
    peer const *const known = traffic_->find_peer(rank);
    link const *const by = known != nullptr ? known->way() : nullptr;
    return by != nullptr ? fmt::format("tcp ({}{})", other_end_of(by->fd()),
                                       by->is_sealed() ? ", encrypted" : "")
                         : "tcp";
}

status tcp_network::drain() {
    completion arrived;
    for (auto const &each : traffic_->spoken_to()) {
        if (each->way() != nullptr) {
            // A put of nothing: the answer comes when all messages have, too.
            each->num_puts().fetch_add(1);
        }
    }
    DIOMP_TRY(flush_all(arrived));
    advance_until([&] { return arrived.is_done(); }, [&] { return traffic_->advance(); });
    traffic_->expect_ends();
    return {};
}

} // namespace

result<std::unique_ptr<network>> create(launch::launcher &launcher, const window &window,
                                        const conduit_options &options, doorbell ring) {
    auto made = std::make_unique<tcp_network>(launcher, options, std::move(ring));
    DIOMP_TRY(made->start(window, options));
    return std::unique_ptr<network>(std::move(made));
}

} // namespace diomp::conduit::tcp
