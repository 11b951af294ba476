// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "job_end.h"

#include "stack_collector.h"

#include <utility>

namespace diomp::run {
namespace {

/// Extra time for the nodes, which collect the ranks' stacks, before the job goes on.
constexpr double stacks_margin_s = 0.5;

} // namespace

result<std::unique_ptr<job_end>> job_end::create(event_loop &loop, rank_control &ranks,
                                                 std::function<void()> on_begin) {
    std::unique_ptr<job_end> made(new job_end(ranks, std::move(on_begin)));
    auto limit = add_timer(loop, [self = made.get()] { self->on_stacks_done(); });
    DIOMP_TRY(limit);
    made->stacks_limit_ = limit.take();
    return made;
}

void job_end::enter(phase next) {
    phase_ = next;
    on_begin_();
}

void job_end::show_and_end(int signal, bool notify) {
    enter(phase::showing);
    signal_ = signal;
    notify_ = notify;
    stacks_limit_->arm(stacks_limit_s + stacks_margin_s);
    ranks_.request_stacks();
}

void job_end::on_stacks_done() {
    if (phase_ == phase::showing) {
        end(signal_, notify_);
    }
}

void job_end::end(int signal, bool notify) {
    enter(phase::ending);
    stacks_limit_->disarm();
    ranks_.end_ranks(signal, notify);
}

void job_end::kill() {
    enter(phase::killed);
    ranks_.kill_ranks();
}

} // namespace diomp::run
