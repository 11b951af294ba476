// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rma/internal/implicit_ops.h"

#include "messaging/pooled_completion.h"

#include <algorithm>

namespace diomp::rma {

implicit_ops::started implicit_ops::begin(bool separately) {
    auto fresh = [] { return std::make_shared<transport::completion>(); };
    std::lock_guard const guard(mutex_);
    has_some_.store(true, std::memory_order_relaxed);
    std::shared_ptr<transport::completion> count;
    if (separately) {
        count = closed_.emplace_back(fresh());
    } else {
        if (open_ == nullptr) {
            open_ = fresh();
        }
        count = open_;
    }
    count->begin();
    return started(std::move(count));
}

void implicit_ops::close() {
    std::lock_guard const guard(mutex_);
    if (open_ != nullptr) {
        closed_.push_back(std::move(open_));
        open_ = nullptr;
    }
}

status implicit_ops::wait(messaging::engine &engine) {
    // Transfers of this thread are visible to it. Those of other threads are included if their
    // start happens before this call.
    if (!has_some_.load(std::memory_order_acquire)) [[likely]] {
        return {};
    }
    std::vector<std::shared_ptr<transport::completion>> awaited;
    {
        std::lock_guard const guard(mutex_);
        if (open_ != nullptr) {
            closed_.push_back(std::move(open_));
            open_ = nullptr;
        }
        awaited = closed_;
    }
    auto const describe = [] { return std::string("waiting for transfers without an event"); };
    status outcome;
    for (auto const &each : awaited) {
        DIOMP_TRY(engine.wait_for_network([&] { return each->is_done(); }, describe));
        if (outcome) {
            outcome = messaging::outcome_of(*each, engine, describe);
        }
    }
    std::lock_guard const guard(mutex_);
    std::erase_if(closed_, [&](const auto &each) { // keeps transfers added meanwhile
        return each->is_done() && std::ranges::find(awaited, each) != awaited.end();
    });
    has_some_.store(open_ != nullptr || !closed_.empty(), std::memory_order_release);
    return outcome;
}

} // namespace diomp::rma
