// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The hosts of a job as the head sees them.
#pragma once

#include "core/watched_process.h"
#include "frame_link.h"
#include "host_list.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace diomp::run {

enum class host_stage : std::uint8_t {
    waiting,   ///< the remote shell has not been started
    starting,  ///< until the agent connects
    connected, ///< until the agent is ready
    ready,     ///< the program was found; until all hosts are ready
    running,
    gone, ///< the agent is done or lost
};

struct host {
    rank_block block;
    host_stage stage = host_stage::waiting; ///< changed by host_table::enter()
    bool is_local = false;                  ///< this machine: no remote shell needed
    watched_process shell;                  ///< the remote shell; leads a process group
    std::size_t shell_output = 0;           ///< number of its pipe in output_hub
    std::unique_ptr<frame_link> link;
    std::chrono::steady_clock::time_point last_received; ///< of a frame, or the start
    std::uint32_t unacked_bytes = 0; ///< bytes of output written but not acknowledged

    /// Returns "b (ranks 4 to 7)".
    [[nodiscard]] std::string describe() const;
};

class host_table {
public:
    host_table(std::vector<rank_block> blocks, int ranks);

    [[nodiscard]] auto begin() { return hosts_.begin(); }
    [[nodiscard]] auto end() { return hosts_.end(); }
    [[nodiscard]] std::size_t size() const { return hosts_.size(); }
    [[nodiscard]] host &operator[](std::size_t index) { return hosts_[index]; }
    void clear() { hosts_.clear(); }

    void enter(host &which, host_stage next);
    /// Returns the number of hosts in a stage.
    [[nodiscard]] std::size_t count(host_stage stage) const {
        return counts_[static_cast<std::size_t>(stage)];
    }
    [[nodiscard]] bool all_are(host_stage stage) const { return count(stage) == hosts_.size(); }
    void send_to_all(std::string_view frame);

    void set_pid(int rank, pid_t pid) { pids_[static_cast<std::size_t>(rank)] = pid; }
    /// Returns "rank 3 on b (pid 17, ./app)"; without the process id if it is not known.
    [[nodiscard]] std::string describe_rank(int rank, const std::string &program) const;

private:
    std::vector<host> hosts_;
    std::array<std::size_t, 6> counts_{}; ///< [stage]
    std::vector<pid_t> pids_;             ///< [rank]; -1: not known
};

} // namespace diomp::run
