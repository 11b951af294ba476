// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Chooses between two methods that all members of a call must choose alike.
//
// Each member has a copy, and all copies get the same costs: a member publishes its time for the
// calls of a run in the first round of the call after it, and every member takes the largest. The
// time of a run counts, not that of single calls: where a method lets members run ahead of each
// other, or where they share a core, one call of a member waits for the work of several others, and
// the next ones take almost no time.
#pragma once

#include "base/autotuner.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace diomp::group {

/// One thread at a time.
class agreed_autotuner {
public:
    explicit agreed_autotuner(int preferred) : preferred_(preferred) {}

    /// The method of the next call.
    [[nodiscard]] int choice() const {
        bool const tries_other = position_ < trial_calls && position_ / run_calls % 2 == 1;
        return tries_other ? 1 - preferred_ : preferred_;
    }
    /// Whether note_own() follows the next call, if it runs by the choice.
    [[nodiscard]] bool is_measuring() const {
        // The first call of a run pays for the cache contents that the other method has left.
        return position_ < trial_calls && position_ % run_calls > 0;
    }
    /// The own time to publish in the next call, in ns; 0 if there is none.
    [[nodiscard]] std::uint64_t own_ns() const { return has_run_ended() ? own_ns_ : 0; }
    /// Call in every call after its first round. `largest_ns`: the largest published time;
    /// `follows_choice`: whether the call runs by the choice.
    void note_all(std::uint64_t largest_ns, bool follows_choice) {
        if (has_run_ended()) {
            costs_[num_costs_++] = largest_ns;
            own_ns_ = 0;
            if (num_costs_ == costs_.size() || is_hopeless()) {
                conclude();
            }
        }
        if (left_ > 0) {
            position_ = --left_ == 0 ? 0 : position_;
        } else if (follows_choice) {
            ++position_;
        }
    }
    /// The time of a call that began while is_measuring(), on this member.
    void note_own(std::uint64_t ns) { own_ns_ += ns; }

    static constexpr int run_calls = 4; ///< consecutive calls by one method
    static constexpr int num_runs = 4;  ///< preferred, other, preferred, other
    static constexpr int trial_calls = num_runs * run_calls;

private:
    /// Whether the calls of a run are over, and their time is not in costs_.
    [[nodiscard]] bool has_run_ended() const {
        return left_ == 0 && position_ / run_calls > static_cast<int>(num_costs_);
    }
    /// So much slower that the other method is not tried once more.
    [[nodiscard]] bool is_hopeless() const {
        constexpr std::uint64_t factor = 2;
        return num_costs_ == 2 && costs_[1] > factor * costs_[0];
    }
    /// Disturbances only make a run longer, so the shorter one of a method counts.
    [[nodiscard]] double cost_of(std::size_t method) const {
        return static_cast<double>(num_costs_ == costs_.size()
                                       ? std::min(costs_[method], costs_[method + 2])
                                       : costs_[method]);
    }
    void conclude() {
        if (cost_of(0) > autotuner::switch_factor * cost_of(1)) {
            preferred_ = 1 - preferred_;
            pause_ = autotuner::min_pause;
        } else {
            pause_ = std::min(4 * pause_, autotuner::max_pause);
        }
        position_ = trial_calls;
        num_costs_ = 0;
        left_ = pause_;
    }

    int preferred_;
    int position_ = 0; ///< calls of the trial so far; trial_calls: none is under way
    std::array<std::uint64_t, num_runs> costs_{};
    std::size_t num_costs_ = 0;
    std::uint64_t own_ns_ = 0; ///< of the run
    int pause_ = autotuner::min_pause / 4;
    int left_ = 0; ///< calls until the next trial
};

} // namespace diomp::group
