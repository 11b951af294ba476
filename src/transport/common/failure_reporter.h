// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reports lost peers to the layers above.
#pragma once

#include "base/log.h"
#include "transport/types.h"

#include <mutex>

namespace diomp::transport {

/// Thread-safe.
class failure_reporter {
public:
    /// See network_peers::report_failures_to; an empty function ends the reports.
    void set_handler(const failure_handler &handle) {
        std::lock_guard const guard(mutex_);
        handler_ = handle;
    }
    /// Call once per lost peer, without locks.
    void report(world_rank lost, const std::string &sentence) {
        std::lock_guard const guard(mutex_);
        if (handler_) {
            handler_(lost, sentence);
        } else {
            log(log_level::debug, "{}", sentence);
        }
    }

private:
    std::mutex mutex_;
    failure_handler handler_;
};

} // namespace diomp::transport
