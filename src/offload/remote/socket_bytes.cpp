// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/socket_bytes.h"

#include <cstddef>
#include <linux/sockios.h>
#include <linux/tcp.h> // glibc's tcp_info ends before tcpi_bytes_acked
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace diomp::offload::remote {
namespace {

constexpr int max_reads = 1000; // each finds another acknowledgement

std::optional<std::uint64_t> bytes_acknowledged(int socket) {
    tcp_info about{};
    socklen_t length = sizeof about;
    bool const is_known =
        ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &about, &length) == 0 &&
        length >= offsetof(tcp_info, tcpi_bytes_acked) + sizeof about.tcpi_bytes_acked;
    return is_known ? std::optional<std::uint64_t>(about.tcpi_bytes_acked) : std::nullopt;
}

} // namespace

std::optional<std::uint64_t> bytes_written(int socket) {
    for (int i = 0; i < max_reads; ++i) {
        auto const before = bytes_acknowledged(socket);
        int unacknowledged = 0;
        if (!before || ::ioctl(socket, SIOCOUTQ, &unacknowledged) != 0) {
            return std::nullopt;
        }
        if (bytes_acknowledged(socket) == before) {
            return *before + static_cast<std::uint64_t>(unacknowledged);
        }
    }
    return std::nullopt;
}

} // namespace diomp::offload::remote
