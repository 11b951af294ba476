// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/same_node.h"

#include "launch/host.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string_view>
#include <sys/stat.h>
#include <utility>

namespace diomp::launch {

std::string node_identity() {
    std::string boot;
    // Not readable in some containers; the host name then identifies the node.
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    struct stat network{};
    if (stat("/proc/self/ns/net", &network) != 0) {
        network.st_ino = 0;
    }
    return fmt::format("{}/{}/{}", host_name(), boot, network.st_ino);
}

void set_local_ranks(job_info &info, std::vector<world_rank> ranks) {
    auto const own = std::ranges::find(ranks, info.rank);
    info.local = local_rank(static_cast<int>(own - ranks.begin()));
    info.local_size = static_cast<int>(ranks.size());
    info.local_ranks = std::move(ranks);
}

status agree_on_job(launcher &by, job_info &info, const std::string &node) {
    DIOMP_TRY(by.put(node_key, node));
    if (info.rank == world_rank(0)) {
        DIOMP_TRY(by.put(job_key, make_job_id(info.host)));
    }
    DIOMP_TRY(by.fence());
    auto job = by.get(world_rank(0), job_key);
    DIOMP_TRY(job);
    info.job_id = job.take();
    std::vector<world_rank> ranks;
    for (int each = 0; each < info.size; ++each) {
        auto theirs = by.get(world_rank(each), node_key);
        DIOMP_TRY(theirs);
        if (theirs.value() == node) {
            ranks.emplace_back(each);
        }
    }
    set_local_ranks(info, std::move(ranks));
    return {};
}

std::string to_job_id(std::string text) {
    constexpr std::string_view allowed =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    std::ranges::replace_if(
        text, [allowed](char c) { return allowed.find(c) == std::string_view::npos; }, '_');
    return text;
}

} // namespace diomp::launch
