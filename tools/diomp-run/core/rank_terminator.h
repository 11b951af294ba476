// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Signals the ranks of a node and ends them: with SIGKILL after a grace period.
#pragma once

#include "pipe.h"
#include "rank_link.h"

#include <functional>
#include <memory>
#include <vector>

namespace diomp::run {

/// Time to end after a signal, before SIGKILL.
inline constexpr double grace_s = 1.0;
/// Time for processes to end after SIGKILL: at once, unless they hang in the kernel.
inline constexpr double kill_limit_s = 5.0;

class rank_terminator {
public:
    /// `on_end` is called when end() or kill() begins.
    static result<std::unique_ptr<rank_terminator>>
    create(event_loop &loop, const std::vector<rank_process> &ranks, std::function<void()> on_end);

    /// Ranks hold this descriptor; its end of file means that the job has ended.
    [[nodiscard]] int liveness_fd() const { return liveness_pipe_.reading.get(); }
    /// Sends the signal, and SIGKILL after grace_s to the processes that are left. `notify`: also
    /// closes the liveness pipe.
    void end(int signal, bool notify);
    void kill();
    void signal(int number) const;
    /// Forwards a signal that diomp-run has got. A SIGUSR1 or SIGUSR2 that would end a rank which
    /// can print its stacks makes it print them instead.
    void forward(int number) const;
    /// Kills the processes that the ranks have left; the last signal, because the ranks are reaped
    /// next and their process ids may be reused.
    void kill_remaining();
    [[nodiscard]] bool has_killed() const { return has_killed_; }
    /// Returns whether processes are left even after SIGKILL.
    [[nodiscard]] bool gave_up() const { return gave_up_; }

private:
    rank_terminator(const std::vector<rank_process> &ranks, std::function<void()> on_end)
        : ranks_(ranks), on_end_(std::move(on_end)) {}
    void on_grace_over();

    const std::vector<rank_process> &ranks_;
    std::function<void()> on_end_;
    pipe_ends liveness_pipe_;
    std::unique_ptr<timer> grace_;
    bool has_killed_ = false;
    bool gave_up_ = false;
    bool is_done_ = false; ///< kill_remaining() was called
};

} // namespace diomp::run
