// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers whose two ends have been found: who copies, and through what.
#include "base/log.h"
#include "base/per_thread.h"
#include "offload/offload.h"
#include "offload/segment_memory.h"

#include <fmt/core.h>

#include <array>
#include <utility>

namespace diomp::offload {

result<rma::path> devices::move(when how, world_rank rank, const side &remote, const side &local,
                                std::size_t nbytes, route &learned) {
    int const num = num_devices();
    DIOMP_TRY(check_device(remote.device, num, remote.argument));
    DIOMP_TRY(check_device(local.device, num, local.argument));
    if (how.event != nullptr) {
        *how.event = nullptr;
    }
    if (nbytes == 0) {
        return rma::path::self;
    }
    auto found = locate(rank, remote, local, num, nbytes, learned);
    DIOMP_TRY(found);
    end const &here = found.value().here.at;
    remote_side const &there = found.value().there;
    how.on_device = !is_host(local.device, num);
    DIOMP_TRY(check_writable(there, how.way));
    if (there.far) {
        return move_far(how, rank, *there.far, here, nbytes);
    }
    if (there.on != nullptr) {
        return move_within(how, rank, {there.place.direct, there.on}, here, nbytes);
    }
    if (here.on != nullptr) {
        return move_host(how, rank, there.place, here, nbytes);
    }
    return start_or_move(how, rank, there.place, here.address, nbytes);
}

result<rma::path> devices::start_or_move(when how, world_rank rank, const memory::place &there,
                                         std::byte *here, std::size_t nbytes) {
    if (!how.at_once) {
        return transfers_.move_at(how.way, rank, there, here, nbytes);
    }
    if (!how.on_device) {
        return transfers_.start_at(how.way, rank, there, here, nbytes, how.event);
    }
    rma::local_use use;
    auto started = transfers_.start_at(how.way, rank, there, here, nbytes, how.event, &use);
    uses_.add(here, nbytes, std::move(use));
    return started;
}

std::optional<memory::place> devices::place_for_network(world_rank rank, const memory::place &there,
                                                        const end &here, extents bytes) {
    conduit::conduit const &transport = engine_.transport();
    memory::place between = there;
    between.ends.local =
        here.on == nullptr ? conduit::memory_kind::host : kind_of(here.on->made_by);
    auto const address = reinterpret_cast<std::uintptr_t>(here.address);
    if (!there.in_segment || transport.direct_base(rank) != nullptr ||
        !allows(options_.paths, device_ways::network) ||
        !transport.joins(rank, {between.ends.remote, there.remote_address, bytes.remote},
                         {between.ends.local, address, bytes.local})) {
        return std::nullopt;
    }
    return between;
}

std::optional<memory::place> devices::place_for_network(world_rank rank, const far_memory &there,
                                                        const end &here, extents bytes) {
    if (there.kind == conduit::memory_kind::host) {
        return std::nullopt;
    }
    memory::place of_owner;
    of_owner.remote_address = there.address;
    of_owner.in_segment = true;
    of_owner.ends.remote = there.kind;
    return place_for_network(rank, of_owner, here, bytes);
}

/// Memory of another rank's accelerator: by a queue of this process if it can be opened here.
result<rma::path> devices::move_far(when how, world_rank rank, const far_memory &there,
                                    const end &here, std::size_t nbytes) {
    if (there.offset && allows(options_.paths, device_ways::ipc) &&
        engine_.transport().direct_base(rank) != nullptr) {
        auto opened = peers_.open(rank, there.device, *there.offset, nbytes, here.on);
        if (opened) {
            return run(how, rank, *opened.value().by, opened.value().address, here.address, nbytes,
                       rma::path::ipc);
        }
        if (opened.failure().code() != OMPX_ERR_UNSUPPORTED) {
            return opened.take_failure();
        }
    }
    if (auto const between = place_for_network(rank, there, here, {nbytes, nbytes})) {
        return start_or_move(how, rank, *between, here.address, nbytes);
    }
    DIOMP_TRY(bounce_.ask_owner(how.way, rank, there.device, there.address, here, nbytes));
    return rma::path::bounce;
}

/// Both ends in this process, at least one of them on an accelerator.
result<rma::path> devices::move_within(when how, world_rank rank, const end &there, const end &here,
                                       std::size_t nbytes) {
    accelerator const &by = here.on != nullptr ? *here.on : *there.on;
    if (here.on == nullptr || here.on == there.on) {
        return run(how, rank, by, there.address, here.address, nbytes, rma::path::device);
    }
    if (allows(options_.paths, device_ways::peer) && here.on->backend == there.on->backend) {
        auto const reached = by.backend->can_reach(by.id, there.on->id);
        if (reached && reached.value()) {
            return run(how, rank, by, there.address, here.address, nbytes, rma::path::peer_device);
        }
    }
    bool const is_put = how.way == rma::direction::put;
    end const &from = is_put ? here : there;
    end const &to = is_put ? there : here;
    DIOMP_TRY(bounce_.out_of(*from.on, from.address, nbytes,
                             [&](std::byte *host, std::size_t done, std::size_t count) {
                                 return bounce_.copy(*to.on, to.address + done, host, count);
                             }));
    return rma::path::bounce;
}

/// Between an own accelerator and host memory of any rank.
result<rma::path> devices::move_host(when how, world_rank rank, const memory::place &there,
                                     const end &here, std::size_t nbytes) {
    if (there.direct != nullptr) {
        return run(how, rank, *here.on, there.direct, here.address, nbytes, rma::path::device);
    }
    if (auto const between = place_for_network(rank, there, here, {nbytes, nbytes})) {
        return start_or_move(how, rank, *between, here.address, nbytes);
    }
    auto const move_piece = [&](std::byte *host, std::size_t done, std::size_t count) -> status {
        memory::place piece = there;
        piece.remote_address += done;
        DIOMP_TRY(transfers_.move_at(how.way, rank, piece, host, count));
        return {};
    };
    DIOMP_TRY(how.way == rma::direction::put
                  ? bounce_.out_of(*here.on, here.address, nbytes, move_piece)
                  : bounce_.into(*here.on, here.address, nbytes, move_piece));
    return rma::path::bounce;
}

/// One copy by a queue of `by`.
result<rma::path> devices::run(when how, world_rank rank, const accelerator &by, std::byte *there,
                               std::byte *here, std::size_t nbytes, rma::path way) {
    bool const is_put = how.way == rma::direction::put;
    std::byte *const dst = is_put ? there : here;
    std::byte *const src = is_put ? here : there;
    pinned_.pin_around(there, nbytes, *by.backend);
    pinned_.pin_around(here, nbytes, *by.backend);
    if (!how.at_once) {
        DIOMP_TRY(bounce_.copy(by, dst, src, nbytes));
        return way;
    }
    may_copy_.store(true, std::memory_order_release);
    auto started = by.streams->copy(by.id, dst, src, nbytes);
    DIOMP_TRY(started);
    if (how.event == nullptr) {
        return way; // the pool knows of it, and fences ask the pool
    }
    auto event = std::make_unique<ompx_event>();
    event->moving = std::make_shared<rma::moving>();
    rma::moving &going = *event->moving;
    going.peer = rank;
    going.nbytes = nbytes;
    going.way = how.way;
    going.copy = [streams = by.streams, ticket = started.take()]() -> std::optional<status> {
        auto const done = streams->is_done(ticket);
        if (done) {
            return done.value() ? std::optional(status{}) : std::nullopt;
        }
        return status(error(done.failure().code(), done.failure().message()));
    };
    *how.event = event.release();
    return way;
}

result<end> devices::find_own(const void *pointer, int device, std::size_t nbytes) {
    // Asking OpenMP where something is mapped takes a lock and a search; a program calls with few
    // arrays at a time.
    struct known_place {
        const devices *by = nullptr;
        std::uint64_t epoch = 0;
        int device = 0;
        stretch reach;
    };
    struct known_places {
        std::array<known_place, 8> all;
        std::size_t oldest = 0;
    };
    known_places &known = per_thread<known_places>::get();
    std::uint64_t const epoch = this->epoch();
    for (known_place const &each : known.all) {
        if (each.by == this && each.epoch == epoch && each.device == device &&
            each.reach.holds(pointer, nbytes)) {
            return end{each.reach.place(pointer), nullptr};
        }
    }
    int const num = num_devices();
    DIOMP_TRY(check_device(device, num, "device"));
    auto found = locate_local(pointer, device, num, nbytes);
    DIOMP_TRY(found);
    if (epoch != 0 && found.value().reach.nbytes > 0 && found.value().at.on == nullptr) {
        known.all[known.oldest] = {this, epoch, device, found.value().reach};
        known.oldest = (known.oldest + 1) % known.all.size();
    }
    return found.value().at;
}

status devices::copy_own(const end &there, std::byte *here, std::size_t nbytes, bool to_device) {
    return to_device ? bounce_.copy(*there.on, there.address, here, nbytes)
                     : bounce_.copy(*there.on, here, there.address, nbytes);
}

std::optional<std::uint64_t> devices::place_in_segment(int device, const end &at) const {
    device_segment const *const segment = segments_.find(device);
    return segment == nullptr || at.on == nullptr ? std::nullopt : segment->offset_of(at.address);
}

result<std::byte *> devices::reach(world_rank owner, const far_memory &there, std::size_t nbytes,
                                   const accelerator &by) {
    auto const unreachable = [&] {
        return error(OMPX_ERR_UNSUPPORTED,
                     fmt::format("{} device {} of this rank does not reach device {} of rank {}",
                                 by.backend->name(), by.id.value(), there.device, owner.value()),
                     "see DIOMP_DEVICE_PATHS");
    };
    if (owner != self_) {
        if (!allows(options_.paths, device_ways::ipc)) {
            return unreachable();
        }
        auto opened = peers_.open(owner, there.device, *there.offset, nbytes, &by);
        DIOMP_TRY(opened);
        return opened.value().by == &by ? result<std::byte *>(opened.value().address)
                                        : unreachable();
    }
    device_segment const *const segment = segments_.find(there.device);
    if (segment == nullptr || segment->memory() == nullptr) {
        return unreachable();
    }
    accelerator const &on = segment->memory()->on();
    if (&on != &by) {
        if (!allows(options_.paths, device_ways::peer) || on.backend != by.backend) {
            return unreachable();
        }
        auto const reached = by.backend->can_reach(by.id, on.id);
        if (!reached || !reached.value()) {
            return unreachable();
        }
    }
    return segment->base() + *there.offset;
}

void devices::finish_uses(const std::byte *address, std::size_t nbytes) {
    if (status const finished = uses_.finish(address, nbytes); !finished) {
        log(log_level::warn, "a transfer that was under way when device memory was freed: {}",
            finished.failure().message());
    }
}

void devices::finish_copies() {
    // Looked at first, since as a rule there are none and an exchange takes as long as a small map.
    if (!may_copy_.load(std::memory_order_acquire) ||
        !may_copy_.exchange(false, std::memory_order_acq_rel)) {
        return;
    }
    if (status const finished = transfers_.wait_for_devices(); !finished) {
        log(log_level::warn, "a transfer that was under way when device memory was freed: {}",
            finished.failure().message());
    }
}

} // namespace diomp::offload
