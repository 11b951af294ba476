// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/gasnet/gasnet.h"

#include "transport/common/network_base.h"
#include "transport/gasnet/device_memory.h"
#include "transport/gasnet/iface.h"
#include "transport/gasnet/rdma.h"

#include <fmt/core.h>

#include <algorithm>
#include <sched.h>

namespace diomp::transport::gasnet {
namespace {

status not_reachable(const peer &with, std::uint64_t remote_address, std::size_t nbytes) {
    return error(OMPX_ERR_UNSUPPORTED,
                 fmt::format("GASNet-EX does not reach {} bytes at {:#x} of {} from here", nbytes,
                             remote_address, with.name()));
}

/// Transfers by GASNet's memory kinds.
class gasnet_device_transfers final : public device_transfers {
public:
    gasnet_device_transfers(network_base &net, iface &all, rdma &native, device_memory &devices)
        : network_(net), iface_(all), rdma_(native), devices_(devices) {}

    bool supports_memory_kind(memory_kind kind) const override { return kind == memory_kind::host; }
    bool supports_memory_range(const memory_range &own) const override {
        return own.kind == memory_kind::host || devices_.supports_range(own);
    }
    bool can_transfer(world_rank rank, const memory_range &remote,
                      const memory_range &local) const override {
        return devices_.endpoint_pair(iface_.peer_of(rank), remote, local).has_value();
    }
    status put_device_memory(world_rank rank, std::uint64_t remote_address, const void *source,
                             std::size_t nbytes, memory_kinds kinds,
                             completion &source_free) override;
    status get_device_memory(world_rank rank, std::uint64_t remote_address, void *destination,
                             std::size_t nbytes, memory_kinds kinds, completion &done) override;
    void bind_device_context(const device_context_binder &binder) override {
        devices_.context().bind_device_context(binder);
    }

private:
    network_base &network_;
    iface &iface_;
    rdma &rdma_;
    device_memory &devices_;
};

status gasnet_device_transfers::put_device_memory(world_rank rank, std::uint64_t remote_address,
                                                  const void *source, std::size_t nbytes,
                                                  memory_kinds kinds, completion &source_free) {
    peer &to = iface_.peer_of(rank);
    if (to.is_failed()) {
        return to.lost_error();
    }
    if (nbytes == 0) {
        return {};
    }
    auto const endpoint_pair =
        devices_.endpoint_pair(to, {kinds.remote, remote_address, nbytes},
                               {kinds.local, reinterpret_cast<std::uintptr_t>(source), nbytes});
    if (!endpoint_pair) {
        return not_reachable(to, remote_address, nbytes);
    }
    {
        auto const current = devices_.context().bind_to_thread();
        rdma_.put_via(*endpoint_pair, to, remote_address, source, nbytes, source_free);
    }
    network_.wake();
    return {};
}

status gasnet_device_transfers::get_device_memory(world_rank rank, std::uint64_t remote_address,
                                                  void *destination, std::size_t nbytes,
                                                  memory_kinds kinds, completion &done) {
    peer &from = iface_.peer_of(rank);
    if (from.is_failed()) {
        return from.lost_error();
    }
    if (nbytes == 0) {
        return {};
    }
    auto const endpoint_pair = devices_.endpoint_pair(
        from, {kinds.remote, remote_address, nbytes},
        {kinds.local, reinterpret_cast<std::uintptr_t>(destination), nbytes});
    if (!endpoint_pair) {
        return not_reachable(from, remote_address, nbytes);
    }
    {
        auto const current = devices_.context().bind_to_thread();
        rdma_.get_via(*endpoint_pair, from, remote_address, destination, nbytes, done);
    }
    network_.wake();
    return {};
}

class gasnet_network final : public network_base, public row_transfers {
public:
    gasnet_network(launch::launcher &launcher, const conduit_options &options, doorbell ring)
        : network_base(launcher, options, std::move(ring)) {}
    ~gasnet_network() override { stop_thread(); }
    gasnet_network(const gasnet_network &) = delete;
    gasnet_network &operator=(const gasnet_network &) = delete;

