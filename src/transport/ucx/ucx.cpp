// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/ucx/ucx.h"

#include "base/log.h"
#include "launch/launch.h"
#include "transport/arena.h"
#include "transport/common/backoff.h"
#include "transport/common/network_base.h"
#include "transport/ucx/iface.h"

#include <cstring>
#include <optional>

namespace diomp::transport::ucx {
namespace {

status status_of(result<bool> outcome) {
    if (!outcome) {
        return outcome.take_failure();
    }
    return {};
}

/// An endpoint whose queue has space, and the lock of its worker.
struct locked_endpoint {
    std::unique_lock<std::mutex> lock;
    endpoint *to;
};

result<locked_endpoint> wait_for_space(iface &all, peer &target, worker &owner) {
    locked_endpoint found{std::unique_lock(owner.mutex), nullptr};
    backoff idle;
    for (;;) {
        if (target.is_failed()) {
            return target.lost_error().take_failure();
        }
        auto connected = target.endpoint_of(owner);
        DIOMP_TRY(connected);
        found.to = connected.value();
        if (!found.to->is_full()) [[likely]] {
            return found;
        }
        found.lock.unlock();
        if (all.advance()) {
            idle.reset();
        } else {
            idle.pause();
        }
        found.lock.lock();
    }
}

/// Waits also until fewer than max_gets are in flight.
result<locked_endpoint> wait_for_get_space(iface &all, peer &target) {
    advance_until([&] { return !target.has_many_gets() || target.is_failed(); },
                  [&] { return all.advance(); });
    return wait_for_space(all, target, all.own_worker());
}

void request_get(endpoint &from, std::uint64_t remote_address, void *destination,
                 std::size_t nbytes, memory_kinds kinds, completion &done) {
    get_body const body{nbytes, from.target.add_get(destination, nbytes, kinds.local, done)};
    std::memcpy(
        from.packets.append(record_kind::get, remote_address, sizeof(body), 0, to_byte(kinds)),
        &body, sizeof(body));
    from.packets.transmit_soon();
}

/// Transfers of device memory, which UCX reads and writes directly.
class ucx_device_transfers final : public device_transfers {
public:
    ucx_device_transfers(network_base &net, iface &all) : network_(net), iface_(all) {}

    bool supports_memory_kind(memory_kind kind) const override {
        return iface_.ctx().supports_memory_kind(kind);
    }
    bool supports_memory_range(const memory_range &own) const override {
        return supports_memory_kind(own.kind);
    }
    bool can_transfer(world_rank /*rank*/, const memory_range & /*remote*/,
                      const memory_range &local) const override {
        return supports_memory_kind(local.kind);
    }
    status put_device_memory(world_rank rank, std::uint64_t remote_address, const void *source,
                             std::size_t nbytes, memory_kinds kinds,
                             completion &source_free) override;
    status get_device_memory(world_rank rank, std::uint64_t remote_address, void *destination,
                             std::size_t nbytes, memory_kinds kinds, completion &done) override;
    void bind_device_context(const device_context_binder &binder) override {
        iface_.ctx().device_ctx().bind_device_context(binder);
    }

private:
    network_base &network_;
    iface &iface_;
};

status ucx_device_transfers::put_device_memory(world_rank rank, std::uint64_t remote_address,
                                               const void *source, std::size_t nbytes,
                                               memory_kinds kinds, completion &source_free) {
    if (nbytes == 0) {
        return {};
    }
    {
        auto const device_guard = iface_.ctx().device_ctx().bind_to_thread();
        auto found = wait_for_space(iface_, iface_.peer_of(rank), iface_.own_worker());
        DIOMP_TRY(found);
        endpoint &to = *found.value().to;
        to.mark_unflushed();
        std::uint32_t const num_sent =
            to.send_long(record_kind::put, remote_address, source, nbytes, &source_free, kinds);
        to.epoch.add_put(num_sent, nbytes);
    }
    network_.wake();
    return {};
}

status ucx_device_transfers::get_device_memory(world_rank rank, std::uint64_t remote_address,
                                               void *destination, std::size_t nbytes,
                                               memory_kinds kinds, completion &done) {
    if (nbytes == 0) {
        return {};
    }
    auto found = wait_for_get_space(iface_, iface_.peer_of(rank));
    DIOMP_TRY(found);
    request_get(*found.value().to, remote_address, destination, nbytes, kinds, done);
    found.value().lock.unlock();
    network_.wake();
    return {};
}

class ucx_network final : public network_base, public network_atomics {
public:
    ucx_network(launch::launcher &launcher, const conduit_options &options, doorbell ring)
        : network_base(launcher, options, std::move(ring)) {}
    ~ucx_network() override { stop_thread(); }
    ucx_network(const ucx_network &) = delete;
    ucx_network &operator=(const ucx_network &) = delete;

    status start(const arena &arena, const conduit_options &options);

