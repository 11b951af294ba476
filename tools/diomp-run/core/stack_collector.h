// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Asks the ranks of a node to print their stacks, and waits until they have.
#pragma once

#include "rank_link.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace diomp::run {

/// Time to print stacks.
inline constexpr double stacks_limit_s = 1.0;

class stack_collector {
public:
    /// A rank that has not printed its stacks.
    struct silent_rank {
        std::size_t index; ///< in `ranks`
        std::string reason;
    };
    using handler = std::function<void(const std::vector<silent_rank> &)>;
    static result<std::unique_ptr<stack_collector>>
    create(event_loop &loop, const std::vector<rank_process> &ranks, handler on_done);

    /// Asks all ranks. `on_done` is called when each has printed its stacks or will not: at once if
    /// no rank can print any, after stacks_limit_s at the latest.
    void request();
    /// Calls `on_done` if no rank is left to wait for.
    void check();
    /// Ends the waiting; `on_done` is not called.
    void cancel() { is_requested_ = false; }

private:
    stack_collector(const std::vector<rank_process> &ranks, handler on_done)
        : ranks_(ranks), on_done_(std::move(on_done)) {}
    void finish();

    const std::vector<rank_process> &ranks_;
    handler on_done_;
    bool is_requested_ = false; ///< until all ranks have answered
    std::unique_ptr<timer> limit_;
};

} // namespace diomp::run
