// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/gasnet/gasnet.h"

#include "conduit/gasnet/rdma.h"
#include "conduit/gasnet/traffic.h"
#include "conduit/network_frame.h"

#include <fmt/core.h>

namespace diomp::conduit::gasnet {
namespace {

class gasnet_network final : public network_frame {
public:
    gasnet_network(launch::launcher &launcher, const conduit_options &options, doorbell ring)
        : network_frame(launcher, options, std::move(ring)) {}
    ~gasnet_network() override { stop_thread(); }
    gasnet_network(const gasnet_network &) = delete;
    gasnet_network &operator=(const gasnet_network &) = delete;

    status start(const window &window, const std::string &rma_wish);

    const char *name() const override { return "gasnet"; }
    status put(world_rank rank, std::uint64_t remote_address, const void *source,
               std::size_t nbytes, completion &source_free) override;
    status get(world_rank rank, std::uint64_t remote_address, void *destination, std::size_t nbytes,
               completion &done) override;
    result<bool> put_rows(world_rank rank, std::uint64_t remote_address, const void *source,
                          const rows &shape, completion &source_free) override;
    result<bool> get_rows(world_rank rank, std::uint64_t remote_address, void *destination,
                          const rows &shape, completion &done) override;
    status flush(world_rank rank, completion &done) override;
    status flush_all(completion &done) override;
    std::size_t max_message_bytes() const override { return traffic_->max_message_bytes(); }
    bool try_send(world_rank rank, handler_id handler, std::span<const std::byte> payload) override;
    result<bool> send_bulk(world_rank rank, handler_id handler, std::span<const std::byte> payload,
                           std::span<const std::byte> data, completion &source_free) override;
    int poll(message_sink sink) override;
    std::string describe_path(world_rank rank) const override;
    status close() override;

private:
    bool serve() override { return advance() || attends(); }
    /// GASNet repeats what was lost on the way only while somebody lets it work.
    int choose_sleep(int limit_ms) override { return limit_ms < 0 && is_rung_ ? -1 : 1; }
    void ping(network_peer &silent) override { traffic_->ping(static_cast<peer &>(silent)); }
    std::vector<network_peer *> known_peers() const override {
        return pointers_to(traffic_->spoken_to());
    }
    void note_handled(const message &each) override;
    status drain() override;

    bool advance() {
        bool const moved = traffic_->advance();
        return (rdma_ != nullptr && rdma_->advance()) || moved;
    }
    /// The thread goes on looking for what comes without being seen. Threads that wait need not be
    /// told: others ask them so often (traffic::attend) that they do not fall asleep.
    bool attends() {
        if (!traffic_->is_attending()) {
            return false;
        }
        ::sched_yield();
        return true;
    }
    /// GASNet's own puts and gets go from here to there.
    bool has_rdma(const peer &to) const { return rdma_ != nullptr && to.has_segment(); }

