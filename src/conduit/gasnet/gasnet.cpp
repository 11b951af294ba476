// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/gasnet/gasnet.h"

#include "base/log.h"
#include "conduit/attendance.h"
#include "conduit/gasnet/rdma.h"
#include "conduit/gasnet/traffic.h"
#include "conduit/network_thread.h"

#include <fmt/core.h>

#include <algorithm>
#include <sched.h>

namespace diomp::conduit::gasnet {
namespace {

class gasnet_network final : public network {
public:
    gasnet_network(launch::launcher &launcher, const conduit_options &options, doorbell ring)
        : launcher_(launcher), ring_(std::move(ring)), timeout_s_(options.dead_peer_timeout_s),
          watch_(options.dead_peer_timeout_s) {}

    status start(const window &window, const std::string &rma_wish);

    const char *name() const override { return "gasnet"; }
    status put(world_rank rank, std::uint64_t remote_address, const void *source,
               std::size_t nbytes, completion &source_free) override;
    status get(world_rank rank, std::uint64_t remote_address, void *destination, std::size_t nbytes,
               completion &done) override;
    status flush(world_rank rank, completion &done) override;
    status flush_all(completion &done) override;
    std::size_t max_message_bytes() const override { return traffic_->max_message_bytes(); }
    bool try_send(world_rank rank, handler_id handler, std::span<const std::byte> payload) override;
    result<bool> send_bulk(world_rank rank, handler_id handler, std::span<const std::byte> payload,
                           std::span<const std::byte> data, completion &source_free) override;
    void receive_bulk_with(const bulk_sink &sink, const bulk_placer & /*placer*/) override {
        traffic_->receive_bulk_with(sink);
    }
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
    std::string describe_outstanding() const override;
    status close() override;

private:
    static status gone(peer &lost) { return error(OMPX_ERR_PEER, lost.failure()); }
    status start_thread(const launch::gasnet::client &job);
    bool advance() {
        bool const moved = traffic_->advance();
        return (rdma_ != nullptr && rdma_->advance()) || moved;
    }
    /// GASNet's own puts and gets go from here to there.
    bool has_rdma(const peer &to) const { return rdma_ != nullptr && to.has_segment(); }
    int watch_peers(bool is_rung);
    void give_up(peer &lost);

