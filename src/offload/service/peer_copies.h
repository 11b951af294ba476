// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copies from one device of a client to another one whose memory is not its slot: the source's
// session sends a request to the target's session, which gets the bytes. So each session validates
// the addresses of its own memory, and keeps it allocated during the copy.
//
// The requesting session waits for the reply before its queue continues, which keeps each queue in
// order. peer_fetches.h serves the requests.
#pragma once

#include "base/result.h"
#include "offload/remote/protocol.h"
#include "offload/remote/world.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace diomp::offload::service {

/// Any thread.
class peer_copies {
public:
    /// Requests a fetch from the target's session. Blocks until it is complete. The caller keeps
    /// the source memory, of kind `source_memory`, allocated.
    status copy(remote::world &ranks, world_rank to, const remote::zero_copy_transfer &what,
                transport::memory_kind source_memory);

    /// Active-message handler of the world.
    void on_reply(const transport::message &incoming);
    /// Requests to a lost rank fail.
    void on_peer_lost(world_rank peer, const std::string &why);

private:
    struct sent_request {
        world_rank target;
        bool is_over = false;
        std::string failure;
    };
    [[nodiscard]] bool is_over(std::uint64_t ticket);

    std::mutex mutex_; ///< leaf lock; protects the rest
    std::uint64_t next_ticket_ = 1;
    std::map<std::uint64_t, sent_request> sent_requests_; ///< [ticket]
    std::map<int, std::string> lost_;                     ///< [rank]
};

} // namespace diomp::offload::service
