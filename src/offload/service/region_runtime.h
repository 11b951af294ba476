// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The runtime for calls in regions of a session: libdiomp.so in its process.
#pragma once

#include "base/result.h"
#include "launch/launch.h"
#include "offload/remote/protocol.h"
#include "offload/remote/world.h"
#include "offload/session_table.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace diomp::offload::service {

/// Lives until the process ends. One thread.
class region_runtime {
public:
    /// `launcher`: of the job of sessions.
    explicit region_runtime(std::unique_ptr<launch::launcher> launcher)
        : launcher_(std::move(launcher)) {}

    /// Loads and starts the runtime; its ranks are sessions of `ranks`, and `network` connects
    /// those that do not share memory. Waits in its calls end after `timeout` (a value of
    /// DIOMP_TIMEOUT). Collective; blocks. Changes the environment.
    status start(remote::world &ranks, const std::string &network, bool encrypts,
                 const std::string &timeout);
    /// Completes the transfers of all regions so far. Blocks. Any thread.
    void fence() const { fence_(); }
    /// A session of this node has ended. Any thread.
    void on_lost(world_rank in_world) const { lost_(in_world.value()); }
    /// Makes an encoded collective call of the host on the device's memory. Blocks. Returns its
    /// error. Any thread.
    [[nodiscard]] std::optional<remote::call_error> run_collective(std::string_view call) const;
    /// The first error of a call since the last call, encoded, unless that has more bytes; "":
    /// none. Any thread.
    std::string take_error(std::size_t max_bytes);

private:
    static int map_memory(void *ranks, std::int32_t session, void *to);

    std::unique_ptr<launch::launcher> launcher_;
    static void report(void *self, std::int32_t code, const char *function, const char *arguments,
                       const char *message, const char *remedy);

    diomp_session session_{};
    // Set by start().
    diomp_session_fence_function fence_ = nullptr;
    diomp_session_collective_function collective_ = nullptr;
    diomp_session_lost_function lost_ = nullptr;
    std::mutex mutex_;  ///< leaf lock; protects the rest
    std::string error_; ///< encoded
};

} // namespace diomp::offload::service
