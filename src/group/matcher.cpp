// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/internal/matcher.h"

#include "group/internal/message_bytes.h"

#include <algorithm>
#include <cstring>

namespace diomp::group {

void match_queue::begin_call(std::uint64_t call, const call_state &own) {
    std::lock_guard const guard(mutex_);
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
    auto const received = read_as<call_state>(head);
    const call_state &own = made.report.state;
    if (received.first != call_state::no_member &&
        (received.call.what != own.call.what || received.call.root != own.call.root)) {
        late_mismatch_.emplace(own, received);
        has_late_mismatch_.store(true, std::memory_order_release);
    }
}

matcher::matcher(messaging::engine &engine, workspace &space, std::byte *own_slot)
    : engine_(engine), space_(space), own_slot_(own_slot),
      fragment_handler_(engine.add_handler(
          [this](const transport::message &incoming) { on_fragment(incoming); })),
      rtr_handler_(
          engine.add_handler([this](const transport::message &incoming) { on_rtr(incoming); })),
      am_long_handler_(
          engine.add_handler([this](const transport::message &incoming) { on_am_long(incoming); },
                             [this](const transport::message &header, std::size_t nbytes) {
                                 return recv_buffer_for(header, nbytes);
                             })),
      fin_handler_(
          engine.add_handler([this](const transport::message &incoming) { on_fin(incoming); })),
      report_request_handler_(engine.add_handler(
          [this](const transport::message &incoming) { on_report_request(incoming); })),
      report_handler_(
          engine.add_handler([this](const transport::message &incoming) { on_report(incoming); })) {
}

matcher::~matcher() {
    for (std::uint64_t const each : free_rndv_buffers_) {
        space_.release(each - 1);
    }
}

// Buffers are reused for later messages: freed memory would be zeroed at each allocation.
std::uint64_t matcher::take_rndv_buffer() {
    std::lock_guard const guard(rndv_mutex_);
    if (free_rndv_buffers_.empty()) {
        auto const made = num_rndv_buffers_ < max_rndv_buffers ? space_.allocate(rndv_buffer_bytes)
                                                               : std::optional<std::uint64_t>{};
        num_rndv_buffers_ += made ? 1 : 0;
        return made ? *made + 1 : 0;
    }
    std::uint64_t const taken = free_rndv_buffers_.back();
    free_rndv_buffers_.pop_back();
    return taken;
}

match_queue &matcher::open(std::uint64_t group_id) {
    std::lock_guard const guard(mutex_);
    auto &found = queues_[group_id];
    if (!found) {
        found = std::make_unique<match_queue>();
    }
    return *found;
}

void matcher::close(std::uint64_t group_id) {
    std::lock_guard const guard(mutex_);
    closed_[num_closed_++ % num_remembered_ids] = group_id + 1;
    if (match_queue *const own = find(group_id); own != nullptr) {
        std::lock_guard const inner(
            own->mutex_); // waits for a handler that is delivering a message
    }
    queues_.erase(group_id);
}

matcher::locked_queue matcher::lock_queue(std::uint64_t group_id) {
    std::lock_guard const guard(mutex_);
    match_queue *own = find(group_id);
    if (own == nullptr) {
        if (std::ranges::find(closed_, group_id + 1) != closed_.end()) {
            return {};
        }
        own = (queues_[group_id] = std::make_unique<match_queue>()).get();
    }
    return {own, std::unique_lock(own->mutex_)};
}

match_queue *matcher::find(std::uint64_t group_id) {
    auto const found = queues_.find(group_id);
    return found == queues_.end() ? nullptr : found->second.get();
}

void matcher::send(std::uint64_t group_id, world_rank to, message_tag tag,
                   std::span<const std::byte> head, std::span<const std::byte> body) {
    std::size_t const total = head.size() + body.size();
    std::size_t const max_fragment_bytes =
        engine_.transport().max_message_bytes(to) - sizeof(fragment_header);
    bool may_wait = !is_eager(total);
    alignas(16) std::array<std::byte, 1024> small;
    std::vector<std::byte> large;
    std::size_t const message_bytes = sizeof(fragment_header) + std::min(total, max_fragment_bytes);
    if (message_bytes > small.size()) {
        large.resize(message_bytes);
    }
    std::byte *const message = large.empty() ? small.data() : large.data();
    std::size_t offset = 0;
    do {
        std::size_t const n = std::min(max_fragment_bytes, total - offset);
        fragment_header const header{group_id, tag, total, offset};
        std::memcpy(message, &header, sizeof(header));
        std::byte *const payload = message + sizeof(header);
        std::size_t const from_head = offset < head.size() ? std::min(n, head.size() - offset) : 0;
        if (from_head > 0) {
            std::memcpy(payload, head.data() + offset, from_head);
        }
        if (n > from_head) {
            std::memcpy(payload + from_head, body.data() + (offset + from_head - head.size()),
                        n - from_head);
        }
        std::span<const std::byte> const packet(message, sizeof(header) + n);
        // Large messages wait for space in the send queue; the order of fragments does not matter.
        // If the wait fails, the engine keeps the fragment, as it does for small messages.
        bool sent = false;
        if (may_wait) {
            sent =
                engine_
                    .wait_for_network(
                        [&] { return engine_.transport().try_send(to, fragment_handler_, packet); },
                        [&] { return "waiting for space in a send queue"; })
                    .ok();
        }
        if (!sent) {
            may_wait = false; // at most one timeout per message
            engine_.send(to, fragment_handler_, packet);
        }
        offset += n;
    } while (offset < total);
}

std::optional<std::uint64_t> matcher::take_rtr(match_queue &own, world_rank of, message_tag tag) {
    std::lock_guard const guard(own.mutex_);
    match_queue::match_key const key{tag, of};
    auto const found =
        std::ranges::find(own.rtrs_, key, [](const auto &each) { return each.first; });
    if (found == own.rtrs_.end()) {
        return std::nullopt;
    }
    std::uint64_t const address = found->second;
    own.rtrs_.erase(found);
    return address;
}

result<bool> matcher::send_am_long(std::uint64_t group_id, world_rank to, message_tag tag,
                                   std::span<const std::byte> head, std::span<const std::byte> body,
                                   transport::completion &done) {
    std::array<std::byte, sizeof(control_message) + max_head_bytes> payload;
    control_message const front{group_id, tag, 0};
    std::memcpy(payload.data(), &front, sizeof(front));
    if (!head.empty()) {
        std::memcpy(payload.data() + sizeof(front), head.data(), head.size());
    }
    return engine_.send_long(to, am_long_handler_, {payload.data(), sizeof(front) + head.size()},
                             body, done);
}

void matcher::send_fin(std::uint64_t group_id, world_rank to, message_tag tag) {
    engine_.send(to, fin_handler_, control_message{group_id, tag, 0});
}

void matcher::post_recv(std::uint64_t group_id, match_queue &own, recv_request &request,
                        bool sends_rtr) {
    bool const is_large = request.head.empty() && !is_eager(request.body.size());
    {
        std::lock_guard const guard(own.mutex_);
        auto const found = own.messages_.try_emplace({request.tag, request.from}).first;
        match_queue::tagged_message &message = found->second;
        copy_into_request(request, 0, message.unexpected_data);
        message.unexpected_data.clear();
        message.posted_recv = &request;
        if (message.is_complete()) {
            request.total_bytes = message.total_bytes;
            request.done.store(true, std::memory_order_release);
            own.messages_.erase(found);
            return;
        }
    }
    if (!is_large || !sends_rtr) {
        return;
    }
    std::uint64_t address = 0;
    if (request.head.empty() && space_.contains(request.body)) {
        address = reinterpret_cast<std::uint64_t>(request.body.data());
    } else if (request.head.empty() && request.body.size() <= rndv_buffer_bytes) {
        request.rndv_buffer = take_rndv_buffer();
        address = request.rndv_buffer == 0
                      ? 0
                      : reinterpret_cast<std::uint64_t>(own_slot_ + request.rndv_buffer - 1);
    }
    engine_.send(request.from, rtr_handler_, control_message{group_id, request.tag, address});
}

void matcher::complete_recv(recv_request &request) {
    if (request.rndv_buffer == 0) {
        return;
    }
    std::memcpy(request.body.data(), own_slot_ + request.rndv_buffer - 1, request.body.size());
    return_rndv_buffer(request);
}

void matcher::return_rndv_buffer(recv_request &request) {
    if (request.rndv_buffer != 0) {
        std::lock_guard const guard(rndv_mutex_);
        free_rndv_buffers_.push_back(std::exchange(request.rndv_buffer, 0));
    }
}

// The rndv buffer is not freed: the sender may still put into it.
void matcher::cancel(match_queue &own, recv_request &request) {
    bool is_zero_copy = false;
    {
        std::lock_guard const guard(own.mutex_);
        if (auto const found = own.messages_.find({request.tag, request.from});
            found != own.messages_.end()) {
            is_zero_copy = found->second.is_zero_copy;
            own.messages_.erase(found);
        }
    }
    if (is_zero_copy) {
        engine_.transport().revoke_recv_buffer(request.body.data());
    }
}

void matcher::request_report(std::uint64_t group_id, world_rank rank, std::uint64_t call) {
    engine_.send(rank, report_request_handler_, control_message{group_id, {call, 0}, 0});
}

} // namespace diomp::group
