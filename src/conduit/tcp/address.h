// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where ranks listen, and in which order their addresses are tried.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"
#include "conduit/tcp/tuning.h"

#include <cstdint>
#include <netinet/in.h>
#include <span>
#include <string>
#include <vector>

namespace diomp::conduit::tcp {

/// IPv4 ones are mapped into IPv6.
struct address {
    in6_addr number{};
    int prefix_bits = 128; ///< of its network
};

/// What a rank tells of itself.
struct card {
    std::string node; ///< launch::node_identity()
    std::uint16_t port = 0;
    std::vector<address> addresses; ///< without loopback
};

/// Of the interfaces whose names `wanted` lists, with commas between; empty: of all that are up.
/// An error if it names one that does not exist.
result<std::vector<address>> own_addresses(const std::string &wanted);
/// Of all interfaces of this host, whether they are up, loopback or wanted or not.
result<std::vector<in6_addr>> all_addresses();

[[nodiscard]] std::string write_card(const card &from);
[[nodiscard]] card read_card(const std::string &text);

/// How to reach `there` from `here`, best first: loopback on the same host, then its addresses in a
/// network of ours, then the others. Left out for another host: loopback, and addresses that this
/// host has as well (`local` or in `here`), such as that of a bridge of containers.
[[nodiscard]] std::vector<in6_addr> ways_to(const card &there, const card &here,
                                            std::span<const in6_addr> local = {});

[[nodiscard]] std::string to_text(const in6_addr &number);
/// Of the other end of a connection; "not connected" while there is none.
[[nodiscard]] std::string other_end_of(int fd);

enum class reach : std::uint8_t { everywhere, loopback };
/// Listens on all addresses, or on IPv4 ones where there is no IPv6, or at 127.0.0.1 only, at a
/// port of the system's choice, which goes to `port`.
result<unique_fd> listen(std::uint16_t &port, const tuning &how = {},
                         reach from = reach::everywhere);
/// Starts to connect.
result<unique_fd> start_connecting(const in6_addr &to, std::uint16_t port, const tuning &how = {});

} // namespace diomp::conduit::tcp