    status put(world_rank rank, std::uint64_t remote_address, const void *source,
               std::size_t nbytes, completion &source_free) override;
    status get(world_rank rank, std::uint64_t remote_address, void *destination, std::size_t nbytes,
               completion &done) override;
    status atomic(world_rank rank, std::uint64_t remote_address, const atomic_call &call,
                  void *result, completion &done) override;
    status flush(world_rank rank, completion &done) override;
    status flush_all(completion &done) override;
    bool try_send(world_rank rank, handler_id handler, std::span<const std::byte> payload) override;
    result<bool> send_long(world_rank rank, handler_id handler, std::span<const std::byte> payload,
                           std::span<const std::byte> data, completion &source_free) override;
    int poll(message_handler sink) override { return dispatch(iface_->advance(), sink); }
    std::string describe_path(world_rank rank) const override;
    void freeze() override { iface_->freeze(); }

private:
    bool serve() override { return iface_->advance(true); }
    bool arm() override { return iface_->arm(); }
    void ping(network_peer &silent) override { iface_->ping(static_cast<peer &>(silent)); }
    std::vector<network_peer *> known_peers() const override {
        return pointers_to(iface_->all_peers());
    }
    std::string fail(network_peer &lost, const std::string &why) override {
        return iface_->fail(static_cast<peer &>(lost), why);
    }
    void note_handled(const message &each) override;
    status drain() override;

    /// False if there is nothing to flush.
    static result<bool> flush_endpoint(endpoint &to, completion &done, bool also_messages);

