// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/internal/match_queue.h"

#include "base/assert.h"

#include <algorithm>
#include <cstring>

namespace diomp::group {
namespace {

/// Copies bytes [offset, ...) of a message into the head and body of the request.
void copy_into_request(const recv_request &request, std::size_t offset,
                       std::span<const std::byte> bytes) {
    std::size_t const head = request.head.size();
    if (offset < head && !bytes.empty()) {
        std::size_t const n = std::min(bytes.size(), head - offset);
        std::memcpy(request.head.data() + offset, bytes.data(), n);
        bytes = bytes.subspan(n);
        offset += n;
    }
    std::size_t const at = offset - head;
    if (offset >= head && at < request.body.size() && !bytes.empty()) {
        std::memcpy(request.body.data() + at, bytes.data(),
                    std::min(bytes.size(), request.body.size() - at));
    }
}

/// The last access: the request may be destroyed afterwards.
void complete(recv_request &request, std::size_t total_bytes) {
    DIOMP_ASSERT(!request.is_done(), "a receive is completed once");
    request.total_bytes = total_bytes;
    request.done.store(true, std::memory_order_release);
}

} // namespace

void match_queue::begin_call(std::uint64_t call, const call_state &own) {
    std::lock_guard const guard(mutex_);
    DIOMP_ASSERT(call >= call_, "calls are numbered in order");
    call_ = call;
    history_[call % history_length] = {call, {own, -1, 0}};
    report_.reset();
    has_report_.store(false, std::memory_order_relaxed);
    while (!messages_.empty() && messages_.begin()->first.first.call < call) {
        check_late_message(messages_.begin()->first.first,
                           messages_.begin()->second.unexpected_data);
        messages_.erase(messages_.begin());
    }
    std::erase_if(rtrs_, [call](const auto &each) { return each.first.first.call < call; });
}

void match_queue::update(const call_state &state, std::int32_t awaited) {
    std::lock_guard const guard(mutex_);
    history_[call_ % history_length].report = {state, awaited, 0};
}

std::optional<call_report> match_queue::take_report() {
    if (!has_report_.load(std::memory_order_acquire)) {
        return std::nullopt;
    }
    std::lock_guard const guard(mutex_);
    has_report_.store(false, std::memory_order_relaxed);
    return std::exchange(report_, std::nullopt);
}

std::optional<std::pair<call_state, call_state>> match_queue::take_late_mismatch() {
    if (!has_late_mismatch_.load(std::memory_order_acquire)) {
        return std::nullopt;
    }
    std::lock_guard const guard(mutex_);
    has_late_mismatch_.store(false, std::memory_order_relaxed);
    return std::exchange(late_mismatch_, std::nullopt);
}

void match_queue::check_late_message(const message_tag &tag, std::span<const std::byte> head) {
    if (tag.step >= step_payloads) {
        return; // the message does not begin with a state
    }
    const history_entry &made = history_[tag.call % history_length];
    if (made.call != tag.call || head.size() < sizeof(call_state) || late_mismatch_ ||
        !made.report.state.agrees()) {
        return;
    }
    call_state received;
    std::memcpy(&received, head.data(), sizeof(received));
    const call_state &own = made.report.state;
    if (received.first != call_state::no_member &&
        (received.call.what != own.call.what || received.call.root != own.call.root)) {
        late_mismatch_.emplace(own, received);
        has_late_mismatch_.store(true, std::memory_order_release);
    }
}

bool match_queue::post(recv_request &request) {
    std::lock_guard const guard(mutex_);
    auto const found = messages_.try_emplace({request.tag, request.from}).first;
    tagged_message &message = found->second;
    DIOMP_ASSERT(message.posted_recv == nullptr, "a tag has one receive");
    copy_into_request(request, 0, message.unexpected_data);
    message.unexpected_data.clear();
    message.posted_recv = &request;
    if (!message.is_complete()) {
        return false;
    }
    complete(request, message.total_bytes);
    messages_.erase(found);
    return true;
}

bool match_queue::remove(const recv_request &request) {
    std::lock_guard const guard(mutex_);
    auto const found = messages_.find({request.tag, request.from});
    if (found == messages_.end()) {
        return false;
    }
    bool const is_zero_copy = found->second.is_zero_copy;
    messages_.erase(found);
    return is_zero_copy;
}

std::optional<std::uint64_t> match_queue::take_rtr(world_rank of, message_tag tag) {
    std::lock_guard const guard(mutex_);
    match_key const key{tag, of};
    auto const found = std::ranges::find(rtrs_, key, [](const auto &each) { return each.first; });
    if (found == rtrs_.end()) {
        return std::nullopt;
    }
    std::uint64_t const address = found->second;
    rtrs_.erase(found);
    return address;
}

void match_queue::add_fragment(world_rank from, message_tag tag, std::size_t total_bytes,
                               std::size_t offset, std::span<const std::byte> bytes) {
    if (tag.call < call_) {
        if (offset == 0) {
            check_late_message(tag, bytes);
        }
        return;
    }
    auto const found = messages_.try_emplace({tag, from}).first;
    tagged_message &message = found->second;
    if (message.posted_recv == nullptr && total_bytes > max_unexpected_bytes) {
        messages_.erase(found); // the receive has been cancelled
        return;
    }
    message.started = true;
    message.total_bytes = total_bytes;
    message.arrived_bytes += bytes.size();
    DIOMP_ASSERT(message.arrived_bytes <= total_bytes && offset + bytes.size() <= total_bytes,
                 "fragments lie in their message");
    if (message.posted_recv == nullptr) {
        message.unexpected_data.resize(total_bytes);
        if (!bytes.empty()) {
            std::memcpy(message.unexpected_data.data() + offset, bytes.data(), bytes.size());
        }
        return;
    }
    recv_request &request = *message.posted_recv;
    copy_into_request(request, offset, bytes);
    if (message.is_complete()) {
        messages_.erase(found);
        complete(request, total_bytes);
    }
}

std::uint64_t match_queue::add_long(world_rank from, message_tag tag,
                                    std::span<const std::byte> head,
                                    std::span<const std::byte> body) {
    if (tag.call < call_) {
        check_late_message(tag, head);
        return 0;
    }
    auto const found = messages_.try_emplace({tag, from}).first;
    tagged_message &message = found->second;
    std::size_t const total = head.size() + body.size();
    if (message.posted_recv == nullptr) {
        if (head.empty()) {
            messages_.erase(found); // the receive has been cancelled
            return 0;
        }
        message.unexpected_data.assign(head.begin(), head.end());
        message.unexpected_data.insert(message.unexpected_data.end(), body.begin(), body.end());
        message.started = true;
        message.total_bytes = message.arrived_bytes = total;
        return 0;
    }
    recv_request &request = *message.posted_recv;
    messages_.erase(found);
    copy_into_request(request, 0, head);
    if (body.data() != request.body.data()) {
        copy_into_request(request, head.size(), body);
    }
    std::uint64_t const rndv_buffer = std::exchange(request.rndv_buffer, 0);
    complete(request, total);
    return rndv_buffer;
}

std::byte *match_queue::recv_buffer_for(world_rank from, message_tag tag, std::size_t head_bytes,
                                        std::size_t body_bytes) {
    auto const found = messages_.find({tag, from});
    if (found == messages_.end() || found->second.posted_recv == nullptr) {
        return nullptr;
    }
    const recv_request &request = *found->second.posted_recv;
    if (request.head.size() != head_bytes || request.body.size() < body_bytes) {
        return nullptr;
    }
    found->second.is_zero_copy = true;
    return request.body.data();
}

void match_queue::add_fin(world_rank from, message_tag tag) {
    auto const found = messages_.find({tag, from});
    if (found == messages_.end() || found->second.posted_recv == nullptr) {
        return; // the receive has been cancelled
    }
    recv_request &request = *found->second.posted_recv;
    messages_.erase(found);
    complete(request, request.body.size());
}

void match_queue::add_rtr(world_rank from, message_tag tag, std::uint64_t address) {
    if (tag.call >= call_) {
        rtrs_.emplace_back(match_key{tag, from}, address);
    }
}

std::optional<call_report> match_queue::report_of(std::uint64_t call) const {
    const history_entry &made = history_[call % history_length];
    return made.call == call ? std::optional(made.report) : std::nullopt;
}

void match_queue::add_report(std::uint64_t call, const call_report &report) {
    if (call == call_) {
        report_ = report;
        has_report_.store(true, std::memory_order_release);
    }
}

} // namespace diomp::group
