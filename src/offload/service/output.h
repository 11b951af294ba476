// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Forwards the standard output and standard error of a session's regions to the client. Both are
// pipes that this class reads.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"
#include "offload/remote/control.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

namespace diomp::offload::service {

/// Pipes that a session prints to, [standard output, standard error].
struct output_pipes {
    static result<output_pipes> make();
    /// Sends the bytes that are in the pipes now. Returns how many of each stream were sent.
    std::array<std::uint64_t, 2> send_to(remote::control_connection &client) const;

    std::array<unique_fd, 2> read; ///< non-blocking
    std::array<unique_fd, 2> write;
};

/// Memory access that crashed a session, for its service.
struct faulty_access {
    std::atomic<bool> is_known{false};
    std::atomic<std::uint64_t> address{0};
};

class output {
public:
    /// Redirects the output of this process to the client, including output before a crash:
    /// handlers of fatal signals wait for a send in progress and record the fault address in
    /// `fault`. Log messages still go to the service's standard error. Once per process.
    static result<std::unique_ptr<output>> redirect(remote::control_connection &client,
                                                    output_pipes pipes, faulty_access &fault);
    /// Sends all output and ends the thread.
    ~output();
    output(const output &) = delete;
    output &operator=(const output &) = delete;

    /// Sends all output. Returns the total number of bytes of each stream sent so far. Any thread.
    std::array<std::uint64_t, 2> flush();

private:
    output(remote::control_connection &client, output_pipes pipes)
        : client_(client), pipes_(std::move(pipes)) {}
    void send_pending(); ///< called with mutex_ held
    void serve();

    remote::control_connection &client_;
    output_pipes pipes_; ///< only the read ends are used
    unique_fd log_;      ///< the service's standard error
    unique_fd stop_;
    std::mutex mutex_;
    std::array<std::uint64_t, 2> sent_{};
    std::thread thread_;
};

} // namespace diomp::offload::service
