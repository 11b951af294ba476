// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rma/internal/native_atomics.h"

#include "diomp/types.h"
#include "messaging/pooled_completion.h"
#include "rma/internal/apply_atomic.h"
#include "transport/conduit.h"

#include <fmt/core.h>

#include <cstring>
#include <optional>

namespace diomp::rma {
namespace {

using transport::atomic_op;

/// The network's operation for `op`, if it supports the type.
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

result<std::uint64_t> native_atomics::run(world_rank peer, const memory::location &target,
                                          const transport::atomic_call &call) {
    messaging::pooled_completion pooled_completion;
    DIOMP_TRY(engine_.transport().atomics()->atomic(peer, target.remote_address, call,
                                                    pooled_completion.buffer().data(),
                                                    pooled_completion.count()));
    DIOMP_TRY(pooled_completion.wait(engine_, [peer] {
        return fmt::format("waiting for the network's atomic operation at rank {}", peer.value());
    }));
    return bits_at(pooled_completion.buffer().data(), call.nbytes);
}

status native_atomics::fetch(world_rank peer, const memory::location &target, const void *operand,
                             void *result, ompx_type_t type, ompx_op_t op, std::size_t size) {
    if (auto const native = network_op(type, op); native) {
        transport::atomic_call const call{*native, size,
                                          op == OMPX_NO_OP ? 0 : bits_at(operand, size)};
        if (result == nullptr && peer != self_) {
            transport::completion unused;
            return engine_.transport().atomics()->atomic(peer, target.remote_address, call, nullptr,
                                                         unused);
        }
        auto old = run(peer, target, call);
        DIOMP_TRY(old);
        if (result != nullptr) {
            std::memcpy(result, &old.value(), size);
        }
        return {};
    }
    auto seen = run(peer, target, {atomic_op::add, size, 0});
    for (;;) {
        DIOMP_TRY(seen);
        std::uint64_t const old = seen.value();
        std::uint64_t changed = old;
        apply_atomic(&changed, operand, nullptr, type, op);
        if (changed != old) {
            seen = run(peer, target, {atomic_op::compare_exchange, size, changed, old});
        }
        if (seen && seen.value() == old) {
            if (result != nullptr) {
                std::memcpy(result, &old, size);
            }
            return {};
        }
    }
}

status native_atomics::compare_swap(world_rank peer, const memory::location &target,
                                    const void *expected, const void *desired, void *result,
                                    std::size_t size) {
    auto old =
        run(peer, target,
            {atomic_op::compare_exchange, size, bits_at(desired, size), bits_at(expected, size)});
    DIOMP_TRY(old);
    if (result != nullptr) {
        std::memcpy(result, &old.value(), size);
    }
    return {};
}

} // namespace diomp::rma
