// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "stack_collector.h"

#include "base/read_file.h"
#include "orphans.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace diomp::run {
namespace {

std::string explain_silence(const rank_process &rank) {
    auto const read = proc_is_ours() ? read_file(fmt::format("/proc/{}/stat", rank.process.pid()))
                                     : result<std::string>(std::string());
    std::string const text = read ? read.value() : std::string();
    std::size_t const name_end = text.rfind(") "); // the name may contain any characters
    char const state =
        name_end != std::string::npos && name_end + 2 < text.size() ? text[name_end + 2] : '?';
    if (state == 'T' || state == 't') {
        return "it is stopped";
    }
    if (!rank.link->has_joined()) {
        return "it has not joined the job";
    }
    if (!rank.link->can_show_stacks()) {
        return "it is outside of DiOMP, or DIOMP_STACKS is off";
    }
    return fmt::format("no answer for {} s{}", stacks_limit_s,
                       state == 'D' ? ", it hangs in the kernel" : "");
}

} // namespace

result<std::unique_ptr<stack_collector>>
stack_collector::create(event_loop &loop, const std::vector<rank_process> &ranks, handler on_done) {
    std::unique_ptr<stack_collector> made(new stack_collector(ranks, std::move(on_done)));
    auto limit = add_timer(loop, [self = made.get()] { self->finish(); });
    DIOMP_TRY(limit);
    made->limit_ = limit.take();
    return made;
}

void stack_collector::request() {
    is_requested_ = true;
    for (const rank_process &each : ranks_) {
        if (each.link) {
            each.link->request_last_stacks();
        }
    }
    limit_->arm(stacks_limit_s);
    check();
}

void stack_collector::check() {
    bool const waits = std::ranges::any_of(ranks_, [](const rank_process &each) {
        return each.link && !each.ended && each.link->can_show_stacks() &&
               !each.link->has_shown_last_stacks();
    });
    if (is_requested_ && !waits) {
        finish();
    }
}

void stack_collector::finish() {
    if (!std::exchange(is_requested_, false)) {
        return;
    }
    limit_->disarm();
    std::vector<silent_rank> silent;
    // If no rank can print stacks, the program does not use DiOMP: no message.
    bool const expected = std::ranges::any_of(
        ranks_, [](const rank_process &each) { return each.link && each.link->can_show_stacks(); });
    for (std::size_t index = 0; expected && index < ranks_.size(); ++index) {
        const rank_process &rank = ranks_[index];
        if (!rank.ended && rank.link && !rank.link->has_shown_last_stacks()) {
            silent.push_back({index, explain_silence(rank)});
        }
    }
    on_done_(silent);
}

} // namespace diomp::run
