// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rank_failures.h"

#include <fmt/format.h>

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
                                                             handlers on) {
    std::unique_ptr<rank_failures> made(new rank_failures(ranks, std::move(on)));
    auto wait = add_timer(loop, [self = made.get()] { self->on_timer(); });
    DIOMP_TRY(wait);
    made->timer_ = wait.take();
    return made;
}

void rank_failures::on_join(int rank) {
    tracker_.join(rank);
    check_premature_exit();
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
