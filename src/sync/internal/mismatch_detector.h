// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Finds mismatches between members that did not wait for each other.
//
// The calls of node_barrier::arrive() are compared at once only by members that wait for each
// other. If the members agree about the operation and its root, a member that has to wait for one
// that differs has detected it. If they do not, perhaps none has: two members that both take
// themselves for the root wait for no other. So from time to time the digests of all calls so far
// are compared, and if they differ, as they do for ever after a mismatch, all flag slots since the
// last check. A member that is a ring ahead may have overwritten a flag slot: then it has checked
// itself.
#pragma once

#include "sync/internal/barrier_area.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace diomp::sync {

/// One per node_barrier.
class mismatch_detector {
public:
    /// Adds the call of round `epoch` to the digest in the own area.
    void add_call(barrier_area &own, std::uint64_t epoch, const call_signature &call) {
        std::uint64_t const call_bits =
            static_cast<std::uint64_t>(call.what) << 32 | static_cast<std::uint32_t>(call.root);
        // Different sequences of calls have different digests, except for one in 2^64.
        std::uint64_t const mixed = (digest_ ^ call_bits) * 0x9e3779b97f4a7c15U;
        digest_ = mixed ^ mixed >> 29U;
        own.digest_of(epoch).store(digest_, std::memory_order_relaxed);
    }
    /// All members have arrived in `epoch`, so every flag slot up to it has been written. Compares
    /// the calls after round `known`.
    void compare(const barrier_areas &areas, std::uint64_t known, std::uint64_t epoch) {
        if (!is_enabled_) {
            return;
        }
        bool is_same = true;
        for (std::size_t member = 0; member < areas.size(); ++member) {
            is_same = is_same &&
                      (member == areas.self() || has_same_history(areas, areas[member], epoch));
        }
        if (!is_same) [[unlikely]] {
            find_mismatch(areas, known, epoch);
        }
    }
    /// From now on the caller compares the calls.
    void disable() { is_enabled_ = false; }
    /// All members begin a new history after round `epoch`.
    void restart(std::uint64_t epoch) {
        digest_ = 0;
        reported_ = epoch;
    }
    /// The mismatch of a round has been reported already.
    void note_reported(std::uint64_t epoch) { reported_ = epoch; }
    /// The mismatch of an earlier call that was detected meanwhile, if any.
    [[nodiscard]] status take() { return late_mismatch_ ? take_mismatch() : status{}; }

private:
    /// True also if the member has overwritten the digest, being a ring ahead.
    static bool has_same_history(const barrier_areas &areas, barrier_area &theirs,
                                 std::uint64_t epoch) {
        return theirs.digest_of(epoch).load(std::memory_order_acquire) ==
                   areas.own().digest_of(epoch).load(std::memory_order_relaxed) ||
               theirs.has_arrived(epoch + num_flag_slots - 1);
    }
    void find_mismatch(const barrier_areas &areas, std::uint64_t known, std::uint64_t epoch);
    status take_mismatch();

    std::uint64_t digest_ = 0;   ///< as in the own area
    std::uint64_t reported_ = 0; ///< the last round whose mismatch was reported
    std::optional<error> late_mismatch_;
    bool is_enabled_ = true;
};

} // namespace diomp::sync
