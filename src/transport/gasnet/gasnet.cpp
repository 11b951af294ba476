// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/gasnet/gasnet.h"

#include "launch/launch.h"
#include "transport/common/network_base.h"
#include "transport/gasnet/protocols.h"

#include <fmt/core.h>

#include <optional>
#include <sched.h>

namespace diomp::transport::gasnet {
namespace {

/// Transfers by GASNet's memory kinds.
class gasnet_device_transfers final : public device_transfers {
public:
    gasnet_device_transfers(network_base &net, protocols &all)
        : network_(net), protocols_(all), devices_(*all.devices()) {}

    bool supports_memory_kind(memory_kind kind) const override { return kind == memory_kind::host; }
    bool supports_memory_range(const memory_range &own) const override {
        return own.kind == memory_kind::host || devices_.supports_range(own);
    }
    bool can_transfer(world_rank rank, const memory_range &remote,
                      const memory_range &local) const override {
        return devices_.endpoint_pair(protocols_.messages().peer_of(rank), remote, local)
            .has_value();
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
    /// Calls start(peer, endpoint pair) if GASNet reaches both ranges.
    template <typename Start>
    status transfer(world_rank rank, const memory_range &remote, const memory_range &local,
                    Start &&start);

    network_base &network_;
    protocols &protocols_;
    device_memory &devices_;
};

template <typename Start>
status gasnet_device_transfers::transfer(world_rank rank, const memory_range &remote,
                                         const memory_range &local, Start &&start) {
    peer &with = protocols_.messages().peer_of(rank);
    if (with.is_failed()) {
        return with.lost_error();
    }
    if (remote.nbytes == 0) {
        return {};
    }
    auto const endpoint_pair = devices_.endpoint_pair(with, remote, local);
    if (!endpoint_pair) {
        return error(OMPX_ERR_UNSUPPORTED,
                     fmt::format("GASNet-EX does not reach {} bytes at {:#x} of {} from here",
                                 remote.nbytes, remote.address, with.name()));
    }
    {
        auto const current = devices_.context().bind_to_thread();
        start(with, *endpoint_pair);
    }
    network_.wake();
    return {};
}

status gasnet_device_transfers::put_device_memory(world_rank rank, std::uint64_t remote_address,
                                                  const void *source, std::size_t nbytes,
                                                  memory_kinds kinds, completion &source_free) {
    return transfer(rank, {kinds.remote, remote_address, nbytes},
                    {kinds.local, reinterpret_cast<std::uintptr_t>(source), nbytes},
                    [&](peer &to, gex_TM_t endpoint_pair) {
                        protocols_.native().put_via(endpoint_pair, to, remote_address, source,
                                                    nbytes, source_free);
                    });
}

status gasnet_device_transfers::get_device_memory(world_rank rank, std::uint64_t remote_address,
                                                  void *destination, std::size_t nbytes,
                                                  memory_kinds kinds, completion &done) {
    return transfer(rank, {kinds.remote, remote_address, nbytes},
                    {kinds.local, reinterpret_cast<std::uintptr_t>(destination), nbytes},
                    [&](peer &from, gex_TM_t endpoint_pair) {
                        protocols_.native().get_via(endpoint_pair, from, remote_address,
                                                    destination, nbytes, done);
                    });
}

/// Boxes of short rows by GASNet's strided transfers.
class gasnet_row_transfers final : public row_transfers {
public:
    gasnet_row_transfers(network_base &net, protocols &all) : network_(net), protocols_(all) {}

    result<bool> put_rows(world_rank rank, std::uint64_t remote_address, const void *source,
                          const rows &shape, completion &source_free) override {
        return transfer(rank, shape, [&](rdma &native, peer &to) {
            native.put_rows(to, remote_address, source, shape, source_free);
        });
    }
    result<bool> get_rows(world_rank rank, std::uint64_t remote_address, void *destination,
                          const rows &shape, completion &done) override {
        return transfer(rank, shape, [&](rdma &native, peer &from) {
            native.get_rows(from, remote_address, destination, shape, done);
        });
    }

private:
    /// Calls start(rdma, peer) if GASNet transfers rows of this shape.
    template <typename Start>
    result<bool> transfer(world_rank rank, const rows &shape, Start &&start) {
        peer &with = protocols_.messages().peer_of(rank);
        if (!protocols_.has_rdma(with) || !rdma::supports(shape)) {
            return false;
        }
        if (with.is_failed()) {
            return with.lost_error().take_failure();
        }
        start(protocols_.native(), with);
        network_.wake();
        return true;
    }

    network_base &network_;
    protocols &protocols_;
};

class gasnet_network final : public network_base {
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
    status flush(world_rank rank, completion &done) override;
    status flush_all(completion &done) override;
    bool try_send(world_rank rank, handler_id handler, std::span<const std::byte> payload) override;
    result<bool> send_long(world_rank rank, handler_id handler, std::span<const std::byte> payload,
                           std::span<const std::byte> data, completion &source_free) override;
    int poll(message_handler sink) override;
    std::string describe_path(world_rank rank) const override;
    status close() override;

private:
    bool serve() override { return protocols_->advance() || keeps_polling(); }
    /// GASNet retransmits lost packets only while it is polled.
    int max_sleep_ms(int limit_ms) override {
        return limit_ms < 0 && event_fd_reports_all_ ? -1 : 1;
    }
    void ping(network_peer &silent) override { messages().ping(static_cast<peer &>(silent)); }
    std::vector<network_peer *> known_peers() const override {
        return pointers_to(messages().peers_in_use());
    }
    void note_handled(const message &each) override;
    status drain() override;

