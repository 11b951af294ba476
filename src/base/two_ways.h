// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which of two ways to do the same is quicker on this machine, learned from what they take: for
// choices that depend on where the system has put ranks, which may change while they run.
#pragma once

#include <algorithm>
#include <array>

namespace diomp {

/// One thread at a time.
class two_ways {
public:
    two_ways() = default;
    /// Way 0 or 1 is taken to be the better one until something is known.
    explicit two_ways(int preferred) : preferred_(preferred) {}

    /// Way 0 or 1, for the next time.
    [[nodiscard]] int choice() const {
        return position_ < run_length || position_ >= trial_length ? preferred_ : 1 - preferred_;
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
    static constexpr int trial_length = 2 * run_length; ///< the preferred way, then the other one
    static constexpr double hopeless = 1.3;             ///< times worse twice: no third use
    static constexpr int least_pause = 32;              ///< uses between trials
    static constexpr int longest_pause = 1024;

private:
    void conclude() {
        auto const median = [](auto &three) {
            std::ranges::sort(three);
            return three[1];
        };
        bool const is_confirmed = median(costs_[0]) <= median(costs_[1]);
        pause_ = is_confirmed ? std::min(2 * pause_, longest_pause) : least_pause;
        preferred_ = is_confirmed ? preferred_ : 1 - preferred_;
        left_ = pause_;
    }

    int preferred_ = 0;
    int position_ = 0;         ///< in a trial
    bool is_hopeless_ = false; ///< each use of the run was much worse than the preferred way
    int left_ = 0;             ///< uses until the next one
    int pause_ = least_pause / 2;
    std::array<std::array<double, run_length - 1>, 2> costs_{}; ///< [preferred, other]
};

} // namespace diomp
