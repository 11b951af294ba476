// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The launcher interface: how a rank joins its job and exchanges addresses with other ranks.
//
// Glossary: job: all ranks started together. key-value space: small strings that a rank publishes
// at start-up and that every other rank can read after a fence. The rest of the runtime uses only
// this class; the code for diomp-run, PMIx, PMI and others is in the folders below.
#pragma once

#include "base/ids.h"
#include "base/result.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace diomp::launch {

/// Constant during the job.
struct job_info {
    world_rank rank{0};
    int size = 1;
    local_rank local{0};
    int local_size = 1;
    std::string host;                    ///< name of this node
    std::string job_id;                  ///< unique among the jobs of the site; [A-Za-z0-9._-]
    std::vector<world_rank> local_ranks; ///< world ranks on this node, index is the local rank
    bool is_split = false; ///< all ranks are on this machine, which DIOMP_NODE_SIZE has split

    /// True if all ranks are on this machine and in its network namespace.
    [[nodiscard]] bool is_on_one_machine() const { return local_size == size || is_split; }
};

/// Calls block until done unless stated otherwise. One thread at a time, except abort (any thread)
/// and get (any thread, also while another is in fence).
class launcher {
public:
    virtual ~launcher() = default;

    [[nodiscard]] virtual const job_info &info() const = 0;
    /// Publishes a value under (this rank, key). Visible to others after both called fence(). Once
    /// per key.
    virtual status put(std::string_view key, std::string_view value) = 0;
    /// Reads what `owner` published. A key that was never put is an error (OMPX_ERR_STATE).
    virtual result<std::string> get(world_rank owner, std::string_view key) = 0;
    /// Barrier over the job that makes published values visible. Collective.
    virtual status fence() = 0;
    /// Reports that this rank ends normally; an exit without this call counts as a failure.
    virtual status finalize() = 0;
    /// Ends the job with `code`. `message` has been printed already. Does not return to the user's
    /// code: the caller exits after it. Safe in any thread.
    virtual void abort(int code, std::string_view message) noexcept = 0;
    /// Ends the job with `code` after a timeout or a lost peer: all ranks, this one too, first
    /// print their stacks. The caller stays until watch_fd() becomes readable. False: this launcher
    /// cannot request stacks, and nothing has been done.
    [[nodiscard]] virtual bool give_up(int /*code*/, std::string_view /*message*/) noexcept {
        return false;
    }
    /// A byte: this rank is to print its stacks; end of file: it is, and the job ends then. -1 if
    /// that never happens.
    [[nodiscard]] virtual int stacks_fd() const { return -1; }
    /// Report that a thread polls stacks_fd(), and that the stacks have been printed. Any thread.
    virtual void stacks_ready() noexcept {}
    virtual void stacks_shown() noexcept {}
    /// Becomes readable when the launcher has ended or ends this rank; -1 if there is no such
    /// descriptor.
    [[nodiscard]] virtual int watch_fd() const = 0;
    /// Name for diomp-info and the log: "diomp-run", "singleton".
    [[nodiscard]] virtual const char *name() const = 0;
    /// Reports that the connection to `peer` is lost (empty: an unknown rank), so that later
    /// failures of this rank count as a consequence of the peer's. Does not block for long. Any
    /// thread.
    virtual void report_peer_failure(std::optional<world_rank> /*peer*/) noexcept {}
};

/// Joins the job of the launcher that started this process; a world of one rank if there is none.
/// An incomplete environment (a descriptor that is not a launcher's socket, a rank that is not a
/// number) is an error.
result<std::unique_ptr<launcher>> connect();

/// Last call of a process, after finalize(), or instead of it after a failure. Some launchers need
/// this notification and end the process themselves.
void notify_process_exit(int exit_status);

} // namespace diomp::launch
