// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/tcp/tcp.h"

#include "conduit/attendance.h"
#include "conduit/network_thread.h"
#include "conduit/tcp/traffic.h"

#include <fmt/core.h>

#include <algorithm>
#include <sched.h>

namespace diomp::conduit::tcp {
namespace {

/// Copies of what a peer has no room for; a put waits then.
constexpr std::size_t most_copies = std::size_t{4} << 20;

class tcp_network final : public network {
public:
    tcp_network(launch::launcher &launcher, const conduit_options &options, doorbell ring)
        : launcher_(launcher), ring_(std::move(ring)), timeout_s_(options.dead_peer_timeout_s),
          watch_(options.dead_peer_timeout_s) {}

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
    void receive_bulk_with(const bulk_sink &sink, const bulk_placer &placer) override {
        traffic_->receive_bulk_with(sink, placer);
    }
    void divert_bulk(const std::byte *place) override { traffic_->divert_bulk(place); }
    int poll(message_sink sink) override;
    void begin_polling() override { attendance_.begin(); }
    void end_polling() override {
        attendance_.end();
        thread_->nudge();
    }
    bool has_messages() const override { return traffic_->has_messages(); }
    void report_failures_to(const failure_sink &sink) override {
        std::lock_guard const guard(sink_mutex_);
        failure_sink_ = sink;
    }
    std::string describe_path(world_rank rank) const override;
    std::string describe_outstanding() const override {
        return describe_awaited(traffic_->spoken_to());
    }
    status close() override;

private:
    /// A peer and the connection to it.
    struct way {
        peer &to;
        link &by;
    };

    status start_thread();
    result<way> find_way(world_rank rank);
    void lose(peer &lost, const std::string &why);
    /// Lets what has been queued leave now; the network thread takes care of what has no room.
    void send_off(link &by) {
        by.ship();
        if (by.has_waiting()) {
            thread_->nudge();
        }
    }
    void ask_for_flush(link &by, std::uint64_t number) {
        by.send({.what = kind::flush, .number = number}, nullptr, 0, nullptr);
        send_off(by);
    }
    /// Takes room in the peer's queue. False: there is none.
    static bool take_room(peer &to, std::size_t payload_bytes);
    void give_credit(peer &to);

