// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rank_failures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace diomp::run {
namespace {

/// Time that a consequence waits for its cause: at least, and at most for ranks that are ending and
/// for hosts that have not reported. After that the job has about two seconds to end.
constexpr double min_cause_wait_s = 0.25;
constexpr double max_cause_wait_s = 2;

/// Returns the exit status of an aborted job: the low 8 bits of the code, as exit() does.
int abort_status(int code) { return code & 0xff; }

} // namespace

result<std::unique_ptr<rank_failures>> rank_failures::create(event_loop &loop, int ranks,
                                                             const launch::fence_limits &limits,
                                                             handlers on) {
    std::unique_ptr<rank_failures> made(new rank_failures(ranks, std::move(on)));
    auto wait = add_timer(loop, [self = made.get()] { self->on_timer(); });
    DIOMP_TRY(wait);
    made->timer_ = wait.take();
    auto start = fence_watch::create(
        loop, limits,
        {.on_warning =
             [self = made.get()](double waited_s) {
                 self->on_.on_warning("warning: " + self->describe_wait(waited_s));
             },
         .on_timeout =
             [self = made.get()](double waited_s) {
                 self->on_.on_cause(
                     {.exit_status = 1,
                      .message = self->describe_wait(waited_s) + " (DIOMP_TIMEOUT); ending the job",
                      .after_timeout = true,
                      .shows_stacks = true});
             }});
    DIOMP_TRY(start);
    made->start_ = start.take();
    return made;
}

void rank_failures::on_join(int rank) {
    tracker_.join(rank);
    watch_start(); // its first fence follows
    check_premature_exit();
}

void rank_failures::on_fence(describe_late late) {
    late_ = std::move(late);
    watch_start();
}

void rank_failures::on_fence_done() {
    late_ = nullptr;
    start_->end();
}

void rank_failures::watch_start() {
    if (!is_stopped_ && !is_alone_) {
        start_->begin();
    }
}

void rank_failures::stop() {
    is_stopped_ = true;
    start_->end();
}

void rank_failures::on_finalize(int rank) {
    tracker_.finalize(rank);
    causes_.note_done(rank);
}

void rank_failures::on_abort(int rank, int code) {
    add(rank, {.exit_status = abort_status(code), .message = describe_abort(rank, code)});
}

void rank_failures::on_give_up(int rank, int code) {
    add(rank, {.exit_status = abort_status(code),
               .message = describe_abort(rank, code),
               .after_timeout = true,
               .shows_stacks = true});
}

void rank_failures::on_exit(int rank, const exit_info &how, bool is_silent) {
    if (how.success()) {
        tracker_.mark_exited(rank);
        check_premature_exit();
    } else {
        add(rank,
            {.exit_status = how.status(),
             .message =
                 is_silent ? "" : fmt::format("{} {}", on_.describe_rank(rank), describe(how))});
    }
    causes_.note_done(rank);
    report();
}

std::string rank_failures::describe_abort(int rank, int code) const {
    auto const peer = causes_.lost_by(rank);
    return fmt::format("{} aborted the job with status {}{}", on_.describe_rank(rank), code,
                       peer ? fmt::format(", after it had lost rank {}", *peer) : "");
}

std::string rank_failures::describe_wait(double waited_s) const {
    constexpr std::size_t max_named = 4;
    auto const absent = tracker_.absent_ranks();
    std::vector<std::string> late;
    if (!absent.empty()) {
        std::ranges::transform(absent, std::back_inserter(late), on_.describe_rank);
    } else if (late_) {
        late = late_();
    }
    std::size_t const total = late.size();
    if (total == 0) { // on each host some ranks are in the fence, and some are not
        return fmt::format(
            "ranks have not reached a fence at the start or end of the job for {:g} s", waited_s);
    }
    late.resize(std::min(total, max_named));
    return fmt::format("{}{} {} not {}; the others have waited for {:g} s", fmt::join(late, ", "),
                       total > max_named ? fmt::format(" and {} more", total - max_named) : "",
                       total == 1 ? "has" : "have",
                       absent.empty() ? "reached a fence at the start or end of the job"
                                      : "joined the job",
                       waited_s);
}

void rank_failures::check_premature_exit() {
    if (auto const found = tracker_.find_premature_exit()) {
        add(found->rank, {1, fmt::format("{} {}", on_.describe_rank(found->rank), found->what)});
    }
}

void rank_failures::add(int rank, failure what) {
    causes_.note_failure(rank, std::move(what));
    report();
}

bool rank_failures::take_poll_request() {
    if (poll_ != poll::requested) {
        return false;
    }
    poll_ = poll::started;
    return true;
}

void rank_failures::on_polled() {
    poll_ = poll::done;
    report();
}

void rank_failures::stop_waiting() {
    wait_ = first_cause::cause_wait::none;
    report();
}

void rank_failures::report() {
    if (is_stopped_ || !causes_.has_failure()) {
        return;
    }
    if (wait_ == first_cause::cause_wait::reports && is_short_wait_over_ && poll_ == poll::done) {
        wait_ = first_cause::cause_wait::exits;
    }
    if (const failure *const cause = causes_.find(wait_)) {
        timer_->disarm();
        on_.on_cause(*cause);
    } else if (poll_ == poll::none) {
        poll_ = poll::requested;
        timer_->arm(min_cause_wait_s);
    }
}

void rank_failures::on_timer() {
    if (!std::exchange(is_short_wait_over_, true)) {
        timer_->arm(max_cause_wait_s - min_cause_wait_s);
    } else {
        wait_ = first_cause::cause_wait::none;
    }
    report();
}

} // namespace diomp::run
