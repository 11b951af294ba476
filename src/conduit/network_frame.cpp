// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/network_frame.h"

#include "base/log.h"

#include <fmt/core.h>

#include <algorithm>

namespace diomp::conduit {

status network_frame::start_thread(int event_fd) {
    network_thread_work work;
    work.is_polled = [this] { return attendance_.is_kept(); };
    work.serve = [this] {
        bool const moved = serve();
        // Somebody may be napping until what has come.
        if (arrivals_.take_bulk_news() || has_messages()) {
            ring_();
        }
        return moved;
    };
    work.arm = [this] { return arm(); };
    work.watch = [this] { return choose_sleep(watch_peers()); };
    auto started = network_thread::start(event_fd, std::move(work));
    DIOMP_TRY(started);
    thread_ = started.take();
    return {};
}

int network_frame::watch_peers() {
    return watch_.look([this] { return known_peers(); },
                       [this](network_peer &silent) { ping(silent); },
                       [this](network_peer &silent) {
                           lose(silent, fmt::format("it has not answered for {:g} s", timeout_s_));
                       });
}

void network_frame::lose(network_peer &lost, const std::string &why) {
    std::string const sentence = fail(lost, why);
    if (sentence.empty()) {
        return;
    }
    std::lock_guard const guard(sink_mutex_);
    if (failure_sink_) {
        failure_sink_(lost.rank(), sentence);
    } else {
        log(log_level::debug, "{}", sentence);
    }
}

void network_frame::report_failures_to(const failure_sink &sink) {
    std::lock_guard const guard(sink_mutex_);
    failure_sink_ = sink;
}

int network_frame::hand_over_messages(message_sink sink) {
    taken_messages_.clear();
    arrivals_.swap_messages(taken_messages_);
    int const handled = message_queue::hand_over(taken_messages_, [&](const message &each) {
        sink(each);
        note_handled(each);
    });
    receiving_.clear(std::memory_order_release);
    return handled;
}

status network_frame::close() {
    DIOMP_TRY(drain());
    if (std::ranges::any_of(known_peers(), &network_peer::is_failed)) {
        return error(OMPX_ERR_PEER, "a rank was lost before it had everything");
    }
    // From here on peers may end before us, which is no failure. The network thread answers those
    // who still drain.
    report_failures_to({});
    return launcher_.fence();
}

} // namespace diomp::conduit
