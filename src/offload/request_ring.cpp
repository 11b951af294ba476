// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/request_ring.h"

#include "diomp/device_request.h"

#include <algorithm>
#include <cstring>

namespace diomp::offload {

static_assert(sizeof(diomp_cell) == 64 && sizeof(diomp_ring_state) == 128);

request_ring::request_ring(std::byte *memory, unsigned slot_bits)
    : state_(reinterpret_cast<diomp_ring_state *>(memory)),
      slots_(reinterpret_cast<std::uint64_t (*)[8]>(memory + sizeof(diomp_ring_state))),
      cells_(reinterpret_cast<diomp_cell *>(memory + sizeof(diomp_ring_state) +
                                            (std::size_t{1} << slot_bits) * slot_bytes)),
      slot_bits_(slot_bits) {
    reset();
}

void request_ring::reset() {
    std::memset(state_, 0, memory_bytes(slot_bits_));
    next_ = 0;
}

diomp_ring request_ring::describe(std::uint64_t *busy) const {
    diomp_ring made{};
    made.slot_bits = slot_bits_;
    made.slots = slots_;
    made.cells = cells_;
    made.state = state_;
    made.busy = busy;
    return made;
}

bool request_ring::read(std::uint64_t index, std::uint64_t (&words)[8]) const {
    std::uint64_t const lap = diomp_lap_of(index, slot_bits_);
    std::uint64_t const(&slot)[8] = slots_[index & (num_slots() - 1)];
    for (std::size_t i = 0; i < 8; ++i) {
        words[i] = __atomic_load_n(&slot[i], __ATOMIC_ACQUIRE);
        if ((words[i] & 0xff) != lap) {
            return false;
        }
    }
    return true;
}

bool request_ring::take(diomp_request &into) {
    std::uint64_t words[8];
    if (!read(next_, words)) {
        return false;
    }
    diomp_request_unpack(words, &into);
    return true;
}

void request_ring::complete(const diomp_request &what, int status,
                            std::span<const std::uint64_t> values) {
    if ((what.operation & DIOMP_REQUEST_REPLY) != 0) {
        diomp_cell &cell = cells_[next_ & (num_slots() - 1)];
        cell.status = status;
        std::ranges::copy(values, cell.values);
        __atomic_store_n(&cell.token, next_ + 1, __ATOMIC_RELEASE);
    }
    ++next_;
    __atomic_store_n(&state_->done, next_, __ATOMIC_RELEASE);
}

std::uint64_t request_ring::done() const {
    return __atomic_load_n(&state_->done, __ATOMIC_ACQUIRE);
}

std::uint64_t request_ring::stored_end(bool past_gaps) const {
    std::uint64_t words[8];
    std::uint64_t const begin = done();
    std::uint64_t end = begin;
    for (std::uint64_t index = begin; index < begin + num_slots(); ++index) {
        if (read(index, words)) {
            end = index + 1;
        } else if (!past_gaps) {
            break;
        }
    }
    return end;
}

bool request_ring::is_broken() const {
    return __atomic_load_n(&state_->broken, __ATOMIC_ACQUIRE) != 0;
}

} // namespace diomp::offload
