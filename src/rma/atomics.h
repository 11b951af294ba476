// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Atomic operations: by this core on mapped memory, by the network where the job has chosen that,
// otherwise by the target.
#pragma once

#include "diomp/types.h"
#include "memory/location.h"
#include "rma/path.h"

#include <cstddef>
#include <memory>

namespace diomp::memory {
class address_space;
}

namespace diomp::messaging {
class engine;
}

namespace diomp::rma {

class native_atomics;
class remote_transfers;
struct target_request;
class target_requests;

/// Any thread. `result` may be null: then the call need not wait for the peer.
class atomics {
public:
    atomics(world_rank self, memory::address_space &space, messaging::engine &engine,
            target_requests &requests, remote_transfers &remote);
    ~atomics();

    status fetch(world_rank peer, void *target, const void *operand, void *result, ompx_type_t type,
                 ompx_op_t op);
    status compare_swap(world_rank peer, void *target, const void *expected, const void *desired,
                        void *result, ompx_type_t type);

    /// Nonblocking forms. *event is null if the operation is complete on return: on memory of ranks
    /// of this node, and by the network's atomics. With a null `event` the next fence completes the
    /// operation. `result` must live until then.
    status start_fetch(world_rank peer, void *target, const void *operand, void *result,
                       ompx_type_t type, ompx_op_t op, ompx_event_t *event);
    status start_compare_swap(world_rank peer, void *target, const void *expected,
                              const void *desired, void *result, ompx_type_t type,
                              ompx_event_t *event);

    /// The size of a type. OMPX_ERR_ARG: atomics do not accept it, or not with this operator.
    static result<std::size_t> check(ompx_type_t type, ompx_op_t op);
    /// Also checks the alignment.
    result<memory::location> locate(world_rank peer, void *target, std::size_t size);
    [[nodiscard]] native_atomics &native() { return *native_; }

private:
    /// Whether the calling thread completes operations on this target in the call.
    [[nodiscard]] bool completes_here(const memory::location &target) const;
    /// For targets of which completes_here() is true.
    status fetch_here(world_rank peer, const memory::location &target, const void *operand,
                      void *result, ompx_type_t type, ompx_op_t op, std::size_t size);
    status compare_swap_here(world_rank peer, const memory::location &target, const void *expected,
                             const void *desired, void *result, ompx_type_t type, std::size_t size);
    status run_at_target(world_rank peer, const memory::location &target,
                         const target_request &request, void *result);
    status finish_native(world_rank peer, const memory::location &target, const void *result,
                         ompx_event_t *event);
    status start_at_target(world_rank peer, const memory::location &target,
                           const target_request &request, void *result, ompx_event_t *event);

    memory::address_space &space_;
    messaging::engine &engine_;
    target_requests &requests_;
    remote_transfers &remote_;
    std::unique_ptr<native_atomics> const native_;
};

} // namespace diomp::rma
