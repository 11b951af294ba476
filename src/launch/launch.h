// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How ranks find each other.
//
// Glossary: job: all ranks started together. key-value space: small strings that a rank publishes
// at start-up and that every other rank can read after a fence. The rest of the runtime sees only
// this class; what diomp-run, PMIx or Slurm is stays in the folders below.
#pragma once

#include "base/ids.h"
#include "base/result.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace diomp::launch {

/// Fixed for the life of the job.
struct job_info {
    world_rank rank{0};
    int size = 1;
    local_rank local{0};
    int local_size = 1;
    std::string host;                    ///< name of this node
    std::string job_id;                  ///< unique among the jobs of the site; [A-Za-z0-9._-]
    std::vector<world_rank> local_ranks; ///< world ranks on this node, index is the local rank
    bool is_split = false; ///< all ranks are on this machine, which DIOMP_NODE_SIZE has split

    /// All ranks are on this machine and in its network namespace.
    [[nodiscard]] bool is_on_one_machine() const { return local_size == size || is_split; }
};

/// Calls block until done unless said otherwise; one thread at a time, except abort (any
/// thread) and get (any thread, also while another is in fence).
class launcher {
public:
    virtual ~launcher() = default;

    [[nodiscard]] virtual const job_info &info() const = 0;
    /// Publishes a value under (this rank, key). Visible to others after both called fence(). Once
    /// per key.
    virtual status put(std::string_view key, std::string_view value) = 0;
    /// Reads what `owner` published. A key that was never put is an error (OMPX_ERR_STATE).
    virtual result<std::string> get(world_rank owner, std::string_view key) = 0;
    /// Collective over the job.
    virtual status fence() = 0;
    /// Tells the launcher that this rank ends in good order; exiting without it counts as a
    /// failure.
    virtual status finalize() = 0;
    /// Ends the job with `code`. `message` has been printed already. Does not return to the user's
    /// code: the caller exits after it. Safe in any thread.
    virtual void abort(int code, std::string_view message) noexcept = 0;
    /// The same because this rank has waited in vain: all ranks are asked for their stacks before,
    /// this one too, so the caller stays until watch_fd() says that it is over. False: nothing has
    /// been done, this launcher cannot ask.
    [[nodiscard]] virtual bool give_up(int /*code*/, std::string_view /*message*/) noexcept {
        return false;
    }
    /// Becomes readable when this rank is to show its stacks, once; -1 if that is never asked.
    [[nodiscard]] virtual int stacks_fd() const { return -1; }
    /// Tells that somebody watches stacks_fd(), and that what was asked for is done. Any thread.
    virtual void stacks_ready() noexcept {}
    virtual void stacks_shown() noexcept {}
    /// Becomes readable when the launcher is gone or wants this rank to end; -1 if there is nothing
    /// to watch.
    [[nodiscard]] virtual int watch_fd() const = 0;
    /// "diomp-run", "singleton": for diomp-info and the log.
    [[nodiscard]] virtual const char *name() const = 0;
    /// Reports that the connection to `peer` is lost (nothing: to a rank that is not known), so
    /// that what this rank does next is taken for a consequence of the peer's end. Does not block
    /// for long. Any thread.
    virtual void report_loss(std::optional<world_rank> /*peer*/) noexcept {}
};

/// Finds the launcher that started this process; a world of one rank if none did. A half-present
/// environment (a descriptor that is not a launcher's socket, a rank that is no number) is an
/// error.
result<std::unique_ptr<launcher>> connect();

/// The last that a process does, after finalize() or instead of it if it ends badly: some launchers
/// must be told then, and end the process themselves.
void end_of_process(int exit_status);

} // namespace diomp::launch
