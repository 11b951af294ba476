// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Waits of a call for other members, and the search for the cause of long ones.
//
// A call leader that waits for long requests the peer's report about the call, and publishes for
// which rank it waits itself. This finds ranks that wait for each other in different calls, and the
// rank that all others wait for, which the error message then names.
#pragma once

#include <cstddef>
#include <cstdint>

namespace diomp::messaging {
class engine;
}

namespace diomp::group {

class current_call;
class local_group;
class match_queue;
class matcher;
struct recv_request;

/// A wait that fails puts the failure into the call.
class deadlock_probe {
public:
    deadlock_probe(messaging::engine &engine, matcher &messages, std::uint64_t group_id,
                   match_queue &queue, local_group &local_members, current_call &call)
        : engine_(engine), matcher_(messages), group_id_(group_id), queue_(queue),
          local_(local_members), call_(call) {}

    /// Waits for the arrival of a member on this node in the given round. False if it has not
    /// arrived.
    bool wait_for_arrival(std::size_t local_index, std::uint64_t round);
    /// Waits for one of the two messages of a member, or until they cannot come any more.
    void wait_for_message(std::size_t member, const recv_request &awaited,
                          const recv_request *alternative = nullptr);

private:
    messaging::engine &engine_;
    matcher &matcher_;
    std::uint64_t group_id_;
    match_queue &queue_;
    local_group &local_;
    current_call &call_;
};

} // namespace diomp::group
