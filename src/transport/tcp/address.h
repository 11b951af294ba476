// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Addresses at which ranks listen, and the order in which they are tried.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"
#include "transport/common/host_addresses.h"
#include "transport/tcp/tuning.h"

#include <cstdint>
#include <netinet/in.h>
#include <span>
#include <string>
#include <vector>

namespace diomp::transport::tcp {

/// The addresses that a rank publishes.
struct address_blob {
    host_identity host;
    std::uint16_t port = 0;
    std::vector<address> addresses; ///< without loopback
};

/// Addresses of those of `own` interfaces that `wanted` lists, separated by commas; empty: of all
/// that are up. An error if it names an interface that does not exist.
result<std::vector<address>> own_addresses(std::span<const network_interface> own,
                                           const std::string &wanted);
/// Addresses of all interfaces, also loopback and those that are down.
[[nodiscard]] std::vector<in6_addr> all_addresses(std::span<const network_interface> own);

[[nodiscard]] std::string encode_address_blob(const address_blob &from);
[[nodiscard]] address_blob decode_address_blob(const std::string &text);

/// Addresses by which `here` may reach `there`, best first: loopback where they share interfaces,
/// addresses in a network that both have, then the others. Where they do not share interfaces,
/// loopback is left out, and so are addresses that this host has as well (in `local` or `here`),
/// such as that of a container bridge.
[[nodiscard]] std::vector<in6_addr> candidate_addresses(const address_blob &there,
                                                        const address_blob &here,
                                                        std::span<const in6_addr> local = {});

/// The peer's address of a connected socket as text; "not connected" otherwise.
[[nodiscard]] std::string peer_address_of(int fd);

enum class listen_scope : std::uint8_t { everywhere, loopback };
/// Listens on all addresses (IPv4 only where there is no IPv6), or on 127.0.0.1 only. The system
/// chooses the port, which is stored in `port`.
result<unique_fd> listen(std::uint16_t &port, const tuning &how = {},
                         listen_scope from = listen_scope::everywhere);
/// Starts to connect. Does not block.
result<unique_fd> start_connecting(const in6_addr &to, std::uint16_t port, const tuning &how = {});

} // namespace diomp::transport::tcp