    std::unique_ptr<iface> iface_;
    std::optional<ucx_device_transfers> device_transfers_;
};

status ucx_network::start(const arena &arena, const conduit_options &options) {
    auto made = iface::create(launcher(), arena, options, arrived(),
                              [this](peer &lost, const std::string &why) { fail_peer(lost, why); });
    DIOMP_TRY(made);
    iface_ = made.take();
    caps_.name = "ucx";
    caps_.max_message_bytes = max_message_payload_bytes;
    caps_.transfers_any_device_memory = true;
    caps_.atomics = iface_->ctx().options().native_atomics ? this : nullptr;
    caps_.device = &device_transfers_.emplace(*this, *iface_);
    return start_thread(iface_->event_fd());
}

status ucx_network::put(world_rank rank, std::uint64_t remote_address, const void *source,
                        std::size_t nbytes, completion &source_free) {
    if (nbytes == 0) {
        return {};
    }
    {
        auto found = wait_for_space(*iface_, iface_->peer_of(rank), iface_->own_worker());
        DIOMP_TRY(found);
        endpoint &to = *found.value().to;
        to.mark_unflushed();
        if (to.rdma.is_used_for_transfers()) {
            to.rdma.put(remote_address, source, nbytes, source_free);
        } else if (nbytes <= max_packed_bytes) {
            to.epoch.add_put(1, nbytes);
            std::memcpy(to.packets.append(record_kind::put, remote_address, nbytes), source,
                        nbytes);
        } else {
            std::uint32_t const num_sent =
                to.send_long(record_kind::put, remote_address, source, nbytes, &source_free);
            to.epoch.add_put(num_sent, nbytes);
        }
    }
    wake();
    return {};
}

status ucx_network::get(world_rank rank, std::uint64_t remote_address, void *destination,
                        std::size_t nbytes, completion &done) {
    if (nbytes == 0) {
        return {};
    }
    peer &target = iface_->peer_of(rank);
    auto found = wait_for_get_space(*iface_, target);
    DIOMP_TRY(found);
    endpoint &to = *found.value().to;
    if (to.rdma.is_used_for_transfers()) {
        to.rdma.get(remote_address, destination, nbytes, done);
    } else {
        request_get(to, remote_address, destination, nbytes, {}, done);
    }
    found.value().lock.unlock();
    wake();
    return {};
}

status ucx_network::atomic(world_rank rank, std::uint64_t remote_address, const atomic_call &call,
                           void *result, completion &done) {
    {
        auto found = wait_for_space(*iface_, iface_->peer_of(rank), iface_->own_worker());
        DIOMP_TRY(found);
        endpoint &to = *found.value().to;
        if (!to.rdma.has_key()) {
            return error(OMPX_ERR_UNSUPPORTED,
                         to.target.name() + " is not reached by UCX's atomic operations (" +
                             to.target.path() + ")",
                         "set DIOMP_NETWORK_ATOMICS=messages");
        }
        if (result == nullptr) {
            to.mark_unflushed();
        }
        to.rdma.atomic(remote_address, call, result, done);
    }
    wake();
    return {};
}

result<bool> ucx_network::flush_endpoint(endpoint &to, completion &done, bool also_messages) {
    if (to.target.is_failed()) {
        return to.target.lost_error().take_failure();
    }
    bool const has_rdma = to.rdma.flush(done);
    if (!to.epoch.needs_flush(also_messages)) {
        return to.target.join_flush(to.owner.index, done) || has_rdma;
    }
    to.target.add_flush(to, done);
    to.packets.append(record_kind::flush, to.epoch.num_puts(), 0);
    to.epoch.close();
    to.packets.transmit();
    return true;
}

status ucx_network::flush(world_rank rank, completion &done) {
    peer *const target = iface_->find_peer(rank);
    if (target == nullptr) {
        return {};
    }
    status outcome;
    iface_->for_each_worker([&](worker &owner) {
        std::lock_guard const guard(owner.mutex);
        if (endpoint *const to = target->find_endpoint(owner); to != nullptr && outcome.ok()) {
            outcome = status_of(flush_endpoint(*to, done, false));
        }
    });
    wake();
    return outcome;
}

status ucx_network::flush_all(completion &done) {
    // The cost is proportional to the number of endpoints with unflushed puts.
    status outcome;
    bool is_wake_due = false;
    iface_->for_each_worker([&](worker &owner) {
        std::lock_guard const guard(owner.mutex);
        is_wake_due = is_wake_due || !owner.unflushed.empty();
        std::erase_if(owner.unflushed, [&](endpoint *each) {
            if (!outcome.ok()) {
                return false;
            }
            auto waiting = flush_endpoint(*each, done, false);
            if (!waiting) {
                outcome = waiting.take_failure();
                return false;
            }
            each->is_unflushed = waiting.value();
            return !waiting.value();
        });
    });
    if (is_wake_due) {
        wake();
    }
    return outcome;
}

bool ucx_network::try_send(world_rank rank, handler_id handler,
                           std::span<const std::byte> payload) {
    peer &target = iface_->peer_of(rank);
    if (target.is_failed()) {
        return true; // dropped: the peer has failed, and waits for its replies end with an error
    }
    if (!target.take_credit(payload.size())) {
        return false;
    }
    {
        // All messages use one worker, since another thread may send a thread's queued message, and
        // messages of a thread are ordered.
        worker &owner = iface_->first_worker();
        std::lock_guard const guard(owner.mutex);
        auto connected = target.endpoint_of(owner);
        if (!connected) {
            log(log_level::error, "{}", connected.failure().message());
            owner.mark_broken(target);
            return true;
        }
        endpoint &to = *connected.value();
        if (to.is_full()) {
            target.return_credit(message_cost(payload.size()));
            return false;
        }
        std::byte *const at = to.packets.append_message(payload.size(), handler);
        if (!payload.empty()) {
            std::memcpy(at, payload.data(), payload.size());
        }
        to.epoch.note_message();
        to.packets.transmit_soon();
    }
    wake();
    return true;
}

result<bool> ucx_network::send_long(world_rank rank, handler_id handler,
                                    std::span<const std::byte> payload,
                                    std::span<const std::byte> data, completion &source_free) {
    if (data.size() > chunk_bytes || payload.size() > max_am_long_payload_bytes) {
        return false;
    }
    peer &target = iface_->peer_of(rank);
    {
        worker &owner = iface_->own_worker();
        std::lock_guard const guard(owner.mutex);
        if (target.is_failed()) {
            return target.lost_error().take_failure();
        }
        auto connected = target.endpoint_of(owner);
        DIOMP_TRY(connected);
        endpoint &to = *connected.value();
        if (to.is_full() || !to.uses_chunks) {
            return false;
        }
        to.epoch.note_message();
        to.send_long_message(handler, payload, data, source_free);
    }
    wake();
    return true;
}

void ucx_network::note_handled(const message &each) {
    peer &from = iface_->peer_of(each.source);
    if (from.note_handled(each.payload.size())) {
        worker &receiver = iface_->first_worker();
        std::lock_guard const guard(receiver.mutex);
        iface_->send_reply(
            receiver, {each.source, record_kind::credit, 0, from.take_handled_bytes(), 0, 0, {}});
        receiver.transmit_due_packets();
    }
}

std::string ucx_network::describe_path(world_rank rank) const {
    peer *const known = iface_->find_peer(rank);
    std::string const path = known == nullptr ? "" : known->path();
    return path.empty() ? "ucx (not used yet)" : path;
}

status ucx_network::drain() {
    completion done;
    status outcome;
    for (auto const &known : iface_->all_peers()) {
        iface_->for_each_worker([&](worker &owner) {
            std::lock_guard const guard(owner.mutex);
            endpoint *const to = known->find_endpoint(owner);
            if (to != nullptr && !known->is_failed() && outcome.ok()) {
                outcome = status_of(flush_endpoint(*to, done, true));
            }
        });
    }
    advance_until([&] { return done.is_done(); }, [&] { return iface_->advance(); });
    return outcome;
}

} // namespace

result<std::unique_ptr<network>> create(launch::launcher &launcher, const arena &arena,
                                        const conduit_options &options, doorbell ring) {
    auto made = std::make_unique<ucx_network>(launcher, options, std::move(ring));
    DIOMP_TRY(made->start(arena, options));
    return std::unique_ptr<network>(std::move(made));
}

} // namespace diomp::transport::ucx
