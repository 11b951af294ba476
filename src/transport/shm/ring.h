// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A rank's receive ring: a bounded ring of cells in shared memory, many senders, one receiver at a
// time. Each cell has a sequence number that says which side may use it (after D. Vyukov's bounded
// queue): a sender takes the cell whose number equals its ticket, fills it, and stores ticket + 1;
// the receiver takes it at ticket + 1 and stores ticket + num_cells. A sender that is killed
// between the two leaves its cell taken and the ring stuck; its job is then being ended anyway.
#pragma once

#include "base/assert.h"
#include "base/cpu.h"
#include "transport/types.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace diomp::transport::shm {

struct alignas(cache_line_bytes) ring {
    static constexpr std::uint64_t num_cells = 256;
    static constexpr std::size_t payload_bytes = 240;

    struct alignas(cache_line_bytes) cell {
        std::atomic<std::uint64_t>
            sequence; ///< minus the cell's index, so that zeroed memory is an empty ring
        std::int32_t source;
        handler_id handler;
        std::uint16_t nbytes;
        std::byte payload[payload_bytes];
    };
    static_assert(sizeof(cell) == 256);

    alignas(cache_line_bytes) std::atomic<std::uint64_t> tail; ///< next ticket for senders
    alignas(cache_line_bytes) std::atomic<std::uint64_t> head; ///< next ticket for the receiver
    cell cells[num_cells];

    bool try_push(world_rank source, handler_id handler, std::span<const std::byte> payload) {
        DIOMP_ASSERT(payload.size() <= payload_bytes, "a message fits in a cell");
        std::uint64_t ticket = tail.load(std::memory_order_relaxed);
        for (;;) {
            std::uint64_t const index = ticket % num_cells;
            cell &slot = cells[index];
            std::uint64_t const sequence = slot.sequence.load(std::memory_order_acquire) + index;
            if (sequence == ticket) {
                if (!tail.compare_exchange_weak(ticket, ticket + 1, std::memory_order_relaxed)) {
                    continue;
                }
                slot.source = source.value();
                slot.handler = handler;
                slot.nbytes = static_cast<std::uint16_t>(payload.size());
                if (!payload.empty()) {
                    std::memcpy(slot.payload, payload.data(), payload.size());
                }
                slot.sequence.store(ticket + 1 - index, std::memory_order_release);
                return true;
            }
            if (sequence < ticket) {
                return false; // the receiver has not emptied this cell yet
            }
            ticket = tail.load(std::memory_order_relaxed);
        }
    }

    [[nodiscard]] bool empty() const {
        std::uint64_t const ticket = head.load(std::memory_order_relaxed);
        std::uint64_t const index = ticket % num_cells;
        return cells[index].sequence.load(std::memory_order_acquire) + index != ticket + 1;
    }

    /// One receiver at a time (guarded by the caller's lock).
    bool try_pop(message_handler handle) {
        if (empty()) {
            return false;
        }
        std::uint64_t const ticket = head.load(std::memory_order_relaxed);
        std::uint64_t const index = ticket % num_cells;
        cell &slot = cells[index];
        DIOMP_ASSERT(slot.nbytes <= payload_bytes && slot.source >= 0,
                     "a sender has filled the cell");
        handle(message{world_rank{slot.source}, slot.handler, {slot.payload, slot.nbytes}, {}});
        DIOMP_ASSERT(head.load(std::memory_order_relaxed) == ticket,
                     "there is one receiver at a time");
        slot.sequence.store(ticket + num_cells - index, std::memory_order_release);
        head.store(ticket + 1, std::memory_order_relaxed);
        return true;
    }
};

} // namespace diomp::transport::shm