    launch::launcher &launcher_;
    doorbell ring_;
    double timeout_s_;
    watch watch_;
    std::unique_ptr<traffic> traffic_;
    attendance attendance_;
    std::atomic_flag receiving_;
    std::vector<std::byte> taken_messages_; ///< under receiving_
    std::mutex sink_mutex_;
    failure_sink failure_sink_;
    std::unique_ptr<network_thread> thread_; ///< last: it uses all of the above
};

status tcp_network::start(const window &window, const conduit_options &options) {
    auto made = traffic::create(launcher_, window, options,
                                [this](peer &lost, const std::string &why) { lose(lost, why); });
    DIOMP_TRY(made);
    traffic_ = made.take();
    return start_thread();
}

status tcp_network::start_thread() {
    network_thread_work work;
    work.is_polled = [this] { return attendance_.is_kept(); };
    work.serve = [this] {
        bool const moved = traffic_->serve();
        if (traffic_->take_bulk_news() || has_messages()) {
            ring_();
        }
        return moved;
    };
    work.arm = [this] { return traffic_->arm(); };
    work.watch = [this] {
        auto const peers = [this] {
            std::vector<watched_peer *> known;
            std::ranges::transform(traffic_->spoken_to(), std::back_inserter(known),
                                   &std::unique_ptr<peer>::get);
            return known;
        };
        auto const ask = [](watched_peer &silent) {
            if (link *const by = static_cast<peer &>(silent).way(); by != nullptr) {
                by->send({.what = kind::ping}, nullptr, 0, nullptr);
                by->ship();
            }
        };
        bool const is_any_opening = traffic_->look_at_openings();
        int const until = watch_.look(peers, ask, [this](watched_peer &silent) {
            lose(static_cast<peer &>(silent),
                 fmt::format("it has not answered for {:g} s", timeout_s_));
        });
        return until < 0 && is_any_opening ? 1000 : until;
    };
    auto started = network_thread::start(traffic_->epoll_fd(), std::move(work));
    DIOMP_TRY(started);
    thread_ = started.take();
    return {};
}

void tcp_network::lose(peer &lost, const std::string &why) {
    std::string const sentence = lost.fail(why);
    if (link *const by = lost.way(); by != nullptr) {
        by->break_off(why);
    }
    std::lock_guard const guard(sink_mutex_);
    if (!sentence.empty() && failure_sink_) {
        failure_sink_(lost.rank(), sentence);
    }
}

result<tcp_network::way> tcp_network::find_way(world_rank rank) {
    peer &to = traffic_->peer_of(rank);
    link *const by = to.is_failed() ? nullptr : traffic_->way_to(to);
    if (by == nullptr) {
        return error(OMPX_ERR_PEER, to.failure());
    }
    return way{to, *by};
}

status tcp_network::put(world_rank rank, std::uint64_t remote_address, const void *source,
                        std::size_t nbytes, completion &source_free) {
    auto found = find_way(rank);
    DIOMP_TRY(found);
    link &by = found.value().by;
    bool const is_copied = link::is_copied(kind::put, nbytes);
    while (is_copied && by.copied_bytes() > most_copies && !found.value().to.is_failed()) {
        if (!traffic_->advance()) {
            ::sched_yield();
        }
    }
    if (nbytes > 0) {
        by.send({.what = kind::put, .nbytes = nbytes, .address = remote_address}, source, nbytes,
                &source_free);
        found.value().to.count_put();
        // Small ones gather until a flush, or until there are many.
        if (!is_copied && by.has_waiting()) {
            thread_->nudge();
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
        return error(OMPX_ERR_PEER, known->failure());
    }
    if (std::uint64_t number = 0; known->begin_flush(done, number)) {
        ask_for_flush(*known->way(), number);
    }
    return {};
}

status tcp_network::flush_all(completion &done) {
    for (auto const &known : traffic_->spoken_to()) {
        if (std::uint64_t number = 0; known->begin_flush(done, number)) {
            ask_for_flush(*known->way(), number);
        }
    }
    return {};
}

bool tcp_network::take_room(peer &to, std::size_t payload_bytes) {
    std::uint64_t const cost = message_cost(payload_bytes);
    if (to.unhandled_bytes.fetch_add(cost, std::memory_order_relaxed) + cost <=
        message_window_bytes) {
        return true;
    }
    to.unhandled_bytes.fetch_sub(cost, std::memory_order_relaxed);
    return false;
}

bool tcp_network::try_send(world_rank rank, handler_id handler,
                           std::span<const std::byte> payload) {
    auto found = find_way(rank);
    if (!found) {
        return true; // nobody will miss it
    }
    if (!take_room(found.value().to, payload.size())) {
        return false;
    }
    found.value().by.send({.what = kind::message, .handler = handler, .nbytes = payload.size()},
                          payload.data(), payload.size(), nullptr);
    if (found.value().by.may_leave_alone(traffic_->round())) {
        send_off(found.value().by);
    } else {
        thread_->nudge();
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
    if (by.copied_bytes() > most_copies || !take_room(to, payload.size())) {
        return false;
    }
    by.send({.what = kind::put, .nbytes = source.size(), .address = remote_address}, source.data(),
            source.size(), &source_free);
    by.send({.what = kind::message, .handler = handler, .nbytes = payload.size()}, payload.data(),
            payload.size(), nullptr);
    send_off(by);
    return true;
}

void tcp_network::give_credit(peer &to) {
    to.way()->send({.what = kind::handled, .number = to.handled_bytes.exchange(0)}, nullptr, 0,
                   nullptr);
}

int tcp_network::poll(message_sink sink) {
    attendance_.note_poll();
    bool const moved = traffic_->advance();
    if (!has_messages() || receiving_.test_and_set(std::memory_order_acquire)) {
        return moved ? 1 : 0; // who serves others' puts and gets is busy too
    }
    taken_messages_.clear();
    traffic_->swap_messages(taken_messages_);
    int const handled = message_queue::hand_over(taken_messages_, [&](const message &each) {
        sink(each);
        peer &from = traffic_->peer_of(each.source);
        std::uint64_t const cost = message_cost(each.payload.size());
        if (from.handled_bytes.fetch_add(cost) + cost > message_window_bytes / 4) {
            give_credit(from);
        }
    });
    receiving_.clear(std::memory_order_release);
    return handled;
}

std::string tcp_network::describe_path(world_rank rank) const {
    peer const *const known = traffic_->find_peer(rank);
    link const *const by = known != nullptr ? known->way() : nullptr;
    return by != nullptr ? fmt::format("tcp ({})", other_end_of(by->fd())) : "tcp";
}

status tcp_network::close() {
    completion arrived;
    for (auto const &each : traffic_->spoken_to()) {
        if (each->way() != nullptr) {
            each->count_put(); // of nothing: the answer comes when all messages have, too
        }
    }
    DIOMP_TRY(flush_all(arrived));
    while (!arrived.is_done()) {
        if (!traffic_->advance()) {
            ::sched_yield();
        }
    }
    if (std::ranges::any_of(traffic_->spoken_to(), [](auto &each) { return each->is_failed(); })) {
        return error(OMPX_ERR_PEER, "a rank was lost before it had everything");
    }
    // From here on peers may end before us, which is no failure. The network thread answers those
    // who still drain.
    report_failures_to({});
    traffic_->expect_ends();
    return launcher_.fence();
}

} // namespace

result<std::unique_ptr<network>> create(launch::launcher &launcher, const window &window,
                                        const conduit_options &options, doorbell ring) {
    auto made = std::make_unique<tcp_network>(launcher, options, std::move(ring));
    DIOMP_TRY(made->start(window, options));
    return std::unique_ptr<network>(std::move(made));
}

} // namespace diomp::conduit::tcp
