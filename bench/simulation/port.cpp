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

void port::deliver(packet arrived) {
    if (arrived.is_long) {
        packets_.push_back(std::move(arrived));
        return;
    }
    stream &from = streams_[arrived.source.value()];
    from.early.emplace(arrived.order, std::move(arrived));
    for (auto first = from.early.begin(); first != from.early.end() && first->first == from.next;
         ++from.next) {
        packets_.push_back(std::move(first->second));
        first = from.early.erase(first);
    }
}

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

// An actor for each message: SimGrid 3.32 tells only a waiting actor that a message has arrived.
void carry(const port &from, const port &to, std::size_t nbytes, std::function<void()> then) {
    s4u::Host *const source = from.host();
    s4u::Host *const target = to.host();
    s4u::Actor::create("message", source, [source, target, nbytes, then = std::move(then)] {
        s4u::Comm::sendto(source, target, nbytes);
        then();
    });
}

void spend(double seconds) {
    if (seconds > 0) {
        s4u::this_actor::sleep_for(seconds);
    }
}

} // namespace diomp::simulation
