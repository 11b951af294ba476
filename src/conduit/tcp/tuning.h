// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How the sockets of connections are set up.
//
// BBR paces: it lets bytes leave at the rate that it believes the network has, by a timer. Between
// hosts that are microseconds apart it believes half of what there is, and goes on so for seconds.
// So connections begin with an algorithm that does not pace, where the system's own one is BBR; to
// hosts that turn out to be far away they go back to that, which copes better with losses there.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <string>

namespace diomp::conduit::tcp {

/// Immutable. Any thread.
class tuning {
public:
    /// Cables of a cluster take less, whatever is between them.
    static constexpr unsigned usual_far_us = 5000;

    tuning() = default; ///< the system's own choices
    /// At most `send_buffer_bytes` wait in the system, where more would fall out of the processor's
    /// caches before it is read; 0: chosen here. `congestion`: auto, or one of the system's
    /// algorithms; OMPX_ERR_ARG if it does not allow that. With auto, hosts are far away whose
    /// answer takes more than `far_us` microseconds.
    static result<tuning> create(std::size_t send_buffer_bytes, const std::string &congestion,
                                 unsigned far_us = usual_far_us);

    /// Of a socket before it listens or connects: what connections then begin with.
    void prepare(int fd) const;
    /// Of a connection, when it is open, at either end.
    void adapt(int fd) const;

private:
    int send_buffer_bytes_ = 0;
    std::string near_; ///< congestion control to begin with; empty: the system's
    std::string far_;  ///< of distant hosts; empty: the same
    unsigned far_us_ = usual_far_us;
};

/// The congestion control of a socket; "" if it is none.
std::string congestion_of(int fd);

} // namespace diomp::conduit::tcp
