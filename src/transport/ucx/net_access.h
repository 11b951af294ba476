// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which network interfaces UCX uses, and from where its ports can be reached: those that lead to
// hosts of the job.
#pragma once

#include "launch/launch.h"
#include "transport/common/host_addresses.h"

#include <span>
#include <string>
#include <vector>

namespace diomp::transport::ucx {

/// Addresses of the other hosts, each with all of its own.
using host_list = std::vector<std::vector<in6_addr>>;

/// Names of the interfaces that lead to other hosts: with addresses that no other host has as well
/// (as container bridges have), in a network of another host if this reaches all of them, otherwise
/// all of these. Without other hosts: loopback. Empty: no interface qualifies.
[[nodiscard]] std::vector<std::string> interfaces_towards(const host_list &others,
                                                          std::span<const network_interface> own);

/// Ports of RDMA adapters as UCX names them ("mlx5_0:1"). `root` is the file system's.
[[nodiscard]] std::vector<std::string> rdma_ports(const std::string &root = "/");

class net_access {
public:
    /// Shares the addresses of all hosts. Collective. If all ranks are on one machine, nothing is
    /// shared, and only loopback is used.
    static result<net_access> create(launch::launcher &launcher);

    /// For UCX_NET_DEVICES: separated by commas; empty: no limit.
    [[nodiscard]] const std::string &devices() const { return devices_; }
    /// Addresses from which ranks of this job connect.
    [[nodiscard]] std::span<const in6_addr> sources() const { return sources_; }

private:
    std::string devices_;
    std::vector<in6_addr> sources_;
};

} // namespace diomp::transport::ucx
