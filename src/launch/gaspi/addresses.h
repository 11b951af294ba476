// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Selects the address of each rank for GPI-2. GPI-2 reads hosts from a machine file and resolves
// them as IPv4, so the file contains numeric addresses, which are valid on every host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace diomp::launch::gaspi {

struct host_interface {
    std::uint32_t address = 0; ///< IPv4, in the host's byte order
    std::uint32_t mask = 0;
    bool operator==(const host_interface &) const = default;
};

/// The addresses that a rank publishes for its host.
struct host_addresses {
    std::string node; ///< node_identity()
    std::vector<host_interface> addresses;
    bool operator==(const host_addresses &) const = default;
};

/// Addresses of this host, without loopback.
host_addresses own_addresses();

[[nodiscard]] std::string encode_addresses(const host_addresses &host);
[[nodiscard]] host_addresses decode_addresses(const std::string &text);

/// Selects one address per rank, with the same result on every rank: loopback if all share a host,
/// otherwise an address in a network of rank 0, otherwise the first one.
[[nodiscard]] std::vector<std::string> choose_addresses(const std::vector<host_addresses> &hosts);

} // namespace diomp::launch::gaspi
