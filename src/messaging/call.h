// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Request and reply over active messages. A reply that arrives after its requester has timed out is
// dropped.
#pragma once

#include "messaging/engine.h"
#include "messaging/request.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

namespace diomp::messaging {

/// Limit of a reply.
inline constexpr std::size_t call_reply_bytes = 64;

/// A reply that has not arrived yet.
struct pending_reply {
    std::atomic<bool> done{false};
    std::array<std::byte, call_reply_bytes> bytes{};
    std::function<void(const pending_reply &)> then; ///< called by the handler; may be empty
};
struct pending_call {
    std::uint64_t id = 0;
    std::shared_ptr<pending_reply> rpc_reply;
};

/// Thread-safe. One per engine; create before engine.start().
class call_service {
public:
    static constexpr std::size_t max_reply_bytes = call_reply_bytes;

    explicit call_service(engine &engine);

    using pending_reply = messaging::pending_reply;
    using pending_call = messaging::pending_call;

    /// Sends `request`, whose first member is a request_header. Does not wait.
    template <typename Request>
    pending_call start(world_rank peer, transport::handler_id handler, Request request) {
        pending_call call = register_call();
        request.header.id = call.id;
        engine_.send(peer, handler, request);
        return call;
    }

    /// Sends `request`; the handler of the reply calls `then`, which must not block, once. Does not
    /// wait.
    template <typename Reply, typename Request>
    void start_then(world_rank peer, transport::handler_id handler, Request request,
                    std::function<void(const Reply &)> then) {
        static_assert(sizeof(Reply) <= max_reply_bytes);
        pending_call const call =
            register_call([then = std::move(then)](const pending_reply &arrived) {
                Reply reply;
                std::memcpy(&reply, arrived.bytes.data(), sizeof(reply));
                then(reply);
            });
        request.header.id = call.id;
        engine_.send(peer, handler, request);
    }

    /// Waits for the reply of a started call. `describe` continues the sentence "timed out after 3
    /// s ...".
    template <typename Reply, typename Describe>
    result<Reply> finish(const pending_call &call, Describe &&describe) {
        static_assert(sizeof(Reply) <= max_reply_bytes);
        status waited = engine_.wait_for_handler(
            [&call] { return call.rpc_reply->done.load(std::memory_order_acquire); }, describe,
            engine_.spins());
        if (!waited) {
            abandon(call.id);
            return waited.take_failure();
        }
        Reply reply;
        std::memcpy(&reply, call.rpc_reply->bytes.data(), sizeof(reply));
        return reply;
    }

    template <typename Reply, typename Request, typename Describe>
    result<Reply> call(world_rank peer, transport::handler_id handler, Request request,
                       Describe &&describe) {
        return finish<Reply>(start(peer, handler, request), describe);
    }

    /// In a handler: sends the reply to a request. May also be called later, from another handler.
    template <typename Reply>
    void reply(world_rank requester, std::uint64_t id, const Reply &reply) {
        static_assert(sizeof(Reply) <= max_reply_bytes);
        wire<Reply> const rpc_reply{id, reply};
        engine_.send(requester, reply_handler_, rpc_reply);
    }

private:
    template <typename Reply>
    struct wire {
        std::uint64_t id;
        Reply reply;
    };

    pending_call register_call(std::function<void(const pending_reply &)> then = {});
    void abandon(std::uint64_t id);
    void on_reply(const transport::message &incoming);

    engine &engine_;
    transport::handler_id reply_handler_;
    std::mutex mutex_; ///< leaf lock over the next two members
    std::uint64_t next_id_ = 1;
    std::unordered_map<std::uint64_t, std::shared_ptr<pending_reply>> pending_;
};

} // namespace diomp::messaging
