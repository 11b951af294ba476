// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The client of this process's remote devices, which libomptarget's plugin and the address space of
// a job share. In remote.cpp.
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

/// Keeps the client while it is in use. Any thread; does not block.
class remote_client_guard {
public:
    remote_client_guard();
    ~remote_client_guard();
    remote_client_guard(const remote_client_guard &) = delete;
    remote_client_guard &operator=(const remote_client_guard &) = delete;

    /// Null: the devices have been closed, or belong to the parent of this process.
    [[nodiscard]] offload::remote::client *client() const { return client_; }

private:
    offload::remote::client *client_ = nullptr;
};

} // namespace diomp::api
