// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which of a few ways to do the same is quickest on this machine, learned from what they take: for
// choices that depend on where the system has put ranks, which may change while they run.
//
// A trial is a run of the preferred way and one of another; if that is quicker by more than what
// runs differ by it is preferred from then on. A round of trials goes through all others without a
// pause; then the preferred way is used alone, the longer the more often it has been confirmed.
#pragma once

#include <algorithm>
#include <array>

namespace diomp {

/// One thread at a time. Ways are numbered from 0.
class best_way {
public:
    best_way() = default;
    /// `preferred` is taken to be the best one until something is known. The first `num_cold` uses
    /// are not compared: they touch memory for the first time.
    explicit best_way(int preferred, int num_ways = 2, int num_cold = 0)
        : num_ways_(num_ways), champion_(preferred), preferred_(preferred),
          position_(num_cold > 0 ? trial_length : 0), left_(num_cold) {}

    /// For the next time.
    [[nodiscard]] int choice() const {
        return position_ < run_length || position_ >= trial_length ? preferred_ : challenger();
    }

    /// Whether it matters what comes next is told; else any cost will do.
    [[nodiscard]] bool is_trying() const { return position_ < trial_length; }

    /// What the chosen way took, per unit of work.
    void tell(double cost) {
        if (!is_trying()) {
            if (--left_ == 0) {
                position_ = 0;
            }
            return;
        }
        // The first of a run pays for what the other way has left behind.
        int const in_run = position_ % run_length;
        if (in_run > 0) {
            costs_[static_cast<std::size_t>(position_ / run_length)]
                  [static_cast<std::size_t>(in_run - 1)] = cost;
        }
        is_hopeless_ =
            cost > hopeless * std::ranges::max(costs_[0]) && (in_run == 0 || is_hopeless_);
        if (position_ == run_length + 1 && is_hopeless_) {
            costs_[1].fill(cost);
            position_ = trial_length - 1;
        }
        if (++position_ == trial_length) {
            conclude();
        }
    }

    static constexpr int run_length = 4;
    static constexpr int trial_length = 2 * run_length; ///< the preferred way, then another one
    static constexpr double hopeless = 1.15;            ///< times worse twice: no third use
    static constexpr double worth_a_change = 1.03;      ///< times the other's cost
    static constexpr int least_pause = 64;              ///< uses between rounds
    static constexpr int longest_pause = 1024;

private:
    /// Who is preferred when a round begins never has to try itself.
    [[nodiscard]] int challenger() const { return (champion_ + trial_) % num_ways_; }

    void conclude() {
        // Whatever disturbs a use makes it longer.
        if (std::ranges::min(costs_[0]) > worth_a_change * std::ranges::min(costs_[1])) {
            preferred_ = challenger();
        }
        if (++trial_ < num_ways_) {
            position_ = 0;
            return;
        }
        pause_ = preferred_ == champion_ ? std::min(4 * pause_, longest_pause) : least_pause;
        champion_ = preferred_;
        trial_ = 1;
        left_ = pause_;
    }

    int num_ways_ = 2;
    int champion_ = 0; ///< preferred when this round began
    int preferred_ = 0;
    int trial_ = 1;            ///< of a round
    int position_ = 0;         ///< in a trial
    bool is_hopeless_ = false; ///< each use of the run was much worse than the preferred way
    int left_ = 0;             ///< uses until the next round
    int pause_ = least_pause / 4;
    std::array<std::array<double, run_length - 1>, 2> costs_{}; ///< [preferred, challenger]
};

} // namespace diomp
