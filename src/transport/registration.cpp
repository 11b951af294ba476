// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/registration.h"

#include "base/log.h"
#include "base/sizes.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace diomp::transport {

namespace {

using path = std::filesystem::path;

/// Entries of a directory; none if it does not exist.
std::vector<path> entries_of(const path &folder) {
    std::vector<path> found;
    std::error_code none;
    for (auto const &each : std::filesystem::directory_iterator(folder, none)) {
        found.push_back(each.path());
    }
    return found;
}

/// The kernel writes the state of a port as a number and a word: "4: ACTIVE".
bool has_active_port(const path &adapter) {
    return std::ranges::any_of(entries_of(adapter / "ports"), [](const path &port) {
        std::string state;
        std::getline(std::ifstream(port / "state"), state);
        return state.starts_with("4:");
    });
}

bool has_device_file(const path &folder, std::string_view prefix) {
    return std::ranges::any_of(entries_of(folder), [&](const path &each) {
        return each.filename().string().starts_with(prefix);
    });
}

} // namespace

bool has_rdma_adapter(const std::string &root) {
    path const top(root);
    bool const has_verbs =
        std::ranges::any_of(entries_of(top / "sys/class/infiniband"), has_active_port) &&
        has_device_file(top / "dev/infiniband", "uverbs");
    return has_verbs ||
           (!entries_of(top / "sys/class/cxi").empty() && has_device_file(top / "dev", "cxi"));
}

std::size_t bytes_to_register(const arena &arena, const launch::job_info &job) {
    std::size_t const physical = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) *
                                 static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    std::size_t const wanted = arena.device_offset() + arena.device_bytes();
    if (wanted <= physical / 2 / static_cast<std::size_t>(job.local_size)) {
        return wanted;
    }
    log(log_level::info,
        "the segment of {} is too large to be registered with a network: transfers use active "
        "messages [remedy: set DIOMP_SEGMENT_SIZE and DIOMP_DEVICE_SEGMENT_SIZE]",
        format_size(wanted));
    return 0;
}

} // namespace diomp::transport
