// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Handlers of incoming messages. Declared in matcher.h.
#include "group/internal/matcher.h"
#include "group/internal/message_bytes.h"

#include <algorithm>
#include <cstring>

namespace diomp::group {

void matcher::on_fragment(const transport::message &incoming) {
    auto const header = read_as<fragment_header>(incoming.payload);
    std::span<const std::byte> const bytes = incoming.payload.subspan(sizeof(header));
    auto const locked = lock_queue(header.group_id);
    if (locked.found == nullptr) {
        return;
    }
    match_queue &own = *locked.found;
    if (header.tag.call < own.call_) {
        if (header.offset == 0) {
            own.check_late_message(header.tag, bytes);
        }
        return;
    }
    auto const found = own.messages_.try_emplace({header.tag, incoming.source}).first;
    match_queue::tagged_message &message = found->second;
    if (message.posted_recv == nullptr && header.total_bytes > max_unexpected_bytes) {
        own.messages_.erase(found); // the receive has been cancelled
        return;
    }
    message.started = true;
    message.total_bytes = header.total_bytes;
    message.arrived_bytes += bytes.size();
    if (message.posted_recv == nullptr) {
        message.unexpected_data.resize(header.total_bytes);
        if (!bytes.empty()) {
            std::memcpy(message.unexpected_data.data() + header.offset, bytes.data(), bytes.size());
        }
        return;
    }
    recv_request &request = *message.posted_recv;
    copy_into_request(request, header.offset, bytes);
    if (message.is_complete()) {
        request.total_bytes = message.total_bytes;
        own.messages_.erase(found);
        request.done.store(true,
                           std::memory_order_release); // last: the request may be destroyed now
    }
}

void matcher::on_rtr(const transport::message &incoming) {
    auto const control = read_as<control_message>(incoming.payload);
    auto const locked = lock_queue(control.group_id);
    if (locked.found == nullptr) {
        return;
    }
    match_queue &own = *locked.found;
    if (control.tag.call >= own.call_) {
        own.rtrs_.emplace_back(match_queue::match_key{control.tag, incoming.source},
                               control.address);
    }
}

std::byte *matcher::recv_buffer_for(const transport::message &header, std::size_t nbytes) {
    auto const control = read_as<control_message>(header.payload);
    auto const locked = lock_queue(control.group_id);
    if (locked.found == nullptr) {
        return nullptr;
    }
    auto &messages = locked.found->messages_;
    auto const found = messages.find({control.tag, header.source});
    if (found == messages.end() || found->second.posted_recv == nullptr) {
        return nullptr;
    }
    const recv_request &request = *found->second.posted_recv;
    if (request.head.size() != header.payload.size() - sizeof(control) ||
        request.body.size() < nbytes) {
        return nullptr;
    }
    found->second.is_zero_copy = true;
    return request.body.data();
}

// Runs in the conduit's progress. The lock is held while the data is copied, so that the request
// cannot be destroyed.
void matcher::on_am_long(const transport::message &incoming) {
    auto const control = read_as<control_message>(incoming.payload);
    std::span<const std::byte> const head = incoming.payload.subspan(sizeof(control));
    auto const locked = lock_queue(control.group_id);
    if (locked.found == nullptr) {
        return;
    }
    match_queue &own = *locked.found;
    if (control.tag.call < own.call_) {
        own.check_late_message(control.tag, head);
        return;
    }
    auto const found = own.messages_.try_emplace({control.tag, incoming.source}).first;
    match_queue::tagged_message &message = found->second;
    std::size_t const total = head.size() + incoming.long_payload.size();
    if (message.posted_recv == nullptr) {
        if (head.empty()) {
            own.messages_.erase(found); // the receive has been cancelled
            return;
        }
        message.unexpected_data.assign(head.begin(), head.end());
        message.unexpected_data.insert(message.unexpected_data.end(), incoming.long_payload.begin(),
                                       incoming.long_payload.end());
        message.started = true;
        message.total_bytes = message.arrived_bytes = total;
        return;
    }
    recv_request &request = *message.posted_recv;
    own.messages_.erase(found);
    copy_into_request(request, 0, head);
    if (incoming.long_payload.data() != request.body.data()) {
        copy_into_request(request, head.size(), incoming.long_payload);
    }
    return_rndv_buffer(request);
    request.total_bytes = total;
    request.done.store(true, std::memory_order_release); // last: the request may be destroyed now
}

void matcher::on_fin(const transport::message &incoming) {
    auto const control = read_as<control_message>(incoming.payload);
    auto const locked = lock_queue(control.group_id);
    if (locked.found == nullptr) {
        return;
    }
    match_queue &own = *locked.found;
    auto const found = own.messages_.find({control.tag, incoming.source});
    if (found == own.messages_.end() || found->second.posted_recv == nullptr) {
        return; // the receive has been cancelled
    }
    recv_request &request = *found->second.posted_recv;
    own.messages_.erase(found);
    request.total_bytes = request.body.size();
    request.done.store(true, std::memory_order_release); // last: the request may be destroyed now
}

void matcher::on_report_request(const transport::message &incoming) {
    auto const query = read_as<control_message>(incoming.payload);
    report_message reply{query.group_id, query.tag.call, {}};
    {
        std::lock_guard const guard(mutex_);
        match_queue *const own = find(query.group_id);
        if (own == nullptr) {
            return;
        }
        std::lock_guard const inner(own->mutex_);
        const match_queue::history_entry &made =
            own->history_[query.tag.call % match_queue::history_length];
        if (made.call != query.tag.call) {
            return;
        }
        reply.report = made.report;
    }
    engine_.send(incoming.source, report_handler_, reply);
}

void matcher::on_report(const transport::message &incoming) {
    auto const control = read_as<report_message>(incoming.payload);
    std::lock_guard const guard(mutex_);
    match_queue *const own = find(control.group_id);
    if (own == nullptr) {
        return;
    }
    std::lock_guard const inner(own->mutex_);
    if (control.call == own->call_) {
        own->report_ = control.report;
        own->has_report_.store(true, std::memory_order_release);
    }
}

} // namespace diomp::group
