// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/client_queues.h"

#include "base/log.h"
#include "offload/remote/client.h"
#include "offload/remote/queue.h"

#include <memory>

namespace diomp::offload::remote {

client_queues::client_queues(client &owner) : owner_(owner), started_(owner) {}

client_queues::~client_queues() = default;

queue &client_queues::acquire(remote_device &on) {
    std::lock_guard const guard(mutex_);
    auto &idle = idle_[&on];
    if (idle.empty()) {
        queues_.push_back(std::make_unique<queue>(owner_, on, queues_.size()));
        return *queues_.back();
    }
    queue &found = *idle.back();
    idle.pop_back();
    return found;
}

void client_queues::release(queue &idle) {
    std::lock_guard const guard(mutex_);
    idle_[&idle.device()].push_back(&idle);
}

void client_queues::on_reply(const transport::message &incoming) {
    auto reply = decode_reply(bytes_of(incoming));
    if (!reply) {
        return;
    }
    if (reply.value().queue == started_queue) {
        started_.handle_reply(incoming.source, reply.value());
        return;
    }
    queue *requester = nullptr;
    {
        std::lock_guard const guard(mutex_);
        if (reply.value().queue < queues_.size()) {
            requester = queues_[reply.value().queue].get();
        }
    }
    if (requester != nullptr && requester->device().rank() == incoming.source) {
        requester->handle_reply(reply.value());
    }
}

// What a client does with its queues.

queue &client::acquire_queue(remote_device &on) { return queues_->acquire(on); }

void client::release_queue(queue &idle) { queues_->release(idle); }

started_transfers &client::started() { return queues_->started(); }

bool client::release(remote_device &on, std::uint64_t address) {
    if (!on.release(address)) {
        return false;
    }
    if (on.description().has_memory_in_slot() && on.slot().has_excess_pages()) {
        queue &last = acquire_queue(on);
        if (status const returned = last.release_pages(); !returned) {
            log(log_level::debug, "{}", returned.failure().message());
        }
        release_queue(last);
    }
    return true;
}

status client::wait_for_deferred(remote_device &on) {
    if (on.deferred().is_empty()) {
        return {};
    }
    queue &last = acquire_queue(on);
    status done = last.order_after_all_deferred();
    if (status waited = last.synchronize(); done && !waited) {
        done = std::move(waited);
    }
    release_queue(last);
    return done;
}

status client::wait_for_all() {
    DIOMP_TRY(queues_->started().wait());
    for (auto const &each : devices_) {
        DIOMP_TRY(wait_for_deferred(*each));
    }
    return {};
}

} // namespace diomp::offload::remote
