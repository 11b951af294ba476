// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Devices of other hosts as users ask for them, and which rank gets which. Pure logic.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace diomp::run {

struct device_host {
    std::string name;
    int devices = 0; ///< 0: all of that kind
    std::string kind = "cpu";
    bool operator==(const device_host &) const = default;
};

/// "a,b:2,c:cpu:4,d:cuda,[fe80::1]:2"; without a number one device made of processors, or all GPUs.
/// A name that comes again with the same kind adds to its devices.
result<std::vector<device_host>> parse_device_hosts(std::string_view text);

/// Error: some ranks would have none. Nothing is said about hosts that lend all they have.
status check_devices(const std::vector<device_host> &hosts, int ranks);

/// A service that listens.
struct device_service {
    std::string address;
    int port = 0;
    int devices = 0;
};

/// DIOMP_REMOTE_DEVICES of each rank. Of M devices for N ranks, device i goes to rank i * N / M:
/// blocks, the first ones larger by one if need be.
/// Error: some have none.
result<std::vector<std::string>> share_devices(const std::vector<device_service> &services,
                                               int ranks);

/// How many hidden helper threads LLVM's OpenMP shall have in a rank with these devices (of
/// share_devices) on so many processors. Each has one region with nowait under way, so there are as
/// many as devices; and no more than processors otherwise, where LLVM always takes eight, which
/// would take turns with what they wait for.
[[nodiscard]] int helper_threads(std::string_view share, std::size_t processors);

} // namespace diomp::run
