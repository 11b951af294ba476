// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parses --remote-devices and assigns remote devices to ranks. No input or output.
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

/// Parses "a,b:2,c:cpu:4,d:cuda,[fe80::1]:2". Without a number: one device made of processors, or
/// all GPUs. In the order of the list, which may repeat a name.
result<std::vector<device_host>> parse_device_hosts(std::string_view text);

/// The services that lend the devices of a list: one for each name and kind, with all its devices.
std::vector<device_host> services_for(const std::vector<device_host> &hosts);

/// Returns an error if there are fewer devices than ranks. Cannot tell if a host offers all its
/// devices, whose number is not known yet.
status check_devices(const std::vector<device_host> &hosts, int ranks);

/// A listening service.
struct device_service {
    std::string address;
    int port = 0;
    int devices = 0;
};

/// Returns DIOMP_REMOTE_DEVICES of each rank. `services`: those of services_for(hosts), in that
/// order. With M devices for N ranks, device i of the list is assigned to rank i * N / M: in
/// blocks, the first ones larger by one if necessary. "All" devices of a host are those that no
/// other entry names. Errors: fewer devices than ranks, or than the list names.
result<std::vector<std::string>> assign_devices(const std::vector<device_host> &hosts,
                                                const std::vector<device_service> &services,
                                                int ranks);

/// Returns the number of hidden helper threads for LLVM's OpenMP in a rank with these devices (from
/// assign_devices) and so many processors. A thread runs one region with nowait at a time, so there
/// is one per device. Apart from that there is not more than one per processor: LLVM's default of
/// eight would compete with the threads that they wait for.
[[nodiscard]] int helper_threads(std::string_view rank_devices, std::size_t processors);

} // namespace diomp::run
