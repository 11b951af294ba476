// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/ucx/ucx.h"

#include "base/log.h"
#include "conduit/attendance.h"
#include "conduit/network_thread.h"
#include "conduit/ucx/traffic.h"

#include <fmt/core.h>

#include <cstring>
#include <sched.h>

namespace diomp::conduit::ucx {
namespace {

/// Messages towards one peer that it has not handled yet.
constexpr std::uint64_t message_window_bytes = 256 * 1024;

status status_of(result<bool> outcome) {
    if (!outcome) {
        return outcome.take_failure();
    }
    return {};
}

class ucx_network final : public network {
public:
    ucx_network(launch::launcher &launcher, doorbell ring)
        : launcher_(launcher), ring_(std::move(ring)) {}

    status start(const window &window, const conduit_options &options);

    const char *name() const override { return "ucx"; }
    status put(world_rank rank, std::uint64_t remote_address, const void *source,
               std::size_t nbytes, completion &source_free) override;
    status get(world_rank rank, std::uint64_t remote_address, void *destination, std::size_t nbytes,
               completion &done) override;
    status flush(world_rank rank, completion &done) override;
    status flush_all(completion &done) override;
    std::size_t max_message_bytes() const override { return message_bytes; }
    bool try_send(world_rank rank, handler_id handler, std::span<const std::byte> payload) override;
    result<bool> send_bulk(world_rank rank, handler_id handler, std::span<const std::byte> payload,
                           std::span<const std::byte> data, completion &source_free) override;
    void receive_bulk_with(const bulk_sink &sink, const bulk_placer & /*placer*/) override {
        std::lock_guard const guard(traffic_->first_worker().mutex);
        traffic_->arrivals().receive_bulk_with(sink);
    }
    int poll(message_sink sink) override;
    void begin_polling() override { attendance_.begin(); }
    void end_polling() override {
        attendance_.end();
        thread_->nudge();
    }
    bool has_messages() const override { return traffic_->arrivals().has_messages(); }
    void report_failures_to(const failure_sink &sink) override {
        traffic_->report_failures_to(sink);
    }
    std::string describe_path(world_rank rank) const override;
    std::string describe_outstanding() const override { return traffic_->describe_outstanding(); }
    status close() override;

private:
    /// A channel with room, and the lock of its worker.
    struct locked_channel {
        std::unique_lock<std::mutex> lock;
        channel *to;
    };
    result<locked_channel> find_room(peer &target, worker &owner);
    /// False if there is nothing to wait for.
    static result<bool> flush_channel(channel &to, completion &done, bool also_messages);
    static status gone(peer &lost);
    void give_credit(world_rank rank);
    status drain();

