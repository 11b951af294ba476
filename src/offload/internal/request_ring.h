// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The proxy's side of a ring of requests of a GPU; the device's is diomp/device_ring.h.
#pragma once

#include "diomp/device_endpoint.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace diomp::offload {

/// One thread at a time, except done() and stored_end(), which any thread may call.
class request_ring {
public:
    /// `memory` has memory_bytes(slot_bits) bytes, aligned to 64, that the device can load and
    /// store.
    request_ring(std::byte *memory, unsigned slot_bits);
    [[nodiscard]] static constexpr std::size_t memory_bytes(unsigned slot_bits) {
        return sizeof(diomp_ring_state) +
               (std::size_t{1} << slot_bits) * (slot_bytes + sizeof(diomp_cell));
    }

    /// The ring as the device sees it, with nothing in it. `busy` [slot] is zero, in device memory.
    [[nodiscard]] diomp_ring describe(std::uint64_t *busy) const;
    /// Forgets all requests. The device must not use the ring meanwhile, and clears its own part.
    void reset();

    /// Reads the next request. False: it has not been stored completely yet.
    bool take(diomp_request &into);
    /// Call after each take(): stores the reply if the device waits for one, and frees the slot.
    /// At most 6 values.
    void complete(const diomp_request &what, int status, std::span<const std::uint64_t> values);

    /// Number of requests that are complete.
    [[nodiscard]] std::uint64_t done() const;
    /// The index after the last request that is stored. With `past_gaps` also behind indices that
    /// a thread has reserved and not stored yet, which takes a look at each slot.
    [[nodiscard]] std::uint64_t stored_end(bool past_gaps) const;
    /// The device has given up a request: the ring needs a reset().
    [[nodiscard]] bool is_broken() const;

private:
    static constexpr std::size_t slot_bytes = 64;
    [[nodiscard]] std::uint64_t num_slots() const { return std::uint64_t{1} << slot_bits_; }
    /// Whether the request of an index is stored; its words.
    bool read(std::uint64_t index, std::uint64_t (&words)[8]) const;

    diomp_ring_state *state_;
    std::uint64_t (*slots_)[8];
    diomp_cell *cells_;
    unsigned slot_bits_;
    std::uint64_t next_ = 0;
};

} // namespace diomp::offload