    /// Whether a peer has requested polling for one-sided operations, which show in no message.
    /// Waiting threads need no notice: requests arrive often enough (iface::request_polling) to
    /// keep them awake.
    bool keeps_polling() {
        if (!messages().is_polling_requested()) {
            return false;
        }
        ::sched_yield();
        return true;
    }
    iface &messages() const { return protocols_->messages(); }

    std::optional<protocols> protocols_; ///< set by start()
    std::optional<gasnet_row_transfers> row_transfers_;
    std::optional<gasnet_device_transfers> device_transfers_;
    bool event_fd_reports_all_ = false; ///< the descriptor reports every arrival
};

status gasnet_network::start(const arena &arena, const conduit_options &options) {
    auto joined = launch::gasnet::join_through(launcher());
    DIOMP_TRY(joined);
    auto made = protocols::create(*joined.value(), launcher(), arena, options, arrived());
    DIOMP_TRY(made);
    protocols &all = protocols_.emplace(made.take());
    caps_.name = "gasnet";
    caps_.max_message_bytes = messages().max_message_bytes();
    caps_.rows = &row_transfers_.emplace(*this, all);
    if (all.devices() != nullptr) {
        caps_.device = &device_transfers_.emplace(*this, all);
    }
    DIOMP_TRY(launcher().fence()); // all ranks have registered their handlers
    // Messages through GASNet's shared memory do not signal the descriptor.
    gex_Rank_t num_neighbours = 0;
    gex_System_QueryNbrhdInfo(nullptr, &num_neighbours, nullptr);
    event_fd_reports_all_ = joined.value()->event_fd >= 0 && num_neighbours == 1;
    return start_thread(joined.value()->event_fd);
}

status gasnet_network::put(world_rank rank, std::uint64_t remote_address, const void *source,
                           std::size_t nbytes, completion &source_free) {
    peer &to = messages().peer_of(rank);
    if (to.is_failed()) {
        return to.lost_error();
    }
    if (nbytes == 0) {
        return {};
    }
    if (protocols_->has_rdma(to) && protocols_->native().supports_puts()) {
        protocols_->native().put(to, remote_address, source, nbytes, source_free);
    } else {
        messages().put(to, remote_address, static_cast<const std::byte *>(source), nbytes,
                       source_free);
    }
    wake();
    return {};
}

status gasnet_network::get(world_rank rank, std::uint64_t remote_address, void *destination,
                           std::size_t nbytes, completion &done) {
    peer &from = messages().peer_of(rank);
    if (from.is_failed()) {
        return from.lost_error();
    }
    if (nbytes == 0) {
        return {};
    }
    if (protocols_->has_rdma(from)) {
        protocols_->native().get(from, remote_address, destination, nbytes, done);
    } else {
        messages().get(from, remote_address, destination, nbytes, done);
    }
    wake();
    return {};
}

status gasnet_network::flush(world_rank rank, completion &done) {
    if (peer *const known = messages().find_peer(rank); known != nullptr) {
        if (known->is_failed()) {
            return known->lost_error();
        }
        known->flush(done);
    }
    return {};
}

status gasnet_network::flush_all(completion &done) {
    for (auto const &known : messages().peers_in_use()) {
        known->flush(done);
    }
    return {};
}

bool gasnet_network::try_send(world_rank rank, handler_id handler,
                              std::span<const std::byte> payload) {
    peer &to = messages().peer_of(rank);
    if (to.is_failed()) {
        return true; // dropped
    }
    bool const sent = messages().try_send(to, handler, payload);
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
    peer &to = messages().peer_of(rank);
    if (to.is_failed()) {
        return to.lost_error().take_failure();
    }
    bool const sent = messages().send_long(to, handler, payload, data);
    wake();
    return sent;
}

int gasnet_network::poll(message_handler sink) {
    bool progressed = protocols_->advance();
    if (!progressed && protocols_->is_quiet()) {
        // Completions of one-sided operations wake no sleeping thread.
        ::sched_yield();
        progressed = true;
    }
    return dispatch(progressed, sink);
}

void gasnet_network::note_handled(const message &each) {
    peer &from = messages().peer_of(each.source);
    if (from.note_handled(each.payload.size())) {
        messages().give_credit(from);
    }
}

std::string gasnet_network::describe_path(world_rank rank) const {
    return protocols_->describe(messages().peer_of(rank));
}

status gasnet_network::drain() {
    // Waits for credits as well, since the handlers are unregistered next.
    auto const is_quiet = [](const peer &each) {
        return (!each.has_unacknowledged() && !each.has_requests()) || each.is_failed();
    };
    for (auto const &each : messages().peers_in_use()) {
        advance_until([&] { return is_quiet(*each); }, [&] { return protocols_->advance(); });
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
