// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Socket options of connections.
//
// BBR paces: a timer sends bytes at the rate that BBR estimates for the network. Between hosts that
// are microseconds apart the estimate is half of the real rate, and stays so for seconds. Where the
// system's own algorithm is BBR, connections therefore begin with one that does not pace. To
// distant hosts they go back to BBR, which copes better with losses there.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <string>

namespace diomp::transport::tcp {

/// Immutable. Any thread.
class tuning {
public:
    /// More than the round trip inside any cluster.
    static constexpr unsigned default_distant_rtt_us = 5000;

    tuning() = default; ///< the system's own choices
    /// `send_buffer_bytes`: size of the socket's send buffer, beyond which data would fall out of
    /// the processor's caches before it is read; 0: a default. `congestion`: auto, or one of the
    /// system's algorithms; OMPX_ERR_ARG if the system does not allow it. With auto, a host is
    /// distant if the round trip takes more than `distant_rtt_us` microseconds.
    static result<tuning> create(std::size_t send_buffer_bytes, const std::string &congestion,
                                 unsigned distant_rtt_us = default_distant_rtt_us);

    /// Sets options of a socket before it listens or connects; accepted connections inherit them.
    void prepare(int fd) const;
    /// Sets options of an open connection, on either side.
    void adapt(int fd) const;

private:
    int send_buffer_bytes_ = 0;
    std::string initial_congestion_; ///< congestion control at first; empty: the system's
    std::string distant_congestion_; ///< for distant hosts; empty: no change
    unsigned distant_rtt_us_ = default_distant_rtt_us;
};

/// The congestion control of a socket; "" if `fd` is not a socket.
std::string congestion_of(int fd);

} // namespace diomp::transport::tcp
