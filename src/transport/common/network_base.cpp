// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/common/network_base.h"

#include "base/log.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace diomp::transport {

status network_base::start_thread(int event_fd) {
    event_fd_ = event_fd;
    wake_event_ = unique_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake_event_.valid()) {
        return system_error("eventfd", errno);
    }
    network_thread_work work;
    work.is_polled = [this] { return poller_count_.is_polled(); };
    work.serve = [this] {
        bool const moved = serve();
        note_moved(moved);
        // A thread may be in an idle wait for what has arrived.
        if (arrivals_.take_long_handled() || has_messages()) {
            ring_();
        }
        if (moved) {
            wake_idle_waiters();
        }
        return moved;
    };
    work.arm = [this] { return arm_locked(); };
    work.check_peers = [this] { return max_sleep_ms(check_peers()); };
    auto started = network_thread::start(event_fd, std::move(work));
    DIOMP_TRY(started);
    thread_ = started.take();
    return {};
}

bool network_base::arm_locked() {
    std::lock_guard const guard(arm_mutex_);
    return arm();
}

bool network_base::idle_wait(std::chrono::microseconds limit, function_ref<bool()> is_over) {
    if (event_fd_ < 0) {
        return false;
    }
    // The descriptor of UCX stays readable until a new connection is accepted. If it ended every
    // idle wait, the wait would be a busy loop, so after a spurious wakeup the next idle wait does
    // not poll the descriptor.
    bool const polls_network = !had_spurious_wakeup_.exchange(false, std::memory_order_relaxed);
    num_idle_waiters_.fetch_add(1, std::memory_order_seq_cst);
    if (!is_over() && arm_locked()) {
        pollfd watched[2] = {{wake_event_.get(), POLLIN, 0}, {event_fd_, POLLIN, 0}};
        auto const seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
        timespec const longest{seconds.count(), std::chrono::nanoseconds(limit - seconds).count()};
        if (::ppoll(watched, polls_network ? 2 : 1, &longest, nullptr) > 0) {
            if ((watched[0].revents & POLLIN) != 0) {
                std::uint64_t count = 0;
                [[maybe_unused]] auto const taken =
                    ::read(wake_event_.get(), &count, sizeof(count));
            } else {
                // until there is progress
                had_spurious_wakeup_.store(true, std::memory_order_relaxed);
            }
        }
    }
    num_idle_waiters_.fetch_sub(1, std::memory_order_relaxed);
    return true;
}

void network_base::wake_idle_waiters() {
    if (num_idle_waiters_.load(std::memory_order_seq_cst) > 0) [[unlikely]] {
        std::uint64_t const one = 1;
        [[maybe_unused]] auto const written = ::write(wake_event_.get(), &one, sizeof(one));
    }
}

int network_base::check_peers() {
    return liveness_.check(
        [this] { return known_peers(); }, [this](network_peer &silent) { ping(silent); },
        [this](network_peer &silent) {
            fail_peer(silent, fmt::format("it has not answered for {:g} s", timeout_s_));
        });
}

void network_base::fail_peer(network_peer &lost, const std::string &why) {
    std::string const sentence = fail(lost, why);
    if (sentence.empty()) {
        return;
    }
    std::lock_guard const guard(handler_mutex_);
    if (failure_handler_) {
        failure_handler_(lost.rank(), sentence);
    } else {
        log(log_level::debug, "{}", sentence);
    }
}

void network_base::report_failures_to(const failure_handler &handle) {
    std::lock_guard const guard(handler_mutex_);
    failure_handler_ = handle;
}

int network_base::dispatch_messages(message_handler handle) {
    messages_in_dispatch_.clear();
    arrivals_.swap_messages(messages_in_dispatch_);
    int const handled = message_queue::dispatch(messages_in_dispatch_, [&](const message &each) {
        handle(each);
        note_handled(each);
    });
    receiving_.clear(std::memory_order_release);
    return handled;
}

status network_base::close() {
    DIOMP_TRY(drain());
    if (std::ranges::any_of(known_peers(), &network_peer::is_failed)) {
        return error(OMPX_ERR_PEER, "a rank was lost before it had received all data");
    }
    // From here on peers may end before this process, which is not a failure. The network thread
    // still replies to peers that drain.
    report_failures_to({});
    return launcher_.fence();
}

} // namespace diomp::transport
