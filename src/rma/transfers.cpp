// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rma/internal/atomics.h"
#include "rma/rma.h"

#include <fmt/core.h>

#include <limits>

namespace diomp::rma {

const char *name(path taken) {
    constexpr std::array<const char *, num_paths> names{
        "self",   "direct",      "cross-memory attach", "messages", "conduit",
        "device", "peer device", "device IPC",          "bounce"};
    return names[static_cast<std::size_t>(taken)];
}

result<path> transfers::put(world_rank peer, void *remote, const void *local, std::size_t nbytes) {
    return move(direction::put, peer, remote, const_cast<void *>(local), nbytes);
}

result<path> transfers::get(world_rank peer, const void *remote, void *local, std::size_t nbytes) {
    return move(direction::get, peer, remote, local, nbytes);
}

result<path> transfers::move(direction dir, world_rank peer, const void *remote, void *local,
                             std::size_t nbytes) {
    if (nbytes == 0) {
        return path::self;
    }
    auto location = space_.locate(peer, remote, nbytes);
    DIOMP_TRY(location);
    return move_at(dir, peer, location.value(), local, nbytes);
}

result<path> transfers::move_at(direction dir, world_rank peer, const memory::location &location,
                                void *local, std::size_t nbytes) {
    if (location.direct == nullptr) {
        return is_remote(peer) ? move_remote(dir, peer, location, local, nbytes)
                               : move_private(dir, peer, location.remote_address, local, nbytes);
    }
    if (dir == direction::put) {
        copy_bytes(location.direct, local, nbytes, options_.stream_threshold_bytes);
    } else {
        copy_bytes(local, location.direct, nbytes, options_.stream_threshold_bytes);
    }
    return peer == options_.self ? path::self : path::direct;
}

result<path> transfers::move_private(direction dir, world_rank peer, std::uint64_t remote,
                                     void *local, std::size_t nbytes) {
    if (!attach_forbidden_.load(std::memory_order_relaxed)) {
        transport::conduit &transport = engine_.transport();
        status done = dir == direction::put ? transport.write_private(peer, remote, local, nbytes)
                                            : transport.read_private(peer, remote, local, nbytes);
        if (done) {
            return path::attach;
        }
        if (done.failure().code() != OMPX_ERR_UNSUPPORTED) {
            return done.take_failure();
        }
        attach_forbidden_.store(true, std::memory_order_relaxed);
    }
    DIOMP_TRY(move_by_messages(dir, peer, remote, local, nbytes));
    return path::message;
}

result<path> transfers::put_box(world_rank peer, void *remote, const void *local,
                                const box &shape) {
    return move_shape(direction::put, peer, remote, const_cast<void *>(local), shape);
}

result<path> transfers::get_box(world_rank peer, const void *remote, void *local,
                                const box &shape) {
    return move_shape(direction::get, peer, remote, local, shape);
}

result<path> transfers::put_section(world_rank peer, void *remote, const void *local,
                                    const section &shape) {
    return move_shape(direction::put, peer, remote, const_cast<void *>(local), shape);
}

result<path> transfers::get_section(world_rank peer, const void *remote, void *local,
                                    const section &shape) {
    return move_shape(direction::get, peer, remote, local, shape);
}

template <typename Shape>
result<path> transfers::move_shape(direction dir, world_rank peer, const void *remote, void *local,
                                   const Shape &shape) {
    auto made = box_walk::make(shape);
    DIOMP_TRY(made);
    box_walk const &walk = made.value();
    if (walk.empty()) {
        return path::self;
    }
    auto location = space_.locate(
        peer, static_cast<const std::byte *>(remote) + walk.remote_shift(), walk.remote_extent());
    DIOMP_TRY(location);
    return move_box_at(dir, peer, location.value(),
                       static_cast<std::byte *>(local) + walk.local_shift(), walk);
}

result<path> transfers::move_box_at(direction dir, world_rank peer,
                                    const memory::location &location, void *local,
                                    const box_walk &walk) {
    auto *const here = static_cast<std::byte *>(local);
    std::byte *const there = location.direct;
    if (there == nullptr) {
        return is_remote(peer) ? move_box_remote(dir, peer, location, here, walk)
                               : move_runs_at(dir, peer, location, local, walk.runs());
    }
    // Runs are usually short: no streaming.
    constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
    walk.for_each_run([&](std::size_t remote_offset, std::size_t local_offset, std::size_t nbytes) {
        if (dir == direction::put) {
            copy_bytes(there + remote_offset, here + local_offset, nbytes, never);
        } else {
            copy_bytes(here + local_offset, there + remote_offset, nbytes, never);
        }
    });
    return peer == options_.self ? path::self : path::direct;
}

result<path> transfers::put_signal(world_rank peer, void *remote, const void *local,
                                   std::size_t nbytes, std::uint64_t *signal, std::uint64_t value,
                                   ompx_signal_op_t op) {
    // Checks both targets before the first byte moves.
    auto location = locate_atomic(peer, signal, sizeof(*signal));
    DIOMP_TRY(location);
    bool const by_network = uses_network_atomics(location.value());
    if (by_network || is_remote(peer)) {
        memory::location data;
        if (nbytes > 0) {
            auto located = space_.locate(peer, remote, nbytes);
            DIOMP_TRY(located);
            data = located.value();
        }
        ompx_op_t const change = op == OMPX_SIGNAL_ADD ? OMPX_SUM : OMPX_REPLACE;
        return by_network ? put_signal_by_network(peer, data, local, nbytes, location.value(),
                                                  value, change)
                          : put_signal_remote(peer, data, local, nbytes,
                                              location.value().remote_address, value, change);
    }
    auto moved = put(peer, remote, local, nbytes);
    DIOMP_TRY(moved);
    DIOMP_TRY(atomic_fetch(peer, signal, &value, nullptr, OMPX_UINT64,
                           op == OMPX_SIGNAL_ADD ? OMPX_SUM : OMPX_REPLACE));
    return moved;
}

result<memory::location> transfers::locate_atomic(world_rank peer, void *target, std::size_t size) {
    if (reinterpret_cast<std::uintptr_t>(target) % size != 0) {
        return error(
            OMPX_ERR_ARG,
            fmt::format("the target of an atomic operation on {} bytes is not aligned to its size",
                        size),
            "declare it with its type, or align the allocation");
    }
    return space_.locate(peer, target, size);
}

status transfers::atomic_fetch(world_rank peer, void *target, const void *operand, void *result,
                               ompx_type_t type, ompx_op_t op) {
    auto size = check_atomic(type, op);
    DIOMP_TRY(size);
    auto location = locate_atomic(peer, target, size.value());
    DIOMP_TRY(location);
    if (uses_network_atomics(location.value())) {
        return atomic_by_network(peer, location.value(), operand, result, type, op, size.value());
    }
    if (location.value().direct != nullptr) {
        apply_atomic(location.value().direct, operand, result, type, op);
        engine_.wake_for_store(peer);
        return {};
    }
    return atomic_by_message(request_kind::fetch, peer, location.value(), operand, nullptr, result,
                             type, op, size.value());
}

status transfers::compare_swap(world_rank peer, void *target, const void *expected,
                               const void *desired, void *result, ompx_type_t type) {
    auto size = check_atomic(type, OMPX_REPLACE);
    DIOMP_TRY(size);
    auto location = locate_atomic(peer, target, size.value());
    DIOMP_TRY(location);
    if (uses_network_atomics(location.value())) {
        return compare_swap_by_network(peer, location.value(), expected, desired, result,
                                       size.value());
    }
    if (location.value().direct != nullptr) {
        apply_compare_swap(location.value().direct, expected, desired, result, type);
        engine_.wake_for_store(peer);
        return {};
    }
    return atomic_by_message(request_kind::compare_swap, peer, location.value(), expected, desired,
                             result, type, OMPX_REPLACE, size.value());
}

} // namespace diomp::rma