    launch::launcher &launcher_;
    doorbell ring_;
    std::unique_ptr<traffic> traffic_;
    attendance attendance_;
    std::atomic_flag receiving_;
    std::vector<std::byte> taken_messages_;  ///< under receiving_
    std::unique_ptr<network_thread> thread_; ///< last: it uses all of the above
};

status ucx_network::start(const window &window, const conduit_options &options) {
    auto made = traffic::create(launcher_, window, options);
    DIOMP_TRY(made);
    traffic_ = made.take();
    network_thread_work work;
    work.is_polled = [this] { return attendance_.is_kept(); };
    work.serve = [this] {
        bool const moved = traffic_->advance(true);
        // Somebody may be napping until what has come.
        if (traffic_->arrivals().take_bulk_news() || has_messages()) {
            ring_();
        }
        return moved;
    };
    work.arm = [this] { return traffic_->arm(); };
    work.watch = [this] { return traffic_->watch_peers(); };
    auto started = network_thread::start(traffic_->event_fd(), std::move(work));
    DIOMP_TRY(started);
    thread_ = started.take();
    return {};
}

status ucx_network::gone(peer &lost) { return error(OMPX_ERR_PEER, lost.failure()); }

result<ucx_network::locked_channel> ucx_network::find_room(peer &target, worker &owner) {
    locked_channel found{std::unique_lock(owner.mutex), nullptr};
    for (;;) {
        if (target.is_failed()) {
            return gone(target).take_failure();
        }
        auto connected = target.channel_of(owner);
        DIOMP_TRY(connected);
        found.to = connected.value();
        if (!found.to->is_full()) [[likely]] {
            return found;
        }
        found.lock.unlock();
        if (!traffic_->advance()) {
            ::sched_yield();
        }
        found.lock.lock();
    }
}

status ucx_network::put(world_rank rank, std::uint64_t remote_address, const void *source,
                        std::size_t nbytes, completion &source_free) {
    if (nbytes == 0) {
        return {};
    }
    {
        auto found = find_room(traffic_->peer_of(rank), traffic_->own_worker());
        DIOMP_TRY(found);
        channel &to = *found.value().to;
        if (!to.is_unsettled) {
            to.is_unsettled = true;
            to.owner.unsettled.push_back(&to);
        }
        if (to.remote_key != nullptr) {
            to.rdma_put(remote_address, source, nbytes, source_free);
        } else {
            to.bytes_in_epoch += nbytes;
            to.has_news = true;
            if (nbytes <= small_bytes) {
                ++to.puts_in_epoch;
                std::memcpy(to.append(record_kind::put, remote_address, nbytes), source, nbytes);
            } else {
                to.puts_in_epoch +=
                    to.send_bulk(record_kind::put, remote_address, source, nbytes, &source_free);
            }
        }
    }
    thread_->nudge();
    return {};
}

status ucx_network::get(world_rank rank, std::uint64_t remote_address, void *destination,
                        std::size_t nbytes, completion &done) {
    if (nbytes == 0) {
        return {};
    }
    peer &target = traffic_->peer_of(rank);
    while (target.has_many_gets() && !target.is_failed()) {
        if (!traffic_->advance()) {
            ::sched_yield();
        }
    }
    {
        auto found = find_room(target, traffic_->own_worker());
        DIOMP_TRY(found);
        channel &to = *found.value().to;
        if (to.remote_key != nullptr) {
            to.rdma_get(remote_address, destination, nbytes, done);
        } else {
            get_body const body{nbytes, target.add_get(destination, nbytes, done)};
            std::memcpy(to.append(record_kind::get, remote_address, sizeof(body)), &body,
                        sizeof(body));
            to.ship_soon();
        }
    }
    thread_->nudge();
    return {};
}

result<bool> ucx_network::flush_channel(channel &to, completion &done, bool also_messages) {
    if (to.target.is_failed()) {
        return gone(to.target).take_failure();
    }
    bool const has_rdma = to.rdma_flush(done);
    if (to.puts_in_epoch == 0 && !(also_messages && to.has_news)) {
        return to.target.join_flush(to.owner.index, done) || has_rdma;
    }
    to.target.add_flush(to, done);
    to.append(record_kind::flush, to.puts_in_epoch, 0);
    ++to.epoch;
    to.puts_in_epoch = 0;
    to.bytes_in_epoch = 0;
    to.has_news = false;
    to.ship();
    return true;
}

status ucx_network::flush(world_rank rank, completion &done) {
    peer *const target = traffic_->find_peer(rank);
    if (target == nullptr) {
        return {};
    }
    status outcome;
    traffic_->for_each_worker([&](worker &owner) {
        std::lock_guard const guard(owner.mutex);
        if (channel *const to = target->find_channel(owner); to != nullptr && outcome.ok()) {
            outcome = status_of(flush_channel(*to, done, false));
        }
    });
    thread_->nudge();
    return outcome;
}

status ucx_network::flush_all(completion &done) {
    // Costs as much as there are channels with puts since they were last found without.
    status outcome;
    bool is_nudge_due = false;
    traffic_->for_each_worker([&](worker &owner) {
        std::lock_guard const guard(owner.mutex);
        is_nudge_due = is_nudge_due || !owner.unsettled.empty();
        std::erase_if(owner.unsettled, [&](channel *each) {
            if (!outcome.ok()) {
                return false;
            }
            auto waiting = flush_channel(*each, done, false);
            if (!waiting) {
                outcome = waiting.take_failure();
                return false;
            }
            each->is_unsettled = waiting.value();
            return !waiting.value();
        });
    });
    if (is_nudge_due) {
        thread_->nudge();
    }
    return outcome;
}

bool ucx_network::try_send(world_rank rank, handler_id handler,
                           std::span<const std::byte> payload) {
    peer &target = traffic_->peer_of(rank);
    if (target.is_failed()) {
        return true; // nobody is there to miss it; whoever waits for an answer is told
    }
    std::uint64_t const cost = sizeof(record) + padded(payload.size());
    if (target.unhandled_bytes.load(std::memory_order_relaxed) + cost > message_window_bytes) {
        return false;
    }
    {
        // One worker for all messages: the runtime may hand a thread's message to another thread.
        worker &owner = traffic_->first_worker();
        std::lock_guard const guard(owner.mutex);
        auto connected = target.channel_of(owner);
        if (!connected) {
            log(log_level::error, "{}", connected.failure().message());
            traffic::mark_broken(owner, target);
            return true;
        }
        channel &to = *connected.value();
        if (to.is_full()) {
            return false;
        }
        target.unhandled_bytes.fetch_add(cost, std::memory_order_relaxed);
        std::byte *const at =
            to.append(record_kind::message, to.next_message++, payload.size(), handler);
        if (!payload.empty()) {
            std::memcpy(at, payload.data(), payload.size());
        }
        to.has_news = true;
        to.ship_soon();
    }
    thread_->nudge();
    return true;
}

result<bool> ucx_network::send_bulk(world_rank rank, handler_id handler,
                                    std::span<const std::byte> payload,
                                    std::span<const std::byte> data, completion &source_free) {
    if (data.size() > piece_bytes || payload.size() > most_bulk_payload_bytes) {
        return false;
    }
    peer &target = traffic_->peer_of(rank);
    {
        worker &owner = traffic_->own_worker();
        std::lock_guard const guard(owner.mutex);
        if (target.is_failed()) {
            return gone(target).take_failure();
        }
        auto connected = target.channel_of(owner);
        DIOMP_TRY(connected);
        channel &to = *connected.value();
        if (to.is_full() || !to.cuts_bulk) {
            return false;
        }
        to.has_news = true;
        to.send_bulk_message(handler, payload, data, source_free);
    }
    thread_->nudge();
    return true;
}

void ucx_network::give_credit(world_rank rank) {
    worker &receiver = traffic_->first_worker();
    std::lock_guard const guard(receiver.mutex);
    std::uint64_t const handled = traffic_->peer_of(rank).handled_bytes.exchange(0);
    traffic_->send_reply(receiver, {rank, record_kind::credit, 0, handled, 0, 0});
    traffic::ship_open(receiver);
}

int ucx_network::poll(message_sink sink) {
    attendance_.note_poll();
    bool const moved = traffic_->advance();
    if (!has_messages() || receiving_.test_and_set(std::memory_order_acquire)) {
        return moved ? 1 : 0; // who serves others' puts and gets is busy too
    }
    {
        std::lock_guard const guard(traffic_->first_worker().mutex);
        taken_messages_.clear();
        traffic_->arrivals().swap_messages(taken_messages_);
    }
    int const handled = message_queue::hand_over(taken_messages_, [&](const message &each) {
        sink(each);
        std::uint64_t const cost = sizeof(record) + padded(each.payload.size());
        if (traffic_->peer_of(each.source).handled_bytes.fetch_add(cost) + cost >
            message_window_bytes / 4) {
            give_credit(each.source);
        }
    });
    receiving_.clear(std::memory_order_release);
    return handled;
}

std::string ucx_network::describe_path(world_rank rank) const {
    peer *const known = traffic_->find_peer(rank);
    std::string const path = known == nullptr ? "" : known->path();
    return path.empty() ? "ucx (not used yet)" : path;
}

status ucx_network::drain() {
    completion done;
    status outcome;
    for (peer *const known : traffic_->spoken_to()) {
        traffic_->for_each_worker([&](worker &owner) {
            std::lock_guard const guard(owner.mutex);
            channel *const to = known->find_channel(owner);
            if (to != nullptr && !known->is_failed() && outcome.ok()) {
                outcome = status_of(flush_channel(*to, done, true));
            }
        });
    }
    while (!done.is_done()) {
        if (!traffic_->advance()) {
            ::sched_yield();
        }
    }
    DIOMP_TRY(std::move(outcome));
    if (done.failure.load() != 0) {
        return error(OMPX_ERR_PEER, "a rank was lost before it had everything");
    }
    return {};
}

status ucx_network::close() {
    DIOMP_TRY(drain());
    // From here on peers may end before us, which is no failure.
    report_failures_to({});
    // The network thread answers those who still drain.
    return launcher_.fence();
}

} // namespace

result<std::unique_ptr<network>> create(launch::launcher &launcher, const window &window,
                                        const conduit_options &options, doorbell ring) {
    auto made = std::make_unique<ucx_network>(launcher, std::move(ring));
    DIOMP_TRY(made->start(window, options));
    return std::unique_ptr<network>(std::move(made));
}

} // namespace diomp::conduit::ucx
