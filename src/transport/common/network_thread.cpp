// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/common/network_thread.h"

#include "base/service_thread.h"

#include <cerrno>
#include <cstdint>
#include <poll.h>
#include <sys/eventfd.h>

namespace diomp::transport {
namespace {

constexpr int idle_wait_ms = 1;
/// A thread polls for a few milliseconds before it sleeps. One that has polled for more waits for
/// its core.
constexpr int max_idle_waits = 5;

} // namespace

result<std::unique_ptr<network_thread>> network_thread::start(int event_fd,
                                                              network_thread_work work) {
    std::unique_ptr<network_thread> made(new network_thread(event_fd, std::move(work)));
    made->wake_event_ = unique_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!made->wake_event_.valid()) {
        return system_error("eventfd", errno);
    }
    made->thread_ = start_service_thread("diomp-network", [thread = made.get()] { thread->run(); });
    return made;
}

network_thread::~network_thread() {
    stopping_.store(true, std::memory_order_seq_cst);
    if (thread_.joinable()) {
        signal_event();
        thread_.join();
    }
}

void network_thread::signal_event() {
    std::uint64_t const one = 1;
    [[maybe_unused]] auto const written = ::write(wake_event_.get(), &one, sizeof(one));
}

bool network_thread::wait(bool for_events, int limit_ms) {
    pollfd watched[2] = {{wake_event_.get(), POLLIN, 0}, {event_fd_, POLLIN, 0}};
    if (::poll(watched, for_events ? 2 : 1, limit_ms) <= 0) {
        return false;
    }
    if ((watched[0].revents & POLLIN) != 0) {
        std::uint64_t count = 0;
        [[maybe_unused]] auto const taken = ::read(wake_event_.get(), &count, sizeof(count));
    }
    return watched[1].revents != 0;
}

void network_thread::run() {
    // The descriptor ended a sleep, and there was no work: it may stay readable for long.
    bool had_spurious_wakeup = false;
    int num_idle_waits = 0; // while a thread polls
    while (!stopping_.load(std::memory_order_seq_cst)) {
        int const max_sleep_ms = work_.check_peers();
        polling const state = work_.state();
        num_idle_waits = state == polling::active ? num_idle_waits + 1 : 0;
        if (state == polling::recent ||
            (state == polling::active && num_idle_waits <= max_idle_waits)) {
            wait(false, idle_wait_ms);
            continue;
        }
        if (state == polling::none && work_.serve()) {
            had_spurious_wakeup = false;
            continue;
        }
        // A thread that ends its wait, or leaves work, after this line calls wake(); work left
        // before it was found by arm().
        asleep_.store(true, std::memory_order_seq_cst);
        if (work_.state() == state && work_.arm()) {
            if (state != polling::none) {
                wait(false, max_sleep_ms);
            } else {
                had_spurious_wakeup =
                    had_spurious_wakeup ? wait(false, idle_wait_ms) : wait(true, max_sleep_ms);
            }
        }
        asleep_.store(false, std::memory_order_seq_cst);
        if (state != polling::none) {
            work_.serve(); // a thread may have left work for this one
        }
    }
}

} // namespace diomp::transport
