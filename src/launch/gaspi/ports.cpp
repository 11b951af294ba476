// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/gaspi/ports.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstring>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace diomp::launch::gaspi {
namespace {

/// Below the system's ephemeral ports (from 32768).
constexpr int first_base = 10240;
constexpr int step = 3 * max_ranks_per_host;
constexpr int num_bases = 28;
constexpr int num_candidates = 16;

bool is_free(int port) {
    unique_fd const probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    int const on = 1;
    // Set as in GPI-2, so that the ports of a job that has just ended can be used.
    ::setsockopt(probe.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    return ::bind(probe.get(), reinterpret_cast<const sockaddr *>(&address), sizeof(address)) == 0;
}

} // namespace

std::vector<int> candidate_bases(const std::string &job) {
    std::uint32_t hash = 2166136261U; // FNV-1a: equal on all ranks
    for (char const c : job) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
    }
    std::vector<int> bases;
    for (int i = 0; i < num_candidates; ++i) {
        auto const index = (hash + static_cast<std::uint32_t>(i)) % num_bases;
        bases.push_back(first_base + static_cast<int>(index) * step);
    }
    return bases;
}

unique_fd reserve_base(int base, int number_on_host) {
    // An abstract name, which belongs to the network namespace as ports do; it ends with the
    // process.
    unique_fd reserved(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    std::string const name = fmt::format("diomp-gaspi-{}", base + number_on_host);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    auto const length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    if (::bind(reserved.get(), reinterpret_cast<const sockaddr *>(&address), length) != 0) {
        return {};
    }
    for (int const distance : {0, start_up_distance, device_distance}) {
        if (!is_free(base + distance + number_on_host)) {
            return {};
        }
    }
    return reserved;
}

} // namespace diomp::launch::gaspi
