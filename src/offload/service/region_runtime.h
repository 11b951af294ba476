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

struct diomp_offload_table;

namespace diomp::offload::service {

/// Lives until the process ends. One thread.
class region_runtime {
public:
    /// `launcher`: of the job of sessions.
    explicit region_runtime(std::unique_ptr<launch::launcher> launcher)
        : launcher_(std::move(launcher)) {}

    /// A GPU as LLVM's plugin of this name numbers it.
    struct gpu {
        std::string plugin;
        int device = 0;
    };
    /// Loads and starts the runtime as `how` says; its ranks are sessions of `ranks`. Without a GPU
    /// the slot is the device's memory. Collective; blocks. Changes the environment.
    status start(remote::world &ranks, const remote::join_frame &how, std::optional<gpu> on);
    /// The segment of the GPU, see diomp_session_segment_function. Blocks. Any thread.
    [[nodiscard]] std::uint64_t segment(std::size_t nbytes, std::uint64_t preferred) const {
        return segment_(nbytes, preferred);
    }
    /// What libomptarget calls for regions on the GPU.
    [[nodiscard]] const diomp_offload_table &regions() const { return *regions_; }
    /// Completes the transfers of all regions so far. Blocks. Any thread.
    void fence() const { fence_(); }
    /// A session of this node has ended. Any thread.
    void on_lost(world_rank in_world) const { lost_(in_world.value()); }
    /// Makes an encoded call of the host on the device's memory. Blocks. Returns its
    /// error. Any thread.
    [[nodiscard]] std::optional<remote::call_error> run_call(std::string_view call) const;
    /// Takes an encoded group of the host, see diomp_session_group_function. Any thread.
    [[nodiscard]] bool note_group(std::string_view group) const {
        return group_(group.data(), group.size()) != 0;
    }
    /// The first error of a call since the last call, encoded, unless that has more bytes; "":
    /// none. Any thread.
    std::string take_error(std::size_t max_bytes);

private:
    /// Finds the functions of libdiomp.so.
    status find_functions(void *library);
    static int map_memory(void *ranks, std::int32_t session, void *to);
    static void report(void *self, std::int32_t code, const char *function, const char *arguments,
                       const char *message, const char *remedy);

    std::unique_ptr<launch::launcher> launcher_;
    std::optional<gpu> gpu_;
    diomp_session session_{};
    // Set by start().
    diomp_session_start_function start_ = nullptr;
    diomp_session_fence_function fence_ = nullptr;
    diomp_session_call_function call_ = nullptr;
    diomp_session_lost_function lost_ = nullptr;
    diomp_session_segment_function segment_ = nullptr;
    diomp_session_group_function group_ = nullptr;
    const diomp_offload_table *regions_ = nullptr;
    std::mutex mutex_;  ///< leaf lock; protects the rest
    std::string error_; ///< encoded
};

} // namespace diomp::offload::service