    launch::launcher &launcher_;
    doorbell ring_;
    double timeout_s_;
    watch watch_;
    std::unique_ptr<traffic> traffic_;
    std::unique_ptr<rdma> rdma_; ///< nullptr: messages only
    attendance attendance_;
    std::atomic_flag receiving_;
    std::vector<std::byte> taken_messages_; ///< under receiving_
    std::mutex sink_mutex_;
    failure_sink failure_sink_;
    std::unique_ptr<network_thread> thread_; ///< last: it uses all of the above
};

status gasnet_network::start(const window &window, const std::string &rma_wish) {
    auto joined = launch::gasnet::join_through(launcher_);
    DIOMP_TRY(joined);
    traffic_ = std::make_unique<traffic>(*joined.value(), launcher_.info(), launcher_);
    auto own_transfers = rdma::create(*joined.value(), launcher_.info(), window, rma_wish);
    DIOMP_TRY(own_transfers);
    rdma_ = own_transfers.take();
    DIOMP_TRY(launcher_.put(host_key, launcher_.info().host));
    DIOMP_TRY(launcher_.put(segment_key, rdma_ != nullptr ? "1" : "0"));
    DIOMP_TRY(launcher_.fence()); // everybody's handlers are there
    return start_thread(*joined.value());
}

status gasnet_network::start_thread(const launch::gasnet::client &job) {
    // Ranks that share memory send past the descriptor.
    gex_Rank_t num_neighbours = 0;
    gex_System_QueryNbrhdInfo(nullptr, &num_neighbours, nullptr);
    bool const is_rung = job.event_fd >= 0 && num_neighbours == 1;
    network_thread_work work;
    work.is_polled = [this] { return attendance_.is_kept(); };
    work.serve = [this] {
        bool const moved = advance();
        if (traffic_->take_bulk_news() || has_messages()) {
            ring_();
        }
        return moved;
    };
    work.arm = [] { return true; };
    work.watch = [this, is_rung] { return watch_peers(is_rung); };
    auto started = network_thread::start(job.event_fd, std::move(work));
    DIOMP_TRY(started);
    thread_ = started.take();
    return {};
}

int gasnet_network::watch_peers(bool is_rung) {
    auto const peers = [this] {
        std::vector<watched_peer *> known;
        std::ranges::transform(traffic_->spoken_to(), std::back_inserter(known),
                               &std::unique_ptr<peer>::get);
        return known;
    };
    int const until = watch_.look(
        peers, [this](watched_peer &silent) { traffic_->ping(static_cast<peer &>(silent)); },
        [this](watched_peer &silent) { give_up(static_cast<peer &>(silent)); });
    // GASNet repeats what was lost on the way only while somebody lets it work.
    return until < 0 && is_rung ? -1 : 1;
}

void gasnet_network::give_up(peer &lost) {
    std::string const sentence =
        lost.fail(fmt::format("it has not answered for {:g} s", timeout_s_));
    std::lock_guard const guard(sink_mutex_);
    if (!sentence.empty() && failure_sink_) {
        failure_sink_(lost.rank(), sentence);
    }
}

status gasnet_network::put(world_rank rank, std::uint64_t remote_address, const void *source,
                           std::size_t nbytes, completion &source_free) {
    peer &to = traffic_->peer_of(rank);
    if (to.is_failed()) {
        return gone(to);
    }
    if (nbytes == 0) {
        return {};
    }
    if (has_rdma(to)) {
        rdma_->put(to, remote_address, source, nbytes, source_free);
    } else {
        traffic_->put(to, remote_address, static_cast<const std::byte *>(source), nbytes,
                      source_free);
    }
    thread_->nudge();
    return {};
}

status gasnet_network::get(world_rank rank, std::uint64_t remote_address, void *destination,
                           std::size_t nbytes, completion &done) {
    peer &from = traffic_->peer_of(rank);
    if (from.is_failed()) {
        return gone(from);
    }
    if (nbytes == 0) {
        return {};
    }
    if (has_rdma(from)) {
        rdma_->get(from, remote_address, destination, nbytes, done);
    } else {
        traffic_->get(from, remote_address, destination, nbytes, done);
    }
    thread_->nudge();
    return {};
}

status gasnet_network::flush(world_rank rank, completion &done) {
    if (peer *const known = traffic_->find_peer(rank); known != nullptr) {
        if (known->is_failed()) {
            return gone(*known);
        }
        known->flush(done);
    }
    return {};
}

status gasnet_network::flush_all(completion &done) {
    for (auto const &known : traffic_->spoken_to()) {
        known->flush(done);
    }
    return {};
}

bool gasnet_network::try_send(world_rank rank, handler_id handler,
                              std::span<const std::byte> payload) {
    peer &to = traffic_->peer_of(rank);
    if (to.is_failed()) {
        return true; // nobody will miss it
    }
    bool const sent = traffic_->try_send(to, handler, payload);
    thread_->nudge();
    return sent;
}

result<bool> gasnet_network::send_bulk(world_rank rank, handler_id handler,
                                       std::span<const std::byte> payload,
                                       std::span<const std::byte> data,
                                       completion & /*source_free*/) {
    if (data.size() > traffic::max_bulk_bytes()) {
        return false;
    }
    peer &to = traffic_->peer_of(rank);
    if (to.is_failed()) {
        return gone(to).take_failure();
    }
    bool const sent = traffic_->send_bulk(to, handler, payload, data);
    thread_->nudge();
    return sent;
}

int gasnet_network::poll(message_sink sink) {
    attendance_.note_poll();
    bool moved = advance();
    if (!moved && rdma_ != nullptr && rdma_->is_busy()) {
        // Nothing would wake a thread that slept.
        ::sched_yield();
        moved = true;
    }
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
            traffic_->give_credit(from);
        }
    });
    receiving_.clear(std::memory_order_release);
    return handled;
}

std::string gasnet_network::describe_path(world_rank rank) const {
    return fmt::format("gasnet ({}, {})", launch::gasnet::conduit_name(),
                       has_rdma(traffic_->peer_of(rank)) ? "rdma" : "active messages");
}

std::string gasnet_network::describe_outstanding() const {
    return describe_awaited(traffic_->spoken_to());
}

status gasnet_network::close() {
    bool lost = false;
    for (auto const &each : traffic_->spoken_to()) {
        while (each->has_unanswered() && !each->is_failed()) {
            if (!advance()) {
                ::sched_yield();
            }
        }
        lost = lost || each->is_failed();
    }
    if (lost) {
        return error(OMPX_ERR_PEER, "a rank was lost before it had everything");
    }
    // From here on peers may end before us, which is no failure.
    report_failures_to({});
    // The network thread answers those who still drain.
    DIOMP_TRY(launcher_.fence());
    launch::gasnet::leave_in_order();
    return {};
}

} // namespace

result<std::unique_ptr<network>> create(launch::launcher &launcher, const window &window,
                                        const conduit_options &options, doorbell ring) {
    auto made = std::make_unique<gasnet_network>(launcher, options, std::move(ring));
    DIOMP_TRY(made->start(window, options.network_rma));
    return std::unique_ptr<network>(std::move(made));
}

} // namespace diomp::conduit::gasnet
