// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Request and reply over active messages. A reply that comes after its asker gave up (timeout) is
// dropped.
#pragma once

#include "conduit/engine.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace diomp::conduit {

/// First member of every request: whom to answer is the message's source, which request is `id`.
struct request_header {
    std::uint64_t id = 0;
};

/// Any thread. One per engine; create before engine.start().
class call_service {
public:
    static constexpr std::size_t max_reply_bytes = 64;

    explicit call_service(engine &engine);

    /// An answer on its way.
    struct ticket {
        std::atomic<bool> done{false};
        std::array<std::byte, max_reply_bytes> bytes{};
    };
    struct open_call {
        std::uint64_t id = 0;
        std::shared_ptr<ticket> answer;
    };

    /// Sends `request` (whose first member is a request_header) and does not wait.
    template <typename Request>
    open_call start(world_rank peer, handler_id handler, Request request) {
        open_call call = open();
        request.header.id = call.id;
        engine_.send(peer, handler, request);
        return call;
    }

    /// Waits for the reply of a started call. `describe` continues the sentence "timed out after 3
    /// s ...".
    template <typename Reply, typename Describe>
    result<Reply> finish(const open_call &call, Describe &&describe) {
        static_assert(sizeof(Reply) <= max_reply_bytes);
        status waited = engine_.wait_for_message(
            [&call] { return call.answer->done.load(std::memory_order_acquire); }, describe);
        if (!waited) {
            forget(call.id);
            return waited.take_failure();
        }
        Reply reply;
        std::memcpy(&reply, call.answer->bytes.data(), sizeof(reply));
        return reply;
    }

    template <typename Reply, typename Request, typename Describe>
    result<Reply> call(world_rank peer, handler_id handler, Request request, Describe &&describe) {
        return finish<Reply>(start(peer, handler, request), describe);
    }

    /// In a handler: answers the request. May also be called later, from another handler.
    template <typename Reply>
    void reply(world_rank asker, std::uint64_t id, const Reply &reply) {
        static_assert(sizeof(Reply) <= max_reply_bytes);
        wire<Reply> const answer{id, reply};
        engine_.send(asker, reply_handler_, answer);
    }

private:
    template <typename Reply>
    struct wire {
        std::uint64_t id;
        Reply reply;
    };

    open_call open();
    void forget(std::uint64_t id);
    void on_reply(const message &incoming);

    engine &engine_;
    handler_id reply_handler_;
    std::mutex mutex_; ///< leaf lock over the two below
    std::uint64_t next_id_ = 1;
    std::unordered_map<std::uint64_t, std::shared_ptr<ticket>> open_;
};

} // namespace diomp::conduit
