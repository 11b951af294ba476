// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers that nobody has an event for: the next fence completes them, as OpenSHMEM's quiet does
// with its _nbi calls.
#pragma once

#include "conduit/engine.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace diomp::rma {

/// Any thread.
class unnamed_transfers {
public:
    /// Keeps a count open while its transfer is being started: else a fence could take it for done.
    class started {
    public:
        explicit started(std::shared_ptr<conduit::completion> count) : count_(std::move(count)) {}
        ~started() { count_->end(); }
        started(const started &) = delete;
        started &operator=(const started &) = delete;
        [[nodiscard]] conduit::completion &count() { return *count_; }
        [[nodiscard]] const std::shared_ptr<conduit::completion> &shared() const { return count_; }

    private:
        std::shared_ptr<conduit::completion> count_; ///< one is pending for this object
    };

    /// Where a transfer counts that is about to be started; with `alone`, no other does.
    [[nodiscard]] started begin(bool alone);

    /// Transfers that begin from now on count elsewhere than those before.
    void close();

    /// Blocks until all that began before this call are complete. Not for what other threads begin
    /// meanwhile.
    status wait(conduit::engine &engine);

private:
    std::atomic<bool> has_some_{false};
    std::mutex mutex_;                                         ///< leaf lock over the rest
    std::shared_ptr<conduit::completion> open_;                ///< takes further transfers
    std::vector<std::shared_ptr<conduit::completion>> closed_; ///< not seen complete by a fence
};

} // namespace diomp::rma
