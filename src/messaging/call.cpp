// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "messaging/call.h"

#include "base/assert.h"

#include <algorithm>

namespace diomp::messaging {

call_service::call_service(engine &engine)
    : engine_(engine), reply_handler_(engine.add_handler(
                           [this](const transport::message &incoming) { on_reply(incoming); })) {}

call_service::pending_call
call_service::register_call(std::function<void(const pending_reply &)> then) {
    pending_call call;
    call.rpc_reply = std::make_shared<pending_reply>();
    call.rpc_reply->then = std::move(then);
    std::lock_guard const guard(mutex_);
    call.id = next_id_++;
    [[maybe_unused]] bool const is_new = pending_.emplace(call.id, call.rpc_reply).second;
    DIOMP_ASSERT(is_new, "numbers of calls are unique");
    return call;
}

void call_service::abandon(std::uint64_t id) {
    std::lock_guard const guard(mutex_);
    pending_.erase(id);
}

void call_service::on_reply(const transport::message &incoming) {
    std::uint64_t id = 0;
    DIOMP_ASSERT(incoming.payload.size() >= sizeof(id),
                 "a reply begins with the number of its call");
    std::memcpy(&id, incoming.payload.data(), sizeof(id));
    std::shared_ptr<pending_reply> rpc_reply;
    {
        std::lock_guard const guard(mutex_);
        auto const found = pending_.find(id);
        if (found == pending_.end()) {
            return;
        }
        rpc_reply = std::move(found->second);
        pending_.erase(found);
    }
    auto const body = incoming.payload.subspan(sizeof(id));
    std::memcpy(rpc_reply->bytes.data(), body.data(),
                std::min(body.size(), rpc_reply->bytes.size()));
    rpc_reply->done.store(true, std::memory_order_release);
    if (rpc_reply->then) {
        rpc_reply->then(*rpc_reply);
    }
}

} // namespace diomp::messaging
