// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The socket to the launcher's process on this node: requests, replies, and detection of its end.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"
#include "launch/fence_limits.h"
#include "launch/pmi/text.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace diomp::launch::pmi {

/// PMI-2's field for a number of a request, which the reply has as well.
inline constexpr const char *request_number = "thrid";

class pmi_connection {
public:
    /// Takes ownership of the descriptor and sets FD_CLOEXEC. If it is not a stream socket, returns
    /// an error and leaves it unchanged. `limits`: of the waits for replies, since the launcher
    /// replies to a fence when all ranks are in it.
    static result<pmi_connection> adopt(int fd, const fence_limits &limits);

    /// Sends a PMI-1 line and waits for the reply. `expected` is the reply's cmd. Any thread: a
    /// value may be read while another thread waits for the end of a fence.
    result<fields> query_line(const fields &request, std::string_view expected);
    /// query_line() for a PMI-2 message. If it has a request_number of 1, `expected` is the reply's
    /// cmd and "#1", and a query of the same cmd without a number may be made meanwhile.
    result<fields> query_message(const fields &request, std::string_view expected);
    /// Sends without waiting for a reply. Any thread.
    status send(std::string_view bytes);

    /// Leaves the socket open until the process ends.
    void leave_open() { static_cast<void>(socket_.release()); }

    /// Becomes readable when the launcher has closed the socket, but not by a reply.
    [[nodiscard]] int watch_fd() const { return watch_.get(); }

private:
    pmi_connection(unique_fd socket, unique_fd watch, const fence_limits &limits)
        : socket_(std::move(socket)), watch_(std::move(watch)), limits_(limits),
          queries_(std::make_unique<queries>()) {}

    using receive_function = result<fields> (pmi_connection::*)();
    result<fields> query(std::string_view request, std::string_view expected,
                         receive_function receive_reply);
    /// Waits until a reply of this command arrives, in this thread or in another one that reads.
    /// Call with the lock of queries_->mutex.
    result<fields> wait_for_reply(std::unique_lock<std::mutex> &lock, std::string_view expected,
                                  receive_function receive_reply);
    result<fields> receive_line();
    result<fields> receive_message();
    /// Receives until the buffer holds `bytes`.
    status fill(std::size_t bytes);
    status receive();

    unique_fd socket_;
    unique_fd watch_;
    fence_limits limits_;
    std::string buffer_; ///< received, not yet parsed; of the thread that reads
    /// The queries of all threads. Replies to different commands may come in any order.
    struct queries {
        std::mutex mutex; ///< leaf lock; protects the rest
        std::condition_variable changed;
        bool is_reading = false;              ///< one thread receives
        std::vector<std::string> outstanding; ///< expected commands, each once
        std::vector<fields> replies;          ///< received for other threads
    };
    std::unique_ptr<queries> queries_;
};

} // namespace diomp::launch::pmi
