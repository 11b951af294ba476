// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The client of this process's remote devices, which libomptarget's plugin (remote_table.cpp) and
// the address space of a job share. In remote.cpp.
#pragma once

#include "base/result.h"

namespace diomp::launch {
class launcher;
}

namespace diomp::offload::remote {
class client;
}

namespace diomp::api {

/// Connects the client of this process with those of the other ranks (client::options::job).
status connect_remote_client(launch::launcher &job);

/// Connects the client, unless connect_remote_client() has, for libomptarget. Returns the number of
/// devices. Blocks.
result<int> open_remote_client();
/// libomptarget has shut down its devices: ends the sessions, unless ranks of the job may need
/// them. Ends the process if deferred regions have failed.
void close_remote_client();
/// Call before each use of a device: connects a forked child with sessions of its own. Errors:
/// OMPX_ERR_STATE if the parent had used a device before the fork.
status use_remote_client();
/// Null before it has been opened and after its end. In a forked child, the parent's until
/// use_remote_client().
[[nodiscard]] offload::remote::client *shared_remote_client();
/// False also in a forked child that has not used a device.
[[nodiscard]] bool has_own_remote_client();
/// Whether this process or its parent has used a device.
[[nodiscard]] bool is_remote_client_used();
/// Whether a device of this process has, or had, a segment. In remote_memory.cpp.
[[nodiscard]] bool has_remote_segment();

/// A use of the client by a thread of the program. After the devices have been shut down, threads
/// inside and new ones block forever.
class remote_attempt {
public:
    remote_attempt();
    ~remote_attempt();
    remote_attempt(const remote_attempt &) = delete;
    remote_attempt &operator=(const remote_attempt &) = delete;
};

/// Keeps the client while it is in use. Any thread; does not block.
class remote_client_guard {
public:
    enum class scope {
        program, ///< until libomptarget shuts down its devices
        job,     ///< until leave_remote_devices(): for other ranks
    };
    explicit remote_client_guard(scope of = scope::program);
    ~remote_client_guard();
    remote_client_guard(const remote_client_guard &) = delete;
    remote_client_guard &operator=(const remote_client_guard &) = delete;

    /// Null: the devices have been closed, or belong to the parent of this process.
    [[nodiscard]] offload::remote::client *client() const { return client_; }

private:
    offload::remote::client *client_ = nullptr;
};

} // namespace diomp::api
