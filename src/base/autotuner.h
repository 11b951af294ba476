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
#include <limits>

namespace diomp {

/// One thread at a time. Methods are numbered from 0.
class autotuner {
public:
    autotuner() = default;
    /// `preferred` is used until there are measurements. The first `num_cold` uses are not
    /// measured: they touch memory for the first time. The first `num_transient` uses of a run are
    /// not compared: they pay for the cache contents that the other method has left.
    explicit autotuner(int preferred, int num_candidates = 2, int num_cold = 0,
                       int num_transient = 1)
        : num_candidates_(num_candidates), num_transient_(num_transient), incumbent_(preferred),
          preferred_(preferred), position_(num_cold > 0 ? trial_length() : 0), left_(num_cold) {}

    /// The method to use next.
    [[nodiscard]] int choice() const {
        return position_ < run_length() || position_ >= trial_length() ? preferred_ : candidate();
    }

    /// Whether the next report() is evaluated; otherwise any cost may be passed.
    [[nodiscard]] bool is_measuring() const { return position_ < trial_length(); }

    /// Reports the cost of the chosen method per unit of work.
    void report(double cost) {
        if (!is_measuring()) {
            if (--left_ == 0) {
                position_ = 0;
            }
            return;
        }
        int const in_run = position_ % run_length();
        cost_range &run = position_ < run_length() ? preferred_costs_ : candidate_costs_;
        if (in_run == 0) {
            run = {};
        }
        if (in_run >= num_transient_) {
            run.add(cost);
        }
        if (position_ >= run_length() && in_run < num_tolerated) {
            is_hopeless_ = cost > hopeless_factor() * preferred_costs_.greatest &&
                           (in_run == 0 || is_hopeless_);
            if (is_hopeless_ && in_run + 1 == num_tolerated) {
                candidate_costs_ = {cost, cost};
                position_ = trial_length() - 1;
            }
        }
        if (++position_ == trial_length()) {
            conclude();
        }
    }

    /// The preferred method, then a candidate.
    [[nodiscard]] int trial_length() const { return 2 * run_length(); }
    [[nodiscard]] int run_length() const { return num_transient_ + num_compared; }

    static constexpr int num_compared = 3;  ///< uses of a run
    static constexpr int num_tolerated = 2; ///< uses of a hopeless candidate
    /// Each use of a hopeless candidate is slower by this factor. A candidate that needs many uses
    /// until the caches have its data may be slow in the first ones.
    [[nodiscard]] double hopeless_factor() const { return num_transient_ < 2 ? 1.15 : 3; }
    /// a candidate must be faster by this factor
    static constexpr double switch_factor = 1.03;
    /// Uses between rounds of runs of four; in proportion for longer ones.
    static constexpr int min_pause = 64;
    static constexpr int max_pause = 1024;

private:
    struct cost_range {
        double least = std::numeric_limits<double>::max();
        double greatest = 0;

        void add(double cost) {
            least = std::min(least, cost);
            greatest = std::max(greatest, cost);
        }
    };

    /// The method preferred at the start of a round is not its own candidate.
    [[nodiscard]] int candidate() const { return (incumbent_ + trial_) % num_candidates_; }

    void conclude() {
        // Disturbances only make a use longer, so compare the minima.
        if (preferred_costs_.least > switch_factor * candidate_costs_.least) {
            preferred_ = candidate();
        }
        if (++trial_ < num_candidates_) {
            position_ = 0;
            return;
        }
        pause_ = preferred_ == incumbent_ ? std::min(4 * pause_, max_pause) : min_pause;
        incumbent_ = preferred_;
        trial_ = 1;
        left_ = pause_ * run_length() / 4;
    }

    int num_candidates_ = 2;
    int num_transient_ = 1;
    int incumbent_ = 0; ///< preferred when this round began
    int preferred_ = 0;
    int trial_ = 1;            ///< of a round
    int position_ = 0;         ///< in a trial
    bool is_hopeless_ = false; ///< each use of the candidate was much slower than the preferred
    int left_ = 0;             ///< uses until the next round
    int pause_ = min_pause / 4;
    cost_range preferred_costs_;
    cost_range candidate_costs_;
};

} // namespace diomp
