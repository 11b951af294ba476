// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copies from one device of a client to another one whose memory is not its slot: the session of
// the source asks that of the target, which fetches. So each looks at the addresses of its own
// memory, and holds it meanwhile.
//
// A thread of its own serves what others ask for: those that run batches may all be waiting for the
// sessions which ask.
#pragma once

#include "base/result.h"
#include "conduit/conduit.h"
#include "offload/remote/protocol.h"
#include "offload/remote/world.h"
#include "offload/service/straight.h"
#include "offload/service/target.h"

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace diomp::offload::service {

/// Any thread.
class peer_copies {
public:
    peer_copies(const target &device, moved_bytes &moved) : device_(device), moved_(moved) {}
    ~peer_copies();
    peer_copies(const peer_copies &) = delete;
    peer_copies &operator=(const peer_copies &) = delete;

    /// When everything stands; before any copy(). Requests that come earlier wait.
    void start(remote::world &ranks);
    /// Has the target's session fetch. Blocks until it has. The caller holds the source, which is
    /// `source_memory`.
    status copy(world_rank to, const remote::straight_transfer &what,
                conduit::memory_kind source_memory);

    // Handlers of the world, and who was lost.
    void take_request(const conduit::message &incoming);
    void take_answer(const conduit::message &incoming);
    void lose(world_rank peer, const std::string &why);

private:
    struct request {
        world_rank source;
        remote::peer_copy what;
    };
    struct question {
        world_rank target;
        bool is_over = false;
        std::string failure;
    };
    void serve(); ///< body of the thread
    status fetch(const request &asked);
    [[nodiscard]] bool is_over(std::uint64_t ticket);

    const target &device_;
    moved_bytes &moved_;
    remote::world *ranks_ = nullptr;
    std::mutex mutex_; ///< leaf lock over the rest
    std::condition_variable wake_;
    bool stopping_ = false;
    std::vector<request> requests_;
    std::uint64_t next_ticket_ = 1;
    std::map<std::uint64_t, question> questions_; ///< [ticket]
    std::map<int, std::string> lost_;             ///< [rank]
    std::thread thread_;
};

} // namespace diomp::offload::service