    status start(const arena &arena, const conduit_options &options);

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
    bool try_send(world_rank rank, handler_id handler, std::span<const std::byte> payload) override;
    result<bool> send_long(world_rank rank, handler_id handler, std::span<const std::byte> payload,
                           std::span<const std::byte> data, completion &source_free) override;
    int poll(message_handler sink) override;
    std::string describe_path(world_rank rank) const override;
    status close() override;

private:
    bool serve() override { return advance() || keeps_polling(); }
    /// GASNet retransmits lost packets only while it is polled.
    int max_sleep_ms(int limit_ms) override {
        return limit_ms < 0 && event_fd_reports_all_ ? -1 : 1;
    }
    void ping(network_peer &silent) override { iface_->ping(static_cast<peer &>(silent)); }
    std::vector<network_peer *> known_peers() const override {
        return pointers_to(iface_->peers_in_use());
    }
    void note_handled(const message &each) override;
    status drain() override;

    /// The memory of this rank that GASNet's own puts and gets can access.
    std::vector<bound_range> bound() const;

    bool advance() {
        auto const current = devices_ != nullptr ? devices_->context().bind_to_thread() : nullptr;
        bool const progressed = iface_->advance();
        return (rdma_ != nullptr && rdma_->advance()) || progressed;
    }
    /// Whether a peer has requested polling for one-sided operations, which show in no message.
    /// Waiting threads need no notice: requests arrive often enough (iface::request_polling) to
    /// keep them awake.
    bool keeps_polling() {
        if (!iface_->is_polling_requested()) {
            return false;
        }
        ::sched_yield();
        return true;
    }
    /// Whether GASNet's own puts and gets can access the peer's slot.
    bool has_rdma(const peer &to) const {
        return rdma_ != nullptr && rdma_->has_slot() && to.has_segment();
    }

