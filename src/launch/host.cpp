// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/host.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <string_view>
#include <sys/random.h>
#include <unistd.h>

namespace diomp::launch {

std::string host_name() {
    std::array<char, 256> buffer{};
    if (gethostname(buffer.data(), buffer.size() - 1) != 0 || buffer[0] == '\0') {
        return "localhost";
    }
    std::string name(buffer.data());
    constexpr std::string_view allowed =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    std::ranges::replace_if(
        name, [allowed](char c) { return allowed.find(c) == std::string_view::npos; }, '_');
    return name;
}

std::string make_job_id(const std::string &host) {
    std::uint32_t random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random) {
        timespec now{};
        clock_gettime(CLOCK_MONOTONIC, &now); // with the pid still unique on this node
        random = static_cast<std::uint32_t>(now.tv_nsec);
    }
    return fmt::format("{}-{}-{:08x}", host, getpid(), random);
}

} // namespace diomp::launch
