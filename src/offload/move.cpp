// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers between two located sides: chooses the path and the copier.
#include "base/log.h"
#include "base/per_thread.h"
#include "offload/internal/segment_memory.h"
#include "offload/offload.h"

#include <fmt/core.h>

#include <array>
#include <utility>

namespace diomp::offload {

result<rma::path> devices::move(transfer_mode mode, world_rank rank, const side &remote,
                                const side &local, std::size_t nbytes, translation &reusable) {
    int const num = num_devices();
    DIOMP_TRY(check_device(remote.device, num, remote.argument));
    DIOMP_TRY(check_device(local.device, num, local.argument));
    if (mode.event != nullptr) {
        *mode.event = nullptr;
    }
    if (nbytes == 0) {
        return rma::path::self;
    }
    auto found = locate(rank, remote, local, num, nbytes, reusable);
    DIOMP_TRY(found);
    device_ptr const &here = found.value().here.at;
    remote_side const &there = found.value().there;
    mode.on_device = !is_host(local.device, num);
    DIOMP_TRY(check_writable(there, mode.dir));
    if (there.device_memory) {
        return move_remote_device(mode, rank, *there.device_memory, here, nbytes);
    }
    if (there.on != nullptr) {
        return move_in_process(mode, rank, {there.location.direct, there.on}, here, nbytes);
    }
    if (here.on != nullptr) {
        return move_host(mode, rank, there.location, here, nbytes);
    }
    return start_or_move(mode, rank, there.location, here.address, nbytes);
}

result<rma::path> devices::start_or_move(transfer_mode mode, world_rank rank,
                                         const memory::location &there, std::byte *here,
                                         std::size_t nbytes) {
    if (!mode.nonblocking) {
        return transfers_.move_at(mode.dir, rank, there, here, nbytes);
    }
    if (!mode.on_device) {
        return transfers_.start_at(mode.dir, rank, there, here, nbytes, mode.event);
    }
    rma::local_completion local_done;
    auto started =
        transfers_.start_at(mode.dir, rank, there, here, nbytes, mode.event, &local_done);
    inflight_.add(here, nbytes, std::move(local_done));
    return started;
}

std::optional<memory::location> devices::location_for_network(world_rank rank,
                                                              const memory::location &there,
                                                              const device_ptr &here,
                                                              extents bytes) {
    transport::conduit const &transport = engine_.transport();
    memory::location between = there;
    between.kinds.local =
        here.on == nullptr ? transport::memory_kind::host : kind_of(here.on->made_by);
    auto const address = reinterpret_cast<std::uintptr_t>(here.address);
    if (!there.in_segment || transport.direct_base(rank) != nullptr ||
        !allows(options_.paths, device_path_set::network) ||
        !transport.can_transfer(rank, {between.kinds.remote, there.remote_address, bytes.remote},
                                {between.kinds.local, address, bytes.local})) {
        return std::nullopt;
    }
    return between;
}

std::optional<memory::location> devices::location_for_network(world_rank rank,
                                                              const remote_device_memory &there,
                                                              const device_ptr &here,
                                                              extents bytes) {
    if (there.kind == transport::memory_kind::host) {
        return std::nullopt;
    }
    memory::location of_owner;
    of_owner.remote_address = there.address;
    of_owner.in_segment = true;
    of_owner.kinds.remote = there.kind;
    return location_for_network(rank, of_owner, here, bytes);
}

/// Transfers with another rank's accelerator: by a queue of this process if the memory can be
/// opened here.
result<rma::path> devices::move_remote_device(transfer_mode mode, world_rank rank,
                                              const remote_device_memory &there,
                                              const device_ptr &here, std::size_t nbytes) {
    if (there.offset && allows(options_.paths, device_path_set::ipc) &&
        engine_.transport().direct_base(rank) != nullptr) {
        auto opened = peers_.open(rank, there.device, *there.offset, nbytes, here.on);
        if (opened) {
            return copy_on_stream(mode, rank, *opened.value().by, opened.value().address,
                                  here.address, nbytes, rma::path::ipc);
        }
        if (opened.failure().code() != OMPX_ERR_UNSUPPORTED) {
            return opened.take_failure();
        }
    }
    if (auto const between = location_for_network(rank, there, here, {nbytes, nbytes})) {
        return start_or_move(mode, rank, *between, here.address, nbytes);
    }
    DIOMP_TRY(
        bounce_.request_from_owner(mode.dir, rank, there.device, there.address, here, nbytes));
    return rma::path::bounce;
}

/// Transfers within this process, with an accelerator on at least one side.
result<rma::path> devices::move_in_process(transfer_mode mode, world_rank rank,
                                           const device_ptr &there, const device_ptr &here,
                                           std::size_t nbytes) {
    accelerator const &by = here.on != nullptr ? *here.on : *there.on;
    if (here.on == nullptr || here.on == there.on) {
        return copy_on_stream(mode, rank, by, there.address, here.address, nbytes,
                              rma::path::device);
    }
    if (allows(options_.paths, device_path_set::peer) && here.on->backend == there.on->backend) {
        auto const access = by.backend->can_access(by.id, there.on->id);
        if (access && access.value()) {
            return copy_on_stream(mode, rank, by, there.address, here.address, nbytes,
                                  rma::path::peer_device);
        }
    }
    bool const is_put = mode.dir == rma::direction::put;
    device_ptr const &from = is_put ? here : there;
    device_ptr const &to = is_put ? there : here;
    DIOMP_TRY(copies_.copy_out(*from.on, from.address, nbytes,
                               [&](std::byte *host, std::size_t done, std::size_t count) {
                                   return copies_.copy(*to.on, to.address + done, host, count);
                               }));
    return rma::path::bounce;
}

/// Transfers between an own accelerator and host memory of any rank.
result<rma::path> devices::move_host(transfer_mode mode, world_rank rank,
                                     const memory::location &there, const device_ptr &here,
                                     std::size_t nbytes) {
    if (there.direct != nullptr) {
        return copy_on_stream(mode, rank, *here.on, there.direct, here.address, nbytes,
                              rma::path::device);
    }
    if (auto const between = location_for_network(rank, there, here, {nbytes, nbytes})) {
        return start_or_move(mode, rank, *between, here.address, nbytes);
    }
    auto const move_chunk = [&](std::byte *host, std::size_t done, std::size_t count) -> status {
        memory::location chunk = there;
        chunk.remote_address += done;
        DIOMP_TRY(transfers_.move_at(mode.dir, rank, chunk, host, count));
        return {};
    };
    DIOMP_TRY(mode.dir == rma::direction::put
                  ? copies_.copy_out(*here.on, here.address, nbytes, move_chunk)
                  : copies_.copy_in(*here.on, here.address, nbytes, move_chunk));
    return rma::path::bounce;
}

/// Copies on a queue of `by`.
result<rma::path> devices::copy_on_stream(transfer_mode mode, world_rank rank,
                                          const accelerator &by, std::byte *there, std::byte *here,
                                          std::size_t nbytes, rma::path path_used) {
    bool const is_put = mode.dir == rma::direction::put;
    std::byte *const dst = is_put ? there : here;
    std::byte *const src = is_put ? here : there;
    copies_.segment_pins().pin_allocation(there, nbytes, *by.backend);
    copies_.segment_pins().pin_allocation(here, nbytes, *by.backend);
    if (!mode.nonblocking) {
        DIOMP_TRY(copies_.copy(by, dst, src, nbytes));
        return path_used;
    }
    has_unwaited_copies_.store(true, std::memory_order_release);
    auto started = by.streams->copy(by.id, dst, src, nbytes);
    DIOMP_TRY(started);
    if (mode.event == nullptr) {
        return path_used; // the stream pool tracks it, and fences poll the pool
    }
    auto event = std::make_unique<ompx_event>();
    event->pending_transfer = std::make_shared<rma::pending_transfer>();
    rma::pending_transfer &pending = *event->pending_transfer;
    pending.peer = rank;
    pending.nbytes = nbytes;
    pending.dir = mode.dir;
    pending.copy = [streams = by.streams, ticket = started.take()]() -> std::optional<status> {
        auto const done = streams->is_done(ticket);
        if (done) {
            return done.value() ? std::optional(status{}) : std::nullopt;
        }
        return status(error(done.failure().code(), done.failure().message()));
    };
    *mode.event = event.release();
    return path_used;
}

result<device_ptr> devices::locate_own(const void *pointer, int device, std::size_t nbytes) {
    // OpenMP's lookup of a mapping takes a lock and a search. Results are cached per thread, since
    // a program passes few different arrays.
    struct cached_lookup {
        const devices *by = nullptr;
        std::uint64_t epoch = 0;
        int device = 0;
        translated_range range;
    };
    struct lookup_cache {
        std::array<cached_lookup, 8> all;
        std::size_t oldest = 0;
    };
    lookup_cache &lookups = per_thread<lookup_cache>::get();
    std::uint64_t const epoch = this->epoch();
    for (cached_lookup const &each : lookups.all) {
        if (each.by == this && each.epoch == epoch && each.device == device &&
            each.range.contains(pointer, nbytes)) {
            return device_ptr{each.range.translate(pointer), nullptr};
        }
    }
    int const num = num_devices();
    DIOMP_TRY(check_device(device, num, "device"));
    auto found = locate_local(pointer, device, num, nbytes);
    DIOMP_TRY(found);
    if (epoch != 0 && found.value().range.nbytes > 0 && found.value().at.on == nullptr) {
        lookups.all[lookups.oldest] = {this, epoch, device, found.value().range};
        lookups.oldest = (lookups.oldest + 1) % lookups.all.size();
    }
    return found.value().at;
}

status devices::copy_own(const device_ptr &there, std::byte *here, std::size_t nbytes,
                         bool to_device) {
    return to_device ? copies_.copy(*there.on, there.address, here, nbytes)
                     : copies_.copy(*there.on, here, there.address, nbytes);
}

std::optional<std::uint64_t> devices::offset_in_segment(int device, const device_ptr &at) const {
    device_segment const *const segment = segments_.find(device);
    return segment == nullptr || at.on == nullptr ? std::nullopt : segment->offset_of(at.address);
}

result<std::byte *> devices::address_for(world_rank owner, const remote_device_memory &there,
                                         std::size_t nbytes, const accelerator &by) {
    auto const no_access = [&] {
        return error(OMPX_ERR_UNSUPPORTED,
                     fmt::format("{} device {} of this rank cannot access device {} of rank {}",
                                 by.backend->name(), by.id.value(), there.device, owner.value()),
                     "see DIOMP_DEVICE_PATHS");
    };
    if (owner != self_) {
        if (!allows(options_.paths, device_path_set::ipc)) {
            return no_access();
        }
        auto opened = peers_.open(owner, there.device, *there.offset, nbytes, &by);
        DIOMP_TRY(opened);
        return opened.value().by == &by ? result<std::byte *>(opened.value().address) : no_access();
    }
    device_segment const *const segment = segments_.find(there.device);
    if (segment == nullptr || segment->memory() == nullptr) {
        return no_access();
    }
    accelerator const &on = segment->memory()->on();
    if (&on != &by) {
        if (!allows(options_.paths, device_path_set::peer) || on.backend != by.backend) {
            return no_access();
        }
        auto const access = by.backend->can_access(by.id, on.id);
        if (!access || !access.value()) {
            return no_access();
        }
    }
    return segment->base() + *there.offset;
}

void devices::wait_inflight(const std::byte *address, std::size_t nbytes) {
    if (status const finished = inflight_.wait_until_unused(address, nbytes); !finished) {
        log(log_level::warn, "a transfer in flight when device memory was freed failed: {}",
            finished.failure().message());
    }
}

void devices::wait_copies() {
    // Loaded first: usually there are no copies, and an exchange takes as long as a small map.
    if (!has_unwaited_copies_.load(std::memory_order_acquire) ||
        !has_unwaited_copies_.exchange(false, std::memory_order_acq_rel)) {
        return;
    }
    if (status const finished = transfers_.wait_for_devices(); !finished) {
        log(log_level::warn, "a transfer in flight when device memory was freed failed: {}",
            finished.failure().message());
    }
}

} // namespace diomp::offload
