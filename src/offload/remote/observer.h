// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a client says about its work, for statistics and traces. Clients without an observer read no
// clock and count nothing.
#pragma once

#include "offload/remote/protocol.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace diomp::offload::remote {

/// Calls come from any thread, with locks of the client held: they return soon and call nothing of
/// it. `device` counts the client's devices from 0.
class observer {
public:
    using time_point = std::chrono::steady_clock::time_point;
    enum class direction { to_device, from_device, between_devices };
    /// How bytes move: they are part of a message or reply; the network puts or gets them; the
    /// session does.
    enum class carrier { message, network, session };

    observer() = default;
    virtual ~observer() = default;
    observer(const observer &) = delete;
    observer &operator=(const observer &) = delete;

    /// A transfer. With messages `end` is when it had been added to one, else when its bytes were
    /// known to be there.
    virtual void moved(std::size_t device, direction which, carrier by, std::size_t nbytes,
                       time_point begin, time_point end) = 0;
    /// A message with operations has left.
    virtual void sent(std::size_t device, std::size_t nbytes) = 0;
    /// The reply to the last message, which left at `begin`, and the first kernel of that queue
    /// since the reply before (0: none).
    virtual void answered(std::size_t device, std::size_t nbytes, std::uint64_t kernel,
                          time_point begin, time_point end) = 0;
    /// A thread of the program has waited for a queue.
    virtual void waited(std::size_t device, time_point begin, time_point end) = 0;
    /// An image of so many bytes has been loaded.
    virtual void loaded(std::size_t device, std::size_t nbytes, time_point begin,
                        time_point end) = 0;
    /// A symbol of an image is there.
    virtual void found(std::size_t device, std::uint64_t address, const std::string &symbol) = 0;
    /// At the end of a session: what ran there, by the session's own clock.
    virtual void ran(std::size_t device, std::span<const kernel_time> kernels) = 0;
};

} // namespace diomp::offload::remote
