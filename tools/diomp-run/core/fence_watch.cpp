// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "fence_watch.h"

#include <utility>

namespace diomp::run {

result<std::unique_ptr<fence_watch>>
fence_watch::create(event_loop &loop, const launch::fence_limits &limits, handlers on) {
    std::unique_ptr<fence_watch> made(new fence_watch(limits, std::move(on)));
    auto timer = add_timer(loop, [self = made.get()] { self->on_timer(); });
    DIOMP_TRY(timer);
    made->timer_ = timer.take();
    return made;
}

void fence_watch::begin() {
    if (stage_ != stage::idle) {
        return;
    }
    if (warns_first()) {
        stage_ = stage::before_warning;
        timer_->arm(limits_.warn_after_s);
    } else if (limits_.timeout_s > 0) {
        stage_ = stage::before_timeout;
        timer_->arm(limits_.timeout_s);
    }
}

void fence_watch::end() {
    if (stage_ != stage::idle) {
        stage_ = stage::idle;
        timer_->disarm();
    }
}

void fence_watch::restart() {
    if (stage_ != stage::idle) {
        end();
        begin();
    }
}

void fence_watch::on_timer() {
    if (stage_ == stage::before_timeout) {
        stage_ = stage::reported;
        on_.on_timeout(limits_.timeout_s);
    } else if (stage_ == stage::before_warning) {
        stage_ = stage::reported;
        if (limits_.timeout_s > 0) {
            stage_ = stage::before_timeout;
            timer_->arm(limits_.timeout_s - limits_.warn_after_s);
        }
        on_.on_warning(limits_.warn_after_s);
    }
}

} // namespace diomp::run
