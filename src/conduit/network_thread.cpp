// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/network_thread.h"

#include "base/service_thread.h"

#include <cerrno>
#include <cstdint>
#include <poll.h>
#include <sys/eventfd.h>

namespace diomp::conduit {
namespace {

constexpr int nap_ms = 1;

} // namespace

result<std::unique_ptr<network_thread>> network_thread::start(int event_fd,
                                                              network_thread_work work) {
    std::unique_ptr<network_thread> made(new network_thread(event_fd, std::move(work)));
    made->bell_ = unique_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!made->bell_.valid()) {
        return system_error("eventfd", errno);
    }
    made->thread_ = start_service_thread("diomp-network", [thread = made.get()] { thread->run(); });
    return made;
}

network_thread::~network_thread() {
    stopping_.store(true, std::memory_order_seq_cst);
    if (thread_.joinable()) {
        ring();
        thread_.join();
    }
}

void network_thread::ring() {
    std::uint64_t const one = 1;
    [[maybe_unused]] auto const written = ::write(bell_.get(), &one, sizeof(one));
}

bool network_thread::wait(bool for_events, int limit_ms) {
    pollfd watched[2] = {{bell_.get(), POLLIN, 0}, {event_fd_, POLLIN, 0}};
    if (::poll(watched, for_events ? 2 : 1, limit_ms) <= 0) {
        return false;
    }
    if ((watched[0].revents & POLLIN) != 0) {
        std::uint64_t count = 0;
        [[maybe_unused]] auto const taken = ::read(bell_.get(), &count, sizeof(count));
    }
    return watched[1].revents != 0;
}

void network_thread::run() {
    // The descriptor ended a sleep, and there was nothing to do: it may stay readable for long.
    bool had_false_alarm = false;
    while (!stopping_.load(std::memory_order_seq_cst)) {
        int const longest_ms = work_.watch();
        if (work_.is_polled()) {
            wait(false, nap_ms);
            continue;
        }
        if (work_.serve()) {
            had_false_alarm = false;
            continue;
        }
        // Whoever leaves work behind after this line nudges; before it, arm() has found it.
        asleep_.store(true, std::memory_order_seq_cst);
        if (!work_.is_polled() && work_.arm()) {
            had_false_alarm = had_false_alarm ? wait(false, nap_ms) : wait(true, longest_ms);
        }
        asleep_.store(false, std::memory_order_seq_cst);
    }
}

} // namespace diomp::conduit
