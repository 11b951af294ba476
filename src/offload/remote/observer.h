// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Interface through which a client reports its work to statistics and traces. A client without an
// observer reads no clock and counts nothing.
#pragma once

#include "offload/remote/protocol.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace diomp::offload::remote {

/// Calls come from any thread, with locks of the client held: an implementation returns soon and
/// must not call the client. `device` is the index among the client's devices, from 0.
class client_observer {
public:
    using time_point = std::chrono::steady_clock::time_point;
    enum class direction { to_device, from_device, between_devices };
    /// How bytes move: inside a message or reply; by a put or get of the client; by its loads and
    /// stores; by a transfer that the session starts.
    enum class carrier { message, network, memory, session };

    client_observer() = default;
    virtual ~client_observer() = default;
    client_observer(const client_observer &) = delete;
    client_observer &operator=(const client_observer &) = delete;

    /// A transfer. `end` is the time when it was added to a message (carrier::message) or when it
    /// was complete.
    virtual void moved(std::size_t device, direction which, carrier by, std::size_t nbytes,
                       time_point begin, time_point end) = 0;
    /// A message with operations was sent.
    virtual void sent(std::size_t device, std::size_t nbytes) = 0;
    /// The reply to the queue's last message was received. `begin`: when that message was sent;
    /// `kernel`: the first kernel of the queue since the previous reply (0: none).
    virtual void replied(std::size_t device, std::size_t nbytes, std::uint64_t kernel,
                         time_point begin, time_point end) = 0;
    /// A thread of the program waited for a queue.
    virtual void waited(std::size_t device, time_point begin, time_point end) = 0;
    /// An image of `nbytes` was loaded.
    virtual void loaded(std::size_t device, std::size_t nbytes, time_point begin,
                        time_point end) = 0;
    /// A symbol of an image has this address.
    virtual void found(std::size_t device, std::uint64_t address, const std::string &symbol) = 0;
    /// At the end of a session: the kernels that ran, measured by the session's clock.
    virtual void ran(std::size_t device, std::span<const kernel_time> kernels) = 0;
};

} // namespace diomp::offload::remote
