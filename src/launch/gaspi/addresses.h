// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which address of each rank GPI-2 is to use. It knows hosts by what a machine file says and
// resolves that as IPv4, so numbers are given, which every host understands.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace diomp::launch::gaspi {

struct interface_address {
    std::uint32_t address = 0; ///< IPv4, in the host's byte order
    std::uint32_t mask = 0;
    bool operator==(const interface_address &) const = default;
};

/// What a rank tells of its host.
struct host_card {
    std::string node; ///< node_identity()
    std::vector<interface_address> addresses;
    bool operator==(const host_card &) const = default;
};

/// Of this host, without loopback.
host_card own_card();

[[nodiscard]] std::string write_card(const host_card &card);
[[nodiscard]] host_card read_card(const std::string &text);

/// One address per rank, the same list on every rank: loopback if all share a host; else the one in
/// a network of rank 0's, or the first.
[[nodiscard]] std::vector<std::string> choose_addresses(const std::vector<host_card> &cards);

} // namespace diomp::launch::gaspi
