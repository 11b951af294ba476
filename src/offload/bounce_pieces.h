// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What transfers through host memory have in common: the size of their pieces, how many are under
// way, and the pinned memory that they go through. For bounce*.cpp.
#pragma once

#include "offload/bounce.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <mutex>
#include <type_traits>
#include <utility>

namespace diomp::offload {

/// Long enough that a round trip to the owner is little beside its transfer.
inline constexpr std::size_t piece_bytes = std::size_t{512} << 10;
/// Pieces that an asker has under way at a time.
inline constexpr std::size_t depth = 4;
/// One that a device copies while the other is given or taken.
inline constexpr std::size_t lane_pieces = 2;

inline void keep_first(status &outcome, status later) {
    if (outcome) {
        outcome = std::move(later);
    }
}

struct piece {
    std::size_t begin; ///< in the transfer
    std::size_t nbytes;
    std::byte *slot;
};

/// Cuts a transfer into pieces, each with a slot of `buffer`, and keeps `num_slots` of them under
/// way: `start` returns what `wait` wants to know, `finish` does what is left to do. After an error
/// what is under way is still waited for, since it uses its slot.
template <typename Start, typename Wait, typename Finish>
status in_pieces(std::byte *buffer, std::size_t num_slots, std::size_t nbytes, const Start &start,
                 const Wait &wait, const Finish &finish) {
    struct started {
        piece which;
        std::decay_t<decltype(start(piece()).take())> what;
    };
    std::deque<started> under_way;
    status outcome;
    auto const end_oldest = [&] {
        started const oldest = std::move(under_way.front());
        under_way.pop_front();
        keep_first(outcome, wait(oldest.which, oldest.what));
        if (outcome) {
            outcome = finish(oldest.which);
        }
    };
    for (std::size_t begun = 0; begun < nbytes && outcome.ok();) {
        if (under_way.size() == num_slots) {
            end_oldest();
            continue;
        }
        std::size_t const slot = begun / piece_bytes % num_slots;
        piece const next{begun, std::min(piece_bytes, nbytes - begun), buffer + slot * piece_bytes};
        if (auto made = start(next)) {
            under_way.push_back({next, made.take()});
            begun += next.nbytes;
        } else {
            outcome = made.take_failure();
        }
    }
    while (!under_way.empty()) {
        end_oldest();
    }
    return outcome;
}

/// Gives its memory back when it goes.
struct bounce::lane {
    lane(bounce &owner, const device::backend &of, device::pinned_memory &&memory)
        : owner_(owner), of_(of), memory_(std::move(memory)) {}
    ~lane() {
        if (memory_.base() != nullptr) {
            std::lock_guard const guard(owner_.pinned_mutex_);
            owner_.free_.emplace_back(&of_, std::move(memory_));
        }
    }
    lane(lane &&other) = default; // leaves no memory behind
    lane &operator=(lane &&) = delete;

    [[nodiscard]] std::byte *base() const { return memory_.base(); }

private:
    bounce &owner_;
    const device::backend &of_;
    device::pinned_memory memory_;
};

} // namespace diomp::offload
