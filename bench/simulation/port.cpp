// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "port.h"

#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u/Actor.hpp>
#include <simgrid/s4u/Comm.hpp>
#include <simgrid/s4u/Engine.hpp>
#include <simgrid/s4u/Host.hpp>
#include <utility>

namespace diomp::simulation {

namespace s4u = simgrid::s4u;

port::port(s4u::Host *host) : host_(host), arrivals_(s4u::Semaphore::create(0)) {}

packet port::next() {
    packet first = std::move(packets_.front());
    packets_.pop_front();
    return first;
}

void port::notify() {
    if (!std::exchange(is_notified_, true)) {
        arrivals_->release();
    }
}

void port::notify_after(double seconds) {
    if (!std::exchange(has_timer_, true)) {
        simgrid::kernel::timer::Timer::set(s4u::Engine::get_clock() + seconds, [this] {
            has_timer_ = false;
            notify();
        });
    }
}

void port::wait() {
    arrivals_->acquire();
    is_notified_ = false;
}

port::connection &port::connection_to(const port &to) {
    auto const [found, is_new] = connections_.try_emplace(&to);
    if (is_new) {
        std::vector<s4u::Link *> links;
        host_->route_to(to.host(), links, &found->second.latency_s);
    }
    return found->second;
}

// The network's own latency is zero (program.cpp): a message whose bytes wait for those of an
// earlier one has its latency meanwhile. An actor for each message, since SimGrid 3.32 tells only a
// waiting actor that a message has arrived.
void port::send(const port &to, std::size_t nbytes, std::function<void()> then) {
    connection &through = connection_to(to);
    s4u::Actor::create(
        "message", host_,
        [this, &through, target = to.host(), what = transfer{nbytes, std::move(then)}] {
            spend(through.latency_s);
            pass(through, target, what);
        });
}

void port::pass(connection &through, s4u::Host *target, transfer what) {
    through.waiting.push_back(std::move(what));
    if (std::exchange(through.is_busy, true)) {
        return;
    }
    while (!through.waiting.empty()) {
        transfer const first = std::move(through.waiting.front());
        through.waiting.pop_front();
        s4u::Comm::sendto(host_, target, first.nbytes);
        first.then();
    }
    through.is_busy = false;
}

void spend(double seconds) {
    if (seconds > 0) {
        s4u::this_actor::sleep_for(seconds);
    }
}

} // namespace diomp::simulation
