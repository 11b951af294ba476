// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Takes messages out of the rings of all peers and runs their handlers.
#pragma once

#include "transport/gaspi/message_sender.h"

#include <memory>
#include <mutex>
#include <thread>

namespace diomp::transport::gaspi {

/// Any thread.
class message_receiver {
public:
    /// `mutex`: the lock of `credits`.
    message_receiver(std::span<const std::unique_ptr<peer>> peers, message_sender &credits,
                     std::mutex &mutex)
        : peers_(peers), credits_(credits), mutex_(mutex) {}

    [[nodiscard]] bool has_messages() const;
    /// Hands messages to the handler. Returns their number; 0 if another thread is receiving.
    int receive(message_handler handle);
    /// Whether the calling thread is in receive().
    [[nodiscard]] bool is_handling_here() const {
        return receiver_.load(std::memory_order_relaxed) == std::this_thread::get_id();
    }

private:
    [[nodiscard]] peer *next_sender();
    int receive_from(peer &from, message_handler handle);

    std::span<const std::unique_ptr<peer>> peers_;
    message_sender &credits_;
    std::mutex &mutex_;
    std::atomic_flag receiving_;
    std::atomic<std::thread::id> receiver_; ///< the thread that runs handlers
    std::uint32_t next_sender_ = 0;         ///< under receiving_
};

} // namespace diomp::transport::gaspi
