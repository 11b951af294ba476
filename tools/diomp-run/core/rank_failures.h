// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collects the events of a job's ranks and determines the failure that ends the job: waits for
// events that may show an earlier cause (first_cause.h), within limits. Reports ranks for which the
// others wait while the job starts.
#pragma once

#include "event_loop.h"
#include "fence_watch.h"
#include "first_cause.h"
#include "rank_tracker.h"
#include "report.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace diomp::run {

class rank_failures {
public:
    struct handlers {
        /// Returns "rank 3 on b (pid 17, ./app)".
        std::function<std::string(int rank)> describe_rank;
        /// The cause is known; the callee calls stop().
        std::function<void(const failure &cause)> on_cause;
        std::function<void(const std::string &text)> on_warning;
    };
    /// Returns who is not in the fence in which others wait: "rank 3 on b (pid 17, ./app)", or "a
    /// rank of host b (ranks 4 to 7)".
    using describe_late = std::function<std::vector<std::string>()>;
    static result<std::unique_ptr<rank_failures>>
    create(event_loop &loop, int ranks, const launch::fence_limits &limits, handlers on);

    void on_join(int rank);
    /// Ranks wait in a fence for those that the function returns.
    void on_fence(describe_late late);
    void on_fence_done();
    /// The job continues after it was suspended.
    void on_continued() { start_->restart(); }
    void on_finalize(int rank);
    void on_abort(int rank, int code);
    void on_give_up(int rank, int code);
    /// The rank has lost a peer; nullopt: an unknown one.
    void on_loss(int rank, std::optional<int> peer) { causes_.note_loss(rank, peer); }
    void on_closed(int rank) { causes_.note_closed(rank); }
    /// `is_silent`: no message is printed for a failure.
    void on_exit(int rank, const exit_info &how, bool is_silent);

    /// Returns, once, whether the caller shall handle the packets and exits of all ranks that are
    /// available and then call on_polled().
    [[nodiscard]] bool take_poll_request();
    void on_polled();
    /// Reports the cause as far as it is known: no more events will come.
    void stop_waiting();
    /// Reports no more causes: the job is ending.
    void stop();

private:
    enum class poll { none, requested, started, done };
    rank_failures(int ranks, handlers on)
        : causes_(ranks), tracker_(ranks), is_alone_(ranks == 1), on_(std::move(on)) {}
    void add(int rank, failure what);
    void check_premature_exit();
    void watch_start();
    void report();
    void on_timer();
    [[nodiscard]] std::string describe_abort(int rank, int code) const;
    [[nodiscard]] std::string describe_wait(double waited_s) const;

    first_cause causes_;
    rank_tracker tracker_;
    bool is_alone_; ///< the only rank waits in no fence
    handlers on_;
    first_cause::cause_wait wait_ = first_cause::cause_wait::reports;
    poll poll_ = poll::none;
    bool is_short_wait_over_ = false; ///< min_cause_wait_s is over
    bool is_stopped_ = false;
    std::unique_ptr<timer> timer_;
    std::unique_ptr<fence_watch> start_;
    describe_late late_; ///< empty if no rank is in a fence
};

} // namespace diomp::run
