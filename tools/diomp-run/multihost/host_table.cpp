// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "host_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace diomp::run {

std::string host::describe() const {
    return fmt::format("{} (ranks {} to {})", block.name, block.first_rank,
                       block.first_rank + block.ranks - 1);
}

host_table::host_table(std::vector<rank_block> blocks, int ranks)
    : hosts_(blocks.size()), pids_(static_cast<std::size_t>(ranks), -1) {
    for (std::size_t index = 0; index < blocks.size(); ++index) {
        hosts_[index].block = std::move(blocks[index]);
    }
    counts_[static_cast<std::size_t>(host_stage::waiting)] = blocks.size();
}

void host_table::enter(host &which, host_stage next) {
    --counts_[static_cast<std::size_t>(which.stage)];
    ++counts_[static_cast<std::size_t>(next)];
    which.stage = next;
}

void host_table::send_to_all(std::string_view frame) {
    for (host &each : hosts_) {
        if (each.link) {
            each.link->send(frame);
        }
    }
}

std::string host_table::describe_rank(int rank, const std::string &program) const {
    auto const after = std::ranges::upper_bound(
        hosts_, rank, {}, [](const host &each) { return each.block.first_rank; });
    pid_t const pid = pids_[static_cast<std::size_t>(rank)];
    return fmt::format("rank {} on {} ({}{})", rank, (after - 1)->block.name,
                       pid > 0 ? fmt::format("pid {}, ", pid) : "", program);
}

} // namespace diomp::run
