// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a session's regions print goes to the client: standard output and standard error are pipes
// that this class empties.
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

/// What a session prints to, [standard output, standard error].
struct output_pipes {
    static result<output_pipes> make();
    /// Sends what is in them now.
    std::array<std::uint64_t, 2> send_to(remote::control_link &client) const;

    std::array<unique_fd, 2> read; ///< do not block
    std::array<unique_fd, 2> write;
};

/// The access to memory by which a session has crashed, for its service.
struct faulty_access {
    std::atomic<bool> is_known{false};
    std::atomic<std::uint64_t> address{0};
};

class output {
public:
    /// From now on the process prints to the client, also what it prints before it crashes: signals
    /// that end it wait for what is on its way, and leave in `fault` what they know of the reason.
    /// The log stays with the service. Once per process.
    static result<std::unique_ptr<output>> redirect(remote::control_link &client,
                                                    output_pipes pipes, faulty_access &fault);
    /// Ends the thread; what has been printed is sent before.
    ~output();
    output(const output &) = delete;
    output &operator=(const output &) = delete;

    /// Sends all that has been printed, and how many bytes of each stream that are by now. Any
    /// thread.
    std::array<std::uint64_t, 2> flush();

private:
    output(remote::control_link &client, output_pipes pipes)
        : client_(client), pipes_(std::move(pipes)) {}
    void send_pending(); ///< with mutex_
    void serve();

    remote::control_link &client_;
    output_pipes pipes_; ///< ends to read from
    unique_fd log_;      ///< standard error of the service
    unique_fd stop_;
    std::mutex mutex_;
    std::array<std::uint64_t, 2> sent_{};
    std::thread thread_;
};

} // namespace diomp::offload::service
