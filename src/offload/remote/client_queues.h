// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The queues of a client, and the replies of sessions to them and to its non-blocking transfers.
#pragma once

#include "offload/remote/started_transfers.h"

#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace diomp::offload::remote {

class client;
class queue;
class remote_device;

/// Any thread; nothing blocks.
class client_queues {
public:
    explicit client_queues(client &owner);
    ~client_queues();
    client_queues(const client_queues &) = delete;
    client_queues &operator=(const client_queues &) = delete;

    /// A queue for exclusive use until release().
    queue &acquire(remote_device &on);
    void release(queue &idle);
    /// The non-blocking transfers of the program.
    [[nodiscard]] started_transfers &started() { return started_; }
    /// Active-message handler of the world for replies.
    void on_reply(const transport::message &incoming);

private:
    client &owner_;
    started_transfers started_;
    std::mutex mutex_;                           ///< leaf lock; protects the rest
    std::vector<std::unique_ptr<queue>> queues_; ///< [queue number]
    std::map<const remote_device *, std::vector<queue *>> idle_;
};

} // namespace diomp::offload::remote