    std::unique_ptr<iface> iface_;
    std::unique_ptr<rdma> rdma_;             ///< nullptr: GASNet's conduit has no RDMA endpoints
    std::unique_ptr<device_memory> devices_; ///< nullptr: no memory kinds
    std::unique_ptr<gasnet_device_transfers> device_transfers_;
    bool event_fd_reports_all_ = false; ///< the descriptor reports every arrival
};

status gasnet_network::start(const arena &arena, const conduit_options &options) {
    auto joined = launch::gasnet::join_through(launcher());
    DIOMP_TRY(joined);
    iface_ = std::make_unique<iface>(*joined.value(), launcher(), arrived());
    auto native_rdma =
        rdma::create(*joined.value(), launcher().info(), arena, options.network_rma, *iface_);
    DIOMP_TRY(native_rdma);
    rdma_ = native_rdma.take();
    DIOMP_TRY(launcher().put(host_key, launcher().info().host));
    auto devices = device_memory::create(*joined.value(), options);
    DIOMP_TRY(devices);
    devices_ = devices.take();
    caps_.name = "gasnet";
    caps_.max_message_bytes = iface_->max_message_bytes();
    caps_.rows = this;
    if (devices_ != nullptr) {
        device_transfers_ =
            std::make_unique<gasnet_device_transfers>(*this, *iface_, *rdma_, *devices_);
        caps_.device = device_transfers_.get();
    }
    DIOMP_TRY(launcher().put(bound_key, to_text(bound())));
    DIOMP_TRY(launcher().fence()); // all ranks have registered their handlers
    // Messages through GASNet's shared memory do not signal the descriptor.
    gex_Rank_t num_neighbours = 0;
    gex_System_QueryNbrhdInfo(nullptr, &num_neighbours, nullptr);
    event_fd_reports_all_ = joined.value()->event_fd >= 0 && num_neighbours == 1;
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
    peer &to = iface_->peer_of(rank);
    if (to.is_failed()) {
        return to.lost_error();
    }
    if (nbytes == 0) {
        return {};
    }
    if (has_rdma(to) && rdma_->supports_puts()) {
        rdma_->put(to, remote_address, source, nbytes, source_free);
    } else {
        iface_->put(to, remote_address, static_cast<const std::byte *>(source), nbytes,
                    source_free);
    }
    wake();
    return {};
}

status gasnet_network::get(world_rank rank, std::uint64_t remote_address, void *destination,
                           std::size_t nbytes, completion &done) {
    peer &from = iface_->peer_of(rank);
    if (from.is_failed()) {
        return from.lost_error();
    }
    if (nbytes == 0) {
        return {};
    }
    if (has_rdma(from)) {
        rdma_->get(from, remote_address, destination, nbytes, done);
    } else {
        iface_->get(from, remote_address, destination, nbytes, done);
    }
    wake();
    return {};
}

result<bool> gasnet_network::put_rows(world_rank rank, std::uint64_t remote_address,
                                      const void *source, const rows &shape,
                                      completion &source_free) {
    peer &to = iface_->peer_of(rank);
    if (!has_rdma(to) || !rdma::supports(shape)) {
        return false;
    }
    if (to.is_failed()) {
        return to.lost_error().take_failure();
    }
    rdma_->put_rows(to, remote_address, source, shape, source_free);
    wake();
    return true;
}

result<bool> gasnet_network::get_rows(world_rank rank, std::uint64_t remote_address,
                                      void *destination, const rows &shape, completion &done) {
    peer &from = iface_->peer_of(rank);
    if (!has_rdma(from) || !rdma::supports(shape)) {
        return false;
    }
    if (from.is_failed()) {
        return from.lost_error().take_failure();
    }
    rdma_->get_rows(from, remote_address, destination, shape, done);
    wake();
    return true;
}

status gasnet_network::flush(world_rank rank, completion &done) {
    if (peer *const known = iface_->find_peer(rank); known != nullptr) {
        if (known->is_failed()) {
            return known->lost_error();
        }
        known->flush(done);
    }
    return {};
}

status gasnet_network::flush_all(completion &done) {
    for (auto const &known : iface_->peers_in_use()) {
        known->flush(done);
    }
    return {};
}

bool gasnet_network::try_send(world_rank rank, handler_id handler,
                              std::span<const std::byte> payload) {
    peer &to = iface_->peer_of(rank);
    if (to.is_failed()) {
        return true; // dropped
    }
    bool const sent = iface_->try_send(to, handler, payload);
    wake();
    return sent;
}

result<bool> gasnet_network::send_long(world_rank rank, handler_id handler,
                                       std::span<const std::byte> payload,
                                       std::span<const std::byte> data,
                                       completion & /*source_free*/) {
    if (data.size() > iface::max_long_bytes()) {
        return false;
    }
    peer &to = iface_->peer_of(rank);
    if (to.is_failed()) {
        return to.lost_error().take_failure();
    }
    bool const sent = iface_->send_long(to, handler, payload, data);
    wake();
    return sent;
}

int gasnet_network::poll(message_handler sink) {
    bool progressed = advance();
    if (!progressed && rdma_ != nullptr && rdma_->is_quiet()) {
        // Completions of one-sided operations wake no sleeping thread.
        ::sched_yield();
        progressed = true;
    }
    return dispatch(progressed, sink);
}

void gasnet_network::note_handled(const message &each) {
    peer &from = iface_->peer_of(each.source);
    if (from.note_handled(each.payload.size())) {
        iface_->give_credit(from);
    }
}

std::string gasnet_network::describe_path(world_rank rank) const {
    peer const &to = iface_->peer_of(rank);
    bool const knows_devices = std::ranges::any_of(
        to.bound(), [](const bound_range &each) { return each.range.kind != memory_kind::host; });
    return fmt::format("gasnet ({}, {}{})", launch::gasnet::conduit_name(),
                       has_rdma(to) ? rdma_->description() : "active messages",
                       knows_devices ? ", device memory" : "");
}

status gasnet_network::drain() {
    // Waits for credits as well, since the handlers are unregistered next.
    auto const is_quiet = [](const peer &each) {
        return (!each.has_unacknowledged() && !each.has_requests()) || each.is_failed();
    };
    for (auto const &each : iface_->peers_in_use()) {
        advance_until([&] { return is_quiet(*each); }, [&] { return advance(); });
    }
    return {};
}

status gasnet_network::close() {
    DIOMP_TRY(network_base::close());
    launch::gasnet::mark_finalized();
    return {};
}

} // namespace

result<std::unique_ptr<network>> create(launch::launcher &launcher, const arena &arena,
                                        const conduit_options &options, doorbell ring) {
    auto made = std::make_unique<gasnet_network>(launcher, options, std::move(ring));
    DIOMP_TRY(made->start(arena, options));
    return std::unique_ptr<network>(std::move(made));
}

} // namespace diomp::transport::gasnet
