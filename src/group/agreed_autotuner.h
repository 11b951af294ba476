// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An autotuner for methods that all members of a call must choose alike.
//
// Each member has a copy, and all copies get the same costs: a member publishes the time of its
// last measured call in the first round of its next one, and every member takes the largest. A cost
// is thus known one call late, so only every second call is measured while there is a trial.
#pragma once

#include "base/autotuner.h"

#include <cstdint>

namespace diomp::group {

/// One thread at a time.
class agreed_autotuner {
public:
    explicit agreed_autotuner(int preferred) : tuner_(preferred) {}

    /// The method of the next call.
    [[nodiscard]] int choice() const { return tuner_.choice(); }
    /// Whether note_own() follows the next call.
    [[nodiscard]] bool is_measuring() const { return !is_pending_ && tuner_.is_measuring(); }
    /// The own time to publish in the next call, in ns; 0 if there is none.
    [[nodiscard]] std::uint64_t own_ns() const { return own_ns_; }
    /// The largest published time, known in the call after the measured one.
    void note_all(std::uint64_t largest_ns) {
        if (is_pending_) {
            is_pending_ = false;
            own_ns_ = 0;
            tuner_.report(static_cast<double>(largest_ns));
        } else if (!tuner_.is_measuring()) {
            tuner_.report(0);
        }
    }
    /// The time of a call that began while is_measuring(), on this member.
    void note_own(std::uint64_t ns) {
        own_ns_ = ns;
        is_pending_ = true;
    }

private:
    autotuner tuner_;
    std::uint64_t own_ns_ = 0;
    bool is_pending_ = false; ///< the last call was measured
};

} // namespace diomp::group
