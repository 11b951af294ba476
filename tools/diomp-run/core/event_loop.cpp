// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "event_loop.h"

#include <array>
#include <cerrno>
#include <cmath>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace diomp::run {

result<event_loop> event_loop::create() {
    unique_fd epoll(epoll_create1(EPOLL_CLOEXEC));
    if (!epoll) {
        return system_error("epoll_create1", errno);
    }
    return event_loop(std::move(epoll));
}

result<event_loop::token> event_loop::add(int fd, std::uint32_t events, handler on_event) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = last_ + 1;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
        return system_error("epoll_ctl", errno);
    }
    registered_.emplace(++last_,
                        std::make_shared<registration>(registration{fd, std::move(on_event)}));
    return token{last_};
}

void event_loop::modify(token which, std::uint32_t events) {
    auto const found = registered_.find(static_cast<std::uint64_t>(which));
    if (found != registered_.end()) {
        epoll_event event{};
        event.events = events;
        event.data.u64 = found->first;
        epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, found->second->fd, &event);
    }
}

void event_loop::remove(token &which) {
    auto const found = registered_.find(static_cast<std::uint64_t>(which));
    if (found != registered_.end()) {
        epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second->fd, nullptr);
        registered_.erase(found);
    }
    which = token::none;
}

status event_loop::run_once() {
    std::array<epoll_event, 64> events{};
    int const count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
    if (count < 0) {
        return errno == EINTR ? status() : status(system_error("epoll_wait", errno));
    }
    for (int i = 0; i < count; ++i) {
        auto const &event = events[static_cast<std::size_t>(i)];
        // A copy, since the structure is packed and a reference would be misaligned.
        std::uint64_t const id = event.data.u64;
        auto const found = registered_.find(id);
        if (found != registered_.end()) {
            // A second reference: the handler may remove its own registration.
            auto const keep = found->second;
            keep->on_event(event.events);
        }
    }
    return {};
}

result<timer> timer::create() {
    unique_fd fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    if (!fd) {
        return system_error("timerfd_create", errno);
    }
    return timer(std::move(fd));
}

void timer::arm(double seconds) {
    itimerspec when{};
    double const whole = std::floor(seconds);
    when.it_value.tv_sec = static_cast<time_t>(whole);
    when.it_value.tv_nsec = static_cast<long>((seconds - whole) * 1e9);
    if (when.it_value.tv_sec == 0 && when.it_value.tv_nsec == 0) {
        when.it_value.tv_nsec = 1; // zero would disarm
    }
    timerfd_settime(fd_.get(), 0, &when, nullptr);
    armed_ = true;
}

void timer::disarm() {
    itimerspec const never{};
    timerfd_settime(fd_.get(), 0, &never, nullptr);
    armed_ = false;
}

void timer::acknowledge() {
    std::uint64_t expirations = 0;
    [[maybe_unused]] auto const size = read(fd_.get(), &expirations, sizeof expirations);
    armed_ = false;
}

result<std::unique_ptr<timer>> add_timer(event_loop &loop, const std::function<void()> &on_expiry) {
    auto created = timer::create();
    DIOMP_TRY(created);
    auto made = std::make_unique<timer>(created.take());
    auto added = loop.add(made->fd(), EPOLLIN, [which = made.get(), on_expiry](std::uint32_t) {
        which->acknowledge();
        on_expiry();
    });
    DIOMP_TRY(added);
    return made;
}

} // namespace diomp::run
