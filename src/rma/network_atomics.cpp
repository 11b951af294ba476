// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Atomic operations by the network alone, on segments of all ranks, the own one too: what the
// network does is atomic against nothing else. It has a few operations on integers. All others are
// made of those by compare and exchange, so that no operation goes another way.
#include "rma/atomics.h"
#include "rma/rma.h"

#include <fmt/core.h>

#include <cstring>
#include <optional>

namespace diomp::rma {
namespace {

using conduit::atomic_op;

/// What the network calls it, for types of which it knows it.
std::optional<atomic_op> network_op(ompx_type_t type, ompx_op_t op) {
    bool const is_floating = type == OMPX_FLOAT || type == OMPX_DOUBLE;
    switch (op) {
    case OMPX_REPLACE:
        return atomic_op::exchange;
    case OMPX_NO_OP:
        return atomic_op::add; // of zero bits
    case OMPX_SUM:
        return is_floating ? std::nullopt : std::optional(atomic_op::add);
    default:
        return std::nullopt;
    }
}

std::uint64_t bits_at(const void *value, std::size_t nbytes) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, value, nbytes);
    return bits;
}

} // namespace

result<std::uint64_t> transfers::ask_network(world_rank peer, const memory::place &target,
                                             const conduit::atomic_call &call) {
    conduit::flight flight;
    DIOMP_TRY(engine_.transport().atomic(peer, target.remote_address, call, flight.buffer().data(),
                                         flight.count()));
    DIOMP_TRY(flight.wait(engine_, [peer] {
        return fmt::format("waiting for the network's atomic operation at rank {}", peer.value());
    }));
    return bits_at(flight.buffer().data(), call.nbytes);
}

status transfers::atomic_by_network(world_rank peer, const memory::place &target,
                                    const void *operand, void *result, ompx_type_t type,
                                    ompx_op_t op, std::size_t size) {
    if (auto const native = network_op(type, op); native) {
        conduit::atomic_call const call{*native, size,
                                        op == OMPX_NO_OP ? 0 : bits_at(operand, size)};
        if (result == nullptr && peer != options_.self) {
            conduit::completion unused;
            return engine_.transport().atomic(peer, target.remote_address, call, nullptr, unused);
        }
        auto old = ask_network(peer, target, call);
        DIOMP_TRY(old);
        if (result != nullptr) {
            std::memcpy(result, &old.value(), size);
        }
        return {};
    }
    auto seen = ask_network(peer, target, {atomic_op::add, size, 0});
    for (;;) {
        DIOMP_TRY(seen);
        std::uint64_t const old = seen.value();
        std::uint64_t wanted = old;
        apply_atomic(&wanted, operand, nullptr, type, op);
        if (wanted != old) {
            seen = ask_network(peer, target, {atomic_op::compare_exchange, size, wanted, old});
        }
        if (seen && seen.value() == old) {
            if (result != nullptr) {
                std::memcpy(result, &old, size);
            }
            return {};
        }
    }
}

status transfers::compare_swap_by_network(world_rank peer, const memory::place &target,
                                          const void *expected, const void *desired, void *result,
                                          std::size_t size) {
    auto old = ask_network(
        peer, target,
        {atomic_op::compare_exchange, size, bits_at(desired, size), bits_at(expected, size)});
    DIOMP_TRY(old);
    if (result != nullptr) {
        std::memcpy(result, &old.value(), size);
    }
    return {};
}

/// The data is there before the signal starts: nothing keeps the two in order on the way.
result<path> transfers::put_signal_by_network(world_rank peer, const memory::place &data,
                                              const void *local, std::size_t nbytes,
                                              const memory::place &signal, std::uint64_t value,
                                              ompx_op_t op) {
    path taken = path::message;
    if (nbytes > 0) {
        auto moved = move_at(direction::put, peer, data, const_cast<void *>(local), nbytes);
        DIOMP_TRY(moved);
        taken = moved.value();
        if (taken == path::conduit) {
            DIOMP_TRY(flush(peer));
        }
    }
    DIOMP_TRY(atomic_by_network(peer, signal, &value, nullptr, OMPX_UINT64, op, sizeof(value)));
    return taken;
}

} // namespace diomp::rma
