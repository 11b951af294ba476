// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Implicit nonblocking transfers, which have no event: the next fence completes them, as
// OpenSHMEM's quiet completes _nbi calls.
#pragma once

#include "base/result.h"
#include "transport/types.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace diomp::messaging {
class engine;
}

namespace diomp::rma {

/// Any thread.
class implicit_ops {
public:
    /// Holds a count pending while its transfer is started, so that a fence does not find it done.
    class started {
    public:
        explicit started(std::shared_ptr<transport::completion> count) : count_(std::move(count)) {}
        ~started() { count_->end(); }
        started(const started &) = delete;
        started &operator=(const started &) = delete;
        [[nodiscard]] transport::completion &count() { return *count_; }
        [[nodiscard]] const std::shared_ptr<transport::completion> &shared() const {
            return count_;
        }

    private:
        std::shared_ptr<transport::completion> count_; ///< one pending entry belongs to this object
    };

    /// The count for a transfer about to be started; with `separately`, not shared with others.
    [[nodiscard]] started begin(bool separately);

    /// Later transfers use another count than earlier ones.
    void close();

    /// Blocks until all transfers that began before this call are complete. Does not wait for
    /// transfers that other threads begin meanwhile.
    status wait(messaging::engine &engine);

private:
    std::atomic<bool> has_some_{false};
    std::mutex mutex_;                                           ///< leaf lock over the rest
    std::shared_ptr<transport::completion> open_;                ///< used by further transfers
    std::vector<std::shared_ptr<transport::completion>> closed_; ///< not found complete by a fence
};

} // namespace diomp::rma
