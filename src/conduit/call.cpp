// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/call.h"

#include <algorithm>

namespace diomp::conduit {

call_service::call_service(engine &engine)
    : engine_(engine),
      reply_handler_(engine.add_handler([this](const message &incoming) { on_reply(incoming); })) {}

call_service::open_call call_service::open() {
    open_call call;
    call.answer = std::make_shared<ticket>();
    std::lock_guard const guard(mutex_);
    call.id = next_id_++;
    open_.emplace(call.id, call.answer);
    return call;
}

void call_service::forget(std::uint64_t id) {
    std::lock_guard const guard(mutex_);
    open_.erase(id);
}

void call_service::on_reply(const message &incoming) {
    std::uint64_t id = 0;
    std::memcpy(&id, incoming.payload.data(), sizeof(id));
    std::shared_ptr<ticket> answer;
    {
        std::lock_guard const guard(mutex_);
        auto const found = open_.find(id);
        if (found == open_.end()) {
            return;
        }
        answer = std::move(found->second);
        open_.erase(found);
    }
    auto const body = incoming.payload.subspan(sizeof(id));
    std::memcpy(answer->bytes.data(), body.data(), std::min(body.size(), answer->bytes.size()));
    answer->done.store(true, std::memory_order_release);
}

} // namespace diomp::conduit
