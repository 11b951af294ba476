// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// By what transports UCX reaches a peer, and so whether transfers are UCX's own puts and gets.
#pragma once

#include "conduit/ucx/peer.h"

namespace diomp::conduit::ucx {

/// What UCX says about an endpoint.
struct transports {
    std::string names;        ///< "tcp", "rc_mlx5, cma"
    bool moves_alone = false; ///< puts and gets need no help of the target's processor
};

/// Reads the output of ucp_ep_print_info: UCX 1.13 has no other way to ask.
transports read_endpoint_info(const std::string &text);

/// Unpacks the remote key if transfers are to use it; names and logs the path of the peer.
void choose_path(channel &to, const peer_card &card);

} // namespace diomp::conduit::ucx
