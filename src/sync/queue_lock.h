// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Locks at an address in memory that all ranks have, symmetric or registered by
// ompx_register_symmetric(): Mellor-Crummey and Scott's queue lock, with one queue
// node per rank in the lock's own 8 bytes.
//
//   bytes 0 .. 3   at the lock's home rank: the last rank of the queue, plus 1; 0: the lock is free
//   bytes 4 .. 7   at each rank: its queue node
//
// A queue node holds the next rank of the queue plus 1 in its low bits, and flags. `waiting`: a
// thread of this rank waits. `abandoned`: a thread has waited in vain; the rank is still in the
// queue. `granted`: the rank holds the lock, or may take it. The owner sets waiting and abandoned,
// the predecessor granted, the successor the low bits: all by atomic operations, so that the
// network's and the processors' never mix.
//
// The home rank follows from the lock's offset, so that the locks of an array are spread. Words in
// registered memory are changed by their owner's handlers.
#pragma once

#include "base/ids.h"
#include "base/result.h"

#include <cstdint>

namespace diomp::memory {
class address_space;
}
namespace diomp::messaging {
class engine;
}
namespace diomp::rma {
class transfers;
}

namespace diomp::sync {

/// A lock of memory that this rank maps at `lock`. Lives for one call; any thread.
class queue_lock {
public:
    /// What changes this rank's node: stores, or handlers of this rank.
    enum class granted_by { store, message };

    queue_lock(messaging::engine &engine, rma::transfers &transfers, world_rank self,
               world_rank home, void *lock, granted_by how)
        : engine_(engine), transfers_(transfers), self_(self), home_(home), how_(how),
          last_(static_cast<std::uint32_t *>(lock)), node_(last_ + 1) {}

    /// Blocks until granted. OMPX_ERR_LOCK if this rank holds the lock or waits for it.
    status acquire();
    result<bool> try_acquire();
    /// The caller has made a fence. OMPX_ERR_LOCK if this rank does not hold the lock.
    status release();

private:
    /// Takes the free queue node of this rank. true: the rank is in the queue already, from a wait
    /// that has failed.
    result<bool> begin();
    status wait_until_granted();
    result<std::uint32_t> next_in_queue();
    /// Waits for a change of the own node.
    template <typename Ready, typename Describe>
    status wait(Ready &&ready, Describe &&describe);
    status toggle(std::uint32_t flags);

    status update(world_rank at, std::uint32_t *word, std::uint32_t operand, std::int32_t op,
                  std::uint32_t *old = nullptr);
    result<std::uint32_t> compare_swap(world_rank at, std::uint32_t *word, std::uint32_t expected,
                                       std::uint32_t desired);
    [[nodiscard]] std::uint32_t own_node() const {
        return __atomic_load_n(node_, __ATOMIC_ACQUIRE);
    }
    [[nodiscard]] std::uint32_t own_number() const {
        return static_cast<std::uint32_t>(self_.value()) + 1;
    }

    messaging::engine &engine_;
    rma::transfers &transfers_;
    world_rank self_;
    world_rank home_;
    granted_by how_;
    std::uint32_t *last_;
    std::uint32_t *node_;
};

} // namespace diomp::sync
