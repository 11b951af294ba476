// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Atomic operations by the network only, on segments of all ranks including the calling rank:
// network atomics are not atomic against any others. The network has a few operations on integers.
// All others are built on its compare and exchange, so that every operation goes through the
// network.
#pragma once

#include "diomp/types.h"
#include "memory/location.h"
#include "messaging/engine.h"
#include "transport/conduit.h"

#include <cstddef>
#include <cstdint>

namespace diomp::rma {

/// Any thread. `size`: of the operands, in bytes. `result` may be null.
class native_atomics {
public:
    native_atomics(world_rank self, messaging::engine &engine) : self_(self), engine_(engine) {}

    /// Whether operations on this target must use the network.
    [[nodiscard]] bool apply_to(const memory::location &target) const {
        return target.in_segment && engine_.transport().atomics() != nullptr;
    }
    status fetch(world_rank peer, const memory::location &target, const void *operand, void *result,
                 ompx_type_t type, ompx_op_t op, std::size_t size);
    status compare_swap(world_rank peer, const memory::location &target, const void *expected,
                        const void *desired, void *result, std::size_t size);

private:
    /// Returns the old value.
    result<std::uint64_t> run(world_rank peer, const memory::location &target,
                              const transport::atomic_call &call);

    world_rank self_;
    messaging::engine &engine_;
};

} // namespace diomp::rma