    std::unique_ptr<traffic> traffic_;
    std::unique_ptr<rdma> rdma_; ///< nullptr: messages only
    bool is_rung_ = false;       ///< the descriptor tells of everything that comes
};

status gasnet_network::start(const window &window, const std::string &rma_wish) {
    auto joined = launch::gasnet::join_through(launcher());
    DIOMP_TRY(joined);
    traffic_ = std::make_unique<traffic>(*joined.value(), launcher(), arrived());
    auto own_transfers =
        rdma::create(*joined.value(), launcher().info(), window, rma_wish, *traffic_);
    DIOMP_TRY(own_transfers);
    rdma_ = own_transfers.take();
    DIOMP_TRY(launcher().put(host_key, launcher().info().host));
    DIOMP_TRY(launcher().put(segment_key, rdma_ != nullptr ? "1" : "0"));
    DIOMP_TRY(launcher().fence()); // everybody's handlers are there
    // Ranks that share memory send past the descriptor.
    gex_Rank_t num_neighbours = 0;
    gex_System_QueryNbrhdInfo(nullptr, &num_neighbours, nullptr);
    is_rung_ = joined.value()->event_fd >= 0 && num_neighbours == 1;
    return start_thread(joined.value()->event_fd);
}

status gasnet_network::put(world_rank rank, std::uint64_t remote_address, const void *source,
                           std::size_t nbytes, completion &source_free) {
    peer &to = traffic_->peer_of(rank);
    if (to.is_failed()) {
        return to.gone();
    }
    if (nbytes == 0) {
        return {};
    }
    if (has_rdma(to) && rdma_->takes_puts()) {
        rdma_->put(to, remote_address, source, nbytes, source_free);
    } else {
        traffic_->put(to, remote_address, static_cast<const std::byte *>(source), nbytes,
                      source_free);
    }
    nudge();
    return {};
}

status gasnet_network::get(world_rank rank, std::uint64_t remote_address, void *destination,
                           std::size_t nbytes, completion &done) {
    peer &from = traffic_->peer_of(rank);
    if (from.is_failed()) {
        return from.gone();
    }
    if (nbytes == 0) {
        return {};
    }
    if (has_rdma(from)) {
        rdma_->get(from, remote_address, destination, nbytes, done);
    } else {
        traffic_->get(from, remote_address, destination, nbytes, done);
    }
    nudge();
    return {};
}

result<bool> gasnet_network::put_rows(world_rank rank, std::uint64_t remote_address,
                                      const void *source, const rows &shape,
                                      completion &source_free) {
    peer &to = traffic_->peer_of(rank);
    if (!has_rdma(to) || !rdma::takes(shape)) {
        return false;
    }
    if (to.is_failed()) {
        return to.gone().take_failure();
    }
    rdma_->put_rows(to, remote_address, source, shape, source_free);
    nudge();
    return true;
}

result<bool> gasnet_network::get_rows(world_rank rank, std::uint64_t remote_address,
                                      void *destination, const rows &shape, completion &done) {
    peer &from = traffic_->peer_of(rank);
    if (!has_rdma(from) || !rdma::takes(shape)) {
        return false;
    }
    if (from.is_failed()) {
        return from.gone().take_failure();
    }
    rdma_->get_rows(from, remote_address, destination, shape, done);
    nudge();
    return true;
}

status gasnet_network::flush(world_rank rank, completion &done) {
    if (peer *const known = traffic_->find_peer(rank); known != nullptr) {
        if (known->is_failed()) {
            return known->gone();
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
    nudge();
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
        return to.gone().take_failure();
    }
    bool const sent = traffic_->send_bulk(to, handler, payload, data);
    nudge();
    return sent;
}

int gasnet_network::poll(message_sink sink) {
    bool moved = advance();
    if (!moved && rdma_ != nullptr && rdma_->is_quiet()) {
        // Nothing would wake a thread that slept.
        ::sched_yield();
        moved = true;
    }
    return hand_over(moved, sink);
}

void gasnet_network::note_handled(const message &each) {
    peer &from = traffic_->peer_of(each.source);
    if (from.note_handled(each.payload.size())) {
        traffic_->give_credit(from);
    }
}

std::string gasnet_network::describe_path(world_rank rank) const {
    return fmt::format("gasnet ({}, {})", launch::gasnet::conduit_name(),
                       has_rdma(traffic_->peer_of(rank)) ? rdma_->description()
                                                         : "active messages");
}

status gasnet_network::drain() {
    // Credits as well: their handlers are gone soon.
    auto const is_quiet = [](const peer &each) {
        return (!each.has_unanswered() && !each.has_requests()) || each.is_failed();
    };
    for (auto const &each : traffic_->spoken_to()) {
        advance_until([&] { return is_quiet(*each); }, [&] { return advance(); });
    }
    return {};
}

status gasnet_network::close() {
    DIOMP_TRY(network_frame::close());
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
