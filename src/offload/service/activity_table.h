// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a session does, for the service that has started it.
#pragma once

#include "offload/remote/control.h"
#include "offload/service/output.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <string>

namespace diomp::offload::service {

/// Kernels that the session is running, in memory that the service can still read after the session
/// has crashed. Threads with larger numbers than it has entries are not shown.
struct activity_table {
    static constexpr std::size_t num_entries = 64;
    struct entry {
        std::atomic<bool> is_busy{false};
        char kernel[240] = {};
    };
    std::array<entry, num_entries> entries;
    faulty_access fault;
    remote::frame_count sent; ///< to the client

    void begin(std::size_t thread, const std::string &kernel);
    void end(std::size_t thread);
    /// "kernel a, kernel b", or "" if no kernel runs.
    [[nodiscard]] std::string describe() const;
};

} // namespace diomp::offload::service
