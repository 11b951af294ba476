// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Network interfaces of this host and their addresses.
#pragma once

#include "base/result.h"
#include "transport/types.h"

#include <netinet/in.h>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace diomp::transport {

/// An IPv6 address, or an IPv4 address mapped into IPv6.
struct address {
    in6_addr number{};
    int prefix_bits = 128; ///< of its network

    [[nodiscard]] bool is_ipv4() const { return IN6_IS_ADDR_V4MAPPED(&number) != 0; }
    [[nodiscard]] bool is_loopback() const;
    [[nodiscard]] bool has_number(const in6_addr &other) const {
        return IN6_ARE_ADDR_EQUAL(&number, &other) != 0;
    }
    /// Whether the other address is in the network of this one.
    [[nodiscard]] bool shares_network_with(const in6_addr &other) const;
};

struct network_interface {
    std::string name;
    bool is_up = false;
    bool is_loopback = false;
    std::string hardware_address;   ///< bytes; may be empty
    std::vector<address> addresses; ///< without link-local ones; may be empty
};

/// All interfaces of this host, also those that are down.
result<std::vector<network_interface>> own_interfaces();

/// identify_this_host() with interfaces that have been read.
[[nodiscard]] host_identity identify_host(std::span<const network_interface> own);

[[nodiscard]] in6_addr map_ipv4(in_addr from);
[[nodiscard]] std::string to_text(const in6_addr &number);
[[nodiscard]] std::optional<in6_addr> parse_number(std::string_view text);

} // namespace diomp::transport
