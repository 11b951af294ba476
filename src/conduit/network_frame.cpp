// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/network_frame.h"

#include "base/log.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace diomp::conduit {

status network_frame::start_thread(int event_fd) {
    event_fd_ = event_fd;
    nap_bell_ = unique_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!nap_bell_.valid()) {
        return system_error("eventfd", errno);
    }
    network_thread_work work;
    work.is_polled = [this] { return attendance_.is_kept(); };
    work.serve = [this] {
        bool const moved = serve();
        note_moved(moved);
        // Somebody may be napping until what has come.
        if (arrivals_.take_bulk_news() || has_messages()) {
            ring_();
        }
        if (moved) {
            wake_napping();
        }
        return moved;
    };
    work.arm = [this] { return arm_alone(); };
    work.watch = [this] { return choose_sleep(watch_peers()); };
    auto started = network_thread::start(event_fd, std::move(work));
    DIOMP_TRY(started);
    thread_ = started.take();
    return {};
}

bool network_frame::arm_alone() {
    std::lock_guard const guard(arm_mutex_);
    return arm();
}

bool network_frame::nap(std::chrono::microseconds limit, function_ref<bool()> is_over) {
    if (event_fd_ < 0) {
        return false;
    }
    // The descriptor of UCX stays readable until a new connection is accepted. A nap that it ends
    // each time would be a spin, so after a false alarm the next nap leaves the descriptor out.
    bool const listens = !had_false_alarm_.exchange(false, std::memory_order_relaxed);
    num_napping_.fetch_add(1, std::memory_order_seq_cst);
    if (!is_over() && arm_alone()) {
        pollfd watched[2] = {{nap_bell_.get(), POLLIN, 0}, {event_fd_, POLLIN, 0}};
        auto const seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
        timespec const longest{seconds.count(), std::chrono::nanoseconds(limit - seconds).count()};
        if (::ppoll(watched, listens ? 2 : 1, &longest, nullptr) > 0) {
            if ((watched[0].revents & POLLIN) != 0) {
                std::uint64_t count = 0;
                [[maybe_unused]] auto const taken = ::read(nap_bell_.get(), &count, sizeof(count));
            } else {
                had_false_alarm_.store(true, std::memory_order_relaxed); // until something moves
            }
        }
    }
    num_napping_.fetch_sub(1, std::memory_order_relaxed);
    return true;
}

void network_frame::wake_napping() {
    if (num_napping_.load(std::memory_order_seq_cst) > 0) [[unlikely]] {
        std::uint64_t const one = 1;
        [[maybe_unused]] auto const written = ::write(nap_bell_.get(), &one, sizeof(one));
    }
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
