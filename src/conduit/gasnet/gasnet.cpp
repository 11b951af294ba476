// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/gasnet/gasnet.h"

#include "conduit/gasnet/device_memory.h"
#include "conduit/gasnet/rdma.h"
#include "conduit/gasnet/traffic.h"
#include "conduit/network_frame.h"

#include <fmt/core.h>

#include <algorithm>
#include <sched.h>

namespace diomp::conduit::gasnet {
namespace {

status not_joined(const peer &with, std::uint64_t remote_address, std::size_t nbytes) {
    return error(OMPX_ERR_UNSUPPORTED,
                 fmt::format("GASNet-EX does not reach {} bytes at {:#x} of {} from here", nbytes,
                             remote_address, with.name()));
}

class gasnet_network final : public network_frame {
public:
    gasnet_network(launch::launcher &launcher, const conduit_options &options, doorbell ring)
        : network_frame(launcher, options, std::move(ring)) {}
    ~gasnet_network() override { stop_thread(); }
    gasnet_network(const gasnet_network &) = delete;
    gasnet_network &operator=(const gasnet_network &) = delete;

    status start(const window &window, const conduit_options &options);

    const char *name() const override { return "gasnet"; }
    status put(world_rank rank, std::uint64_t remote_address, const void *source,
               std::size_t nbytes, completion &source_free) override;
    status get(world_rank rank, std::uint64_t remote_address, void *destination, std::size_t nbytes,
               completion &done) override;
    bool reaches_range(const memory_range &own) const override {
        return reaches(own.kind) || (devices_ != nullptr && devices_->reaches(own));
    }
    bool joins(world_rank rank, const memory_range &remote,
               const memory_range &local) const override {
        return way_between(traffic_->peer_of(rank), remote, local).has_value();
    }
    status put_between(world_rank rank, std::uint64_t remote_address, const void *source,
                       std::size_t nbytes, memory_ends ends, completion &source_free) override;
    status get_between(world_rank rank, std::uint64_t remote_address, void *destination,
                       std::size_t nbytes, memory_ends ends, completion &done) override;
    void work_in(const device_scope &scope) override {
        if (devices_ != nullptr) {
            devices_->scopes().work_in(scope);
        }
    }
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

    /// What of this rank's memory GASNet's own puts and gets reach.
    std::vector<bound_range> bound() const;

    bool advance() {
        auto const current = devices_ != nullptr ? devices_->scopes().enter() : nullptr;
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
    bool has_rdma(const peer &to) const {
        return rdma_ != nullptr && rdma_->has_slot() && to.has_segment();
    }
    std::optional<gex_TM_t> way_between(const peer &to, const memory_range &remote,
                                        const memory_range &local) const {
        return devices_ == nullptr ? std::nullopt : devices_->way(to, remote, local);
    }

    std::unique_ptr<traffic> traffic_;
    std::unique_ptr<rdma> rdma_;             ///< nullptr: GASNet's conduit has no such thing
    std::unique_ptr<device_memory> devices_; ///< nullptr: likewise; its transfers are rdma_'s
    bool is_rung_ = false;                   ///< the descriptor tells of everything that comes
};

status gasnet_network::start(const window &window, const conduit_options &options) {
    auto joined = launch::gasnet::join_through(launcher());
    DIOMP_TRY(joined);
    traffic_ = std::make_unique<traffic>(*joined.value(), launcher(), arrived());
    auto own_transfers =
        rdma::create(*joined.value(), launcher().info(), window, options.network_rma, *traffic_);
    DIOMP_TRY(own_transfers);
    rdma_ = own_transfers.take();
    DIOMP_TRY(launcher().put(host_key, launcher().info().host));
    auto devices = device_memory::create(*joined.value(), options);
    DIOMP_TRY(devices);
    devices_ = devices.take();
    DIOMP_TRY(launcher().put(bound_key, to_text(bound())));
    DIOMP_TRY(launcher().fence()); // everybody's handlers are there
    // Ranks that share memory send past the descriptor.
    gex_Rank_t num_neighbours = 0;
    gex_System_QueryNbrhdInfo(nullptr, &num_neighbours, nullptr);
    is_rung_ = joined.value()->event_fd >= 0 && num_neighbours == 1;
    return start_thread(joined.value()->event_fd);
}

std::vector<bound_range> gasnet_network::bound() const {
    std::vector<bound_range> all;
    if (devices_ != nullptr) {
        all = devices_->bound();
    }
    if (rdma_ != nullptr && rdma_->has_slot()) {
        all.push_back(rdma_->slot());
    }
    return all;
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

status gasnet_network::put_between(world_rank rank, std::uint64_t remote_address,
                                   const void *source, std::size_t nbytes, memory_ends ends,
                                   completion &source_free) {
    peer &to = traffic_->peer_of(rank);
    if (to.is_failed()) {
        return to.gone();
    }
    if (nbytes == 0) {
        return {};
    }
    auto const way = way_between(to, {ends.remote, remote_address, nbytes},
                                 {ends.local, reinterpret_cast<std::uintptr_t>(source), nbytes});
    if (!way) {
        return not_joined(to, remote_address, nbytes);
    }
    {
        auto const current = devices_->scopes().enter();
        rdma_->put_through(*way, to, remote_address, source, nbytes, source_free);
    }
    nudge();
    return {};
}

status gasnet_network::get_between(world_rank rank, std::uint64_t remote_address, void *destination,
                                   std::size_t nbytes, memory_ends ends, completion &done) {
    peer &from = traffic_->peer_of(rank);
    if (from.is_failed()) {
        return from.gone();
    }
    if (nbytes == 0) {
        return {};
    }
    auto const way =
        way_between(from, {ends.remote, remote_address, nbytes},
                    {ends.local, reinterpret_cast<std::uintptr_t>(destination), nbytes});
    if (!way) {
        return not_joined(from, remote_address, nbytes);
    }
    {
        auto const current = devices_->scopes().enter();
        rdma_->get_through(*way, from, remote_address, destination, nbytes, done);
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
    peer const &to = traffic_->peer_of(rank);
    bool const knows_devices = std::ranges::any_of(
        to.bound(), [](const bound_range &each) { return each.range.kind != memory_kind::host; });
    return fmt::format("gasnet ({}, {}{})", launch::gasnet::conduit_name(),
                       has_rdma(to) ? rdma_->description() : "active messages",
                       knows_devices ? ", device memory" : "");
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
    DIOMP_TRY(made->start(window, options));
    return std::unique_ptr<network>(std::move(made));
}

} // namespace diomp::conduit::gasnet
