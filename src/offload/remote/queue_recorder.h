// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reports of a queue to the client's observer.
#pragma once

#include "offload/remote/observer.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace diomp::offload::remote {

/// Records nothing and reads no clock if there is no observer. One thread at a time, except for
/// functions marked otherwise.
class queue_recorder {
public:
    using direction = client_observer::direction;
    using carrier = client_observer::carrier;
    using time_point = client_observer::time_point;

    /// `device`: index among the client's devices. `observer` may be null.
    queue_recorder(client_observer *observer, std::size_t device)
        : observer_(observer), device_(device) {}

    /// The current time if there is an observer. Any thread.
    [[nodiscard]] time_point now() const {
        return observer_ == nullptr ? time_point{} : std::chrono::steady_clock::now();
    }
    /// A transfer that was given to the queue at `begin` travels inside a message, or is complete.
    void moved(direction which, carrier by, std::size_t nbytes, time_point begin);
    /// A transfer starts.
    void started(direction which, carrier by, std::size_t nbytes);
    /// The puts of the network are complete.
    void finished_puts();
    /// All transfers are complete.
    void finished_all();
    /// Transfers in flight are not reported.
    void abandon() { in_flight_.clear(); }

    void sent(std::size_t nbytes);
    /// The reply to the last message; `kernel`: the first one since the previous reply.
    void replied(std::size_t nbytes, std::uint64_t kernel);
    /// A thread has waited for the queue since `begin`. Any thread.
    void waited(time_point begin);

private:
    struct transfer {
        direction which;
        carrier by;
        std::size_t nbytes;
        time_point begin;
    };
    template <typename IsComplete>
    void finish_if(IsComplete is_complete);

    client_observer *observer_;
    std::size_t device_;
    std::vector<transfer> in_flight_;
    time_point transmitted_at_;
};

} // namespace diomp::offload::remote
