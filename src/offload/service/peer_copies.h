// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copies from one device of a client to another one whose memory is not its slot: the session of
// the source asks that of the target, which fetches. So each looks at the addresses of its own
// memory, and holds it meanwhile.
//
// A thread of its own serves what others ask for: those that run batches may all be waiting for the
// sessions which ask. It starts fetches and waits for all of them together, so that a session which
// is slow to give its bytes holds up nobody else's. Who asks waits for the answer before its queue
// goes on: that keeps each queue in order.
#pragma once

#include "base/result.h"
#include "conduit/conduit.h"
#include "conduit/flight.h"
#include "offload/remote/protocol.h"
#include "offload/remote/world.h"
#include "offload/service/straight.h"
#include "offload/service/target.h"

#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace diomp::offload::service {

/// Any thread.
class peer_copies {
public:
    /// Fetches from one session that are under way together; more wait in the order of their
    /// coming.
    static constexpr std::size_t most_at_once = 8;

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
    struct fetch {
        request asked;
        network_range memory;
        conduit::flight arrival;
    };
    void serve(); ///< body of the thread
    void wake();  ///< it, wherever it waits
    /// Until there is something to start or to end. False: it is time to go.
    bool wait_for_change(const std::list<fetch> &under_way);
    /// Requests that may start now.
    std::vector<request> take_requests();
    status begin(fetch &wanted);
    void answer(const request &asked, const status &done);
    /// With mutex_.
    [[nodiscard]] bool may_start(const request &asked) const;
    [[nodiscard]] bool is_over(std::uint64_t ticket);

    const target &device_;
    moved_bytes &moved_;
    remote::world *ranks_ = nullptr;
    std::mutex mutex_; ///< leaf lock over the rest
    std::condition_variable wake_;
    bool stopping_ = false;
    std::vector<request> requests_;
    std::map<int, std::size_t> num_under_way_; ///< [rank] fetches from there
    std::uint64_t next_ticket_ = 1;
    std::map<std::uint64_t, question> questions_; ///< [ticket]
    std::map<int, std::string> lost_;             ///< [rank]
    std::thread thread_;
};

} // namespace diomp::offload::service
