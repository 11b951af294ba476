// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rank_terminator.h"

#include "user_signal.h"

#include <csignal>
#include <utility>

namespace diomp::run {

result<std::unique_ptr<rank_terminator>>
rank_terminator::create(event_loop &loop, const std::vector<rank_process> &ranks,
                        std::function<void()> on_end) {
    std::unique_ptr<rank_terminator> made(new rank_terminator(ranks, std::move(on_end)));
    auto pipe = open_pipe();
    DIOMP_TRY(pipe);
    made->liveness_pipe_ = pipe.take();
    auto grace = add_timer(loop, [self = made.get()] { self->on_grace_over(); });
    DIOMP_TRY(grace);
    made->grace_ = grace.take();
    return made;
}

void rank_terminator::end(int signal_number, bool notify) {
    on_end_();
    if (notify) {
        liveness_pipe_.writing.reset();
    }
    signal(signal_number);
    signal(SIGCONT); // a stopped process would not handle the signal
    grace_->arm(grace_s);
}

void rank_terminator::kill() {
    on_end_();
    has_killed_ = true;
    liveness_pipe_.writing.reset();
    signal(SIGKILL);
    grace_->arm(kill_limit_s);
}

void rank_terminator::signal(int number) const {
    for (auto const &each : ranks_) {
        if (!is_done_) {
            each.process.signal_group(number);
        }
    }
}

void rank_terminator::forward(int number) const {
    for (auto const &each : ranks_) {
        if (is_done_) {
            return;
        }
        if (shows_stacks_at(number, each)) {
            each.link->request_stacks();
        } else {
            each.process.signal_group(number);
        }
    }
}

void rank_terminator::on_grace_over() {
    if (has_killed_) {
        gave_up_ = true;
    } else {
        kill();
    }
}

void rank_terminator::kill_remaining() {
    signal(SIGKILL);
    is_done_ = true;
}

} // namespace diomp::run
