// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sync/internal/mismatch_detector.h"

#include <algorithm>
#include <utility>

namespace diomp::sync {

void mismatch_detector::find_mismatch(const barrier_areas &areas, std::uint64_t known,
                                      std::uint64_t epoch) {
    std::size_t const self = areas.self();
    for (std::uint64_t past = known + 1; past <= epoch && !late_mismatch_; ++past) {
        for (std::size_t member = 0; member < areas.size() && past != reported_; ++member) {
            call_signature const theirs = areas[member].flag_slot_of(past).call;
            call_signature const &own = areas.own().flag_slot_of(past).call;
            // Read the call first, then check that it was still the call of `past`: the owner
            // rewrites the flag slot only after it has arrived in the round before.
            std::atomic_thread_fence(std::memory_order_acquire);
            bool const is_intact =
                areas[member].flag_slot_of(past).epoch.load(std::memory_order_relaxed) == past &&
                !areas[member].has_arrived(past + num_flag_slots - 1);
            if (is_intact && (theirs.what != own.what || theirs.root != own.root)) {
                late_mismatch_ =
                    areas.mismatch(std::min(member, self), std::max(member, self), past);
                break;
            }
        }
    }
}

status mismatch_detector::take_mismatch() {
    return std::move(*std::exchange(late_mismatch_, std::nullopt));
}

} // namespace diomp::sync
