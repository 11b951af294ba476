// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Chooses the fastest of a few equivalent methods on this machine from measured costs, for choices
// that depend on where the system has placed ranks, which may change at run time.
//
// A trial is a run of the preferred method and a run of a candidate; if the candidate is faster by
// more than the variation between runs, it becomes the preferred one. A round of trials goes
// through all candidates without a pause; then the preferred method is used alone, for longer the
// more often it has been confirmed.
#pragma once

#include <algorithm>
#include <array>

namespace diomp {

/// One thread at a time. Methods are numbered from 0.
class autotuner {
public:
    autotuner() = default;
    /// `preferred` is used until there are measurements. The first `num_cold` uses are not
    /// measured: they touch memory for the first time.
    explicit autotuner(int preferred, int num_candidates = 2, int num_cold = 0)
        : num_candidates_(num_candidates), incumbent_(preferred), preferred_(preferred),
          position_(num_cold > 0 ? trial_length : 0), left_(num_cold) {}

    /// The method to use next.
    [[nodiscard]] int choice() const {
        return position_ < run_length || position_ >= trial_length ? preferred_ : candidate();
    }

    /// Whether the next report() is evaluated; otherwise any cost may be passed.
    [[nodiscard]] bool is_measuring() const { return position_ < trial_length; }

    /// Reports the cost of the chosen method per unit of work.
    void report(double cost) {
        if (!is_measuring()) {
            if (--left_ == 0) {
                position_ = 0;
            }
            return;
        }
        // The first use of a run pays for the cache contents that the other method has left.
        int const in_run = position_ % run_length;
        if (in_run > 0) {
            costs_[static_cast<std::size_t>(position_ / run_length)]
                  [static_cast<std::size_t>(in_run - 1)] = cost;
        }
        is_hopeless_ =
            cost > hopeless_factor * std::ranges::max(costs_[0]) && (in_run == 0 || is_hopeless_);
        if (position_ == run_length + 1 && is_hopeless_) {
            costs_[1].fill(cost);
            position_ = trial_length - 1;
        }
        if (++position_ == trial_length) {
            conclude();
        }
    }

    static constexpr int run_length = 4;
    static constexpr int trial_length = 2 * run_length; ///< the preferred method, then a candidate
    /// slower by this factor twice: no third use
    static constexpr double hopeless_factor = 1.15;
    /// a candidate must be faster by this factor
    static constexpr double switch_factor = 1.03;
    static constexpr int min_pause = 64; ///< uses between rounds
    static constexpr int max_pause = 1024;

private:
    /// The method preferred at the start of a round is not its own candidate.
    [[nodiscard]] int candidate() const { return (incumbent_ + trial_) % num_candidates_; }

    void conclude() {
        // Disturbances only make a use longer, so compare the minima.
        if (std::ranges::min(costs_[0]) > switch_factor * std::ranges::min(costs_[1])) {
            preferred_ = candidate();
        }
        if (++trial_ < num_candidates_) {
            position_ = 0;
            return;
        }
        pause_ = preferred_ == incumbent_ ? std::min(4 * pause_, max_pause) : min_pause;
        incumbent_ = preferred_;
        trial_ = 1;
        left_ = pause_;
    }

    int num_candidates_ = 2;
    int incumbent_ = 0; ///< preferred when this round began
    int preferred_ = 0;
    int trial_ = 1;            ///< of a round
    int position_ = 0;         ///< in a trial
    bool is_hopeless_ = false; ///< each use of the run was much slower than the preferred method
    int left_ = 0;             ///< uses until the next round
    int pause_ = min_pause / 4;
    std::array<std::array<double, run_length - 1>, 2> costs_{}; ///< [preferred, candidate]
};

} // namespace diomp
