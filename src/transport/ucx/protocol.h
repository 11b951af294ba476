// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Selects the protocol of transfers to a peer from the transports that UCX uses for it.
#pragma once

#include "transport/ucx/peer.h"

namespace diomp::transport::ucx {

/// The transports of an endpoint.
struct transports {
    std::string names;           ///< "tcp", "rc_mlx5, cma"
    bool has_native_rma = false; ///< puts and gets without the target's processor
};

/// Parses the output of ucp_ep_print_info; UCX 1.13 has no other query.
transports parse_endpoint_info(const std::string &text);

/// Unpacks the remote key if transfers will use it; sets and logs the path to the peer.
void select_protocol(endpoint &to, const address_blob &blob);

} // namespace diomp::transport::ucx
