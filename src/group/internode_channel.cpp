// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/internal/internode_channel.h"

#include "group/internal/current_call.h"
#include "group/internal/deadlock_probe.h"
#include "group/internal/matcher.h"
#include "group/protocol_log.h"
#include "messaging/pooled_completion.h"
#include "transport/conduit.h"

#include <fmt/core.h>

#include <utility>

namespace diomp::group {
namespace {

/// `path`: "" for a received message.
void log_message(const char *what, world_rank peer, message_tag tag, std::size_t nbytes,
                 const char *path) {
    if (logs_protocol()) [[unlikely]] {
        bool const is_received = *path == '\0';
        log_protocol("call {}: {} {} bytes {} rank {} in step {}{}{}", tag.call, what, nbytes,
                     is_received ? "of" : "to", peer.value(), tag.step, is_received ? "" : ": ",
                     path);
    }
}

} // namespace

internode_channel::internode_channel(messaging::engine &engine, matcher &messages,
                                     std::uint64_t group_id, match_queue &queue, current_call &call,
                                     deadlock_probe &probe)
    : engine_(engine), matcher_(messages), group_id_(group_id), queue_(queue),
      layout_(call.layout()), call_(call), probe_(probe),
      outgoing_(std::make_unique<std::deque<outgoing_message>>()) {}

std::size_t internode_channel::max_am_long_bytes(std::size_t member) const {
    return engine_.transport().max_am_long(layout_.members[member]);
}

bool internode_channel::fits_am_long(world_rank peer, std::size_t nbytes) const {
    return nbytes > max_copied_bytes && nbytes <= engine_.transport().max_am_long(peer);
}

internode_channel::~internode_channel() {
    if (!outgoing_->empty()) {
        // Leaked: with lost peers it is unknown when the conduit stops using the completions.
        static_cast<void>(outgoing_.release());
    }
}

void internode_channel::send_with_state(std::size_t member, std::uint64_t step,
                                        std::span<const std::byte> data) {
    world_rank const to = layout_.members[member];
    message_tag const tag{call_.number(), step};
    if (!matcher::is_eager(data.size()) || fits_am_long(to, data.size())) {
        outgoing_message &message = outgoing_->emplace_back(to, tag, true);
        auto const as_am_long =
            matcher_.send_am_long(group_id_, to, tag, bytes_of(call_.state()), data, message.done);
        if (as_am_long && as_am_long.value()) {
            log_message("sends its state and", to, tag, data.size(), "long active message");
            return;
        }
        outgoing_->pop_back(); // a lost peer is reported by other calls
    }
    log_message("sends its state and", to, tag, data.size(), "eager");
    matcher_.send(group_id_, to, tag, bytes_of(call_.state()), data);
}

bool internode_channel::receive_with_state(std::size_t member, std::uint64_t step,
                                           std::span<std::byte> data) {
    if (!call_.can_wait()) {
        return false;
    }
    call_state received;
    recv_request request;
    post_recv_with_state(request, received, member, step, data);
    bool const is_complete = finish_recv_with_state(request, received, member);
    if (!request.is_done()) {
        matcher_.cancel(queue_, request);
    }
    return is_complete;
}

void internode_channel::post_recv_with_state(recv_request &request, call_state &received,
                                             std::size_t member, std::uint64_t step,
                                             std::span<std::byte> data) {
    request.from = layout_.members[member];
    request.tag = {call_.number(), step};
    request.head = bytes_of(received);
    request.body = data;
    matcher_.post_recv(group_id_, queue_, request);
}

bool internode_channel::finish_recv_with_state(recv_request &request, const call_state &received,
                                               std::size_t member) {
    if (!call_.can_wait()) {
        return false;
    }
    if (!request.is_done()) {
        probe_.wait_for_message(member, request);
    }
    if (!request.is_done()) {
        return false;
    }
    log_message("has received the state and", request.from, request.tag,
                request.total_bytes - sizeof(received), "");
    call_.merge(received);
    bool const has_data = request.total_bytes == sizeof(received) + request.body.size();
    if (!has_data && call_.is_clean()) {
        // It has given up on a member of this node that has arrived since.
        std::int32_t const rank = request.from.value();
        call_.fail(rank, {OMPX_ERR_TIMEOUT,
                          fmt::format("rank {} has given up, {}", rank, call_.describe_wait(rank)),
                          "raise DIOMP_TIMEOUT if the other ranks are only slow"});
    }
    return call_.state().agrees() && has_data;
}

bool internode_channel::has_arrived(const recv_request &request) {
    auto const &messages = engine_.transport().messages(request.from);
    while (!request.is_done() && messages.has_messages() && engine_.poll()) {
    }
    return request.is_done();
}

status internode_channel::send_am_long(world_rank to, message_tag tag,
                                       std::span<const std::byte> data) {
    status outcome;
    auto const is_over = [&] {
        outgoing_message &message = outgoing_->emplace_back(to, tag, true);
        auto sent = matcher_.send_am_long(group_id_, to, tag, {}, data, message.done);
        if (sent.ok() && sent.value()) {
            return true;
        }
        outgoing_->pop_back();
        if (!sent) {
            outcome = sent.take_failure();
        }
        return !outcome.ok();
    };
    if (!is_over()) {
        DIOMP_TRY(
            engine_.wait_for_network(is_over, [&] { return call_.describe_wait(to.value()); }));
    }
    return outcome;
}

status internode_channel::send(std::size_t member, std::uint64_t step,
                               std::span<const std::byte> data, rtr_mode rtr) {
    world_rank const to = layout_.members[member];
    message_tag const tag{call_.number(), step};
    if (uses_am_long(to, data.size(), rtr)) {
        log_message("sends", to, tag, data.size(), "long active message");
        return send_am_long(to, tag, data);
    }
    if (matcher::is_eager(data.size())) {
        log_message("sends", to, tag, data.size(), "eager");
        matcher_.send(group_id_, to, tag, {}, data);
        return {};
    }
    return send_after_rtr(to, tag, data);
}

status internode_channel::send_after_rtr(world_rank to, message_tag tag,
                                         std::span<const std::byte> data) {
    std::optional<std::uint64_t> address;
    DIOMP_TRY(engine_.wait_for_handler(
        [&] {
            progress_sends();
            address = queue_.take_rtr(to, tag);
            return address.has_value();
        },
        [&] { return call_.describe_wait(to.value()); }));
    log_message("sends", to, tag, data.size(),
                *address == 0 ? "in fragments, after RTR" : "put, after RTR");
    outgoing_message &message = outgoing_->emplace_back(to, tag);
    auto as_am_long = matcher_.send_am_long(group_id_, to, tag, {}, data, message.done);
    if (!as_am_long) {
        outgoing_->pop_back();
        return as_am_long.take_failure();
    }
    message.implies_fin = as_am_long.value();
    if (message.implies_fin) {
        return {};
    }
    if (*address == 0) {
        outgoing_->pop_back();
        matcher_.send(group_id_, to, tag, {}, data);
        return {};
    }
    status started =
        engine_.transport().rma()->put(to, *address, data.data(), data.size(), message.done);
    if (!started) {
        outgoing_->pop_back();
        return started;
    }
    return engine_.transport().rma()->flush(to, message.done);
}

// Messages are completed in the order in which they were put.
void internode_channel::progress_sends() {
    while (!outgoing_->empty() && outgoing_->front().done.is_done()) {
        outgoing_message const &sent = outgoing_->front();
        status outcome = messaging::outcome_of(
            sent.done, engine_, [&] { return call_.describe_wait(sent.to.value()); });
        if (!outcome && !send_failure_) {
            send_failure_ = outcome.take_failure();
        } else if (outcome && !sent.implies_fin) {
            matcher_.send_fin(group_id_, sent.to, sent.tag);
        }
        outgoing_->pop_front();
    }
}

status internode_channel::finish_sends() {
    progress_sends();
    if (!outgoing_->empty()) {
        DIOMP_TRY(engine_.wait_for_network(
            [this] {
                progress_sends();
                return outgoing_->empty();
            },
            [this] { return call_.describe_wait(outgoing_->front().to.value()); }));
    }
    if (send_failure_) {
        return std::move(*std::exchange(send_failure_, std::nullopt));
    }
    return {};
}

void internode_channel::finish_sends_or_fail_call() {
    std::int32_t const to = outgoing_->empty() ? layout_.members[layout_.self()].value()
                                               : outgoing_->front().to.value();
    if (status sent = finish_sends(); !sent) {
        call_.fail(to, sent.take_failure());
    }
}

void internode_channel::post_recv(recv_request &request, std::size_t member, std::uint64_t step,
                                  std::span<std::byte> data, rtr_mode rtr) {
    request.from = layout_.members[member];
    request.tag = {call_.number(), step};
    request.body = data;
    matcher_.post_recv(group_id_, queue_, request, !uses_am_long(request.from, data.size(), rtr));
}

status internode_channel::wait_received(recv_request &request) {
    status waited = engine_.wait_for_handler(
        [&] {
            progress_sends();
            return request.is_done();
        },
        [&] { return call_.describe_wait(request.from.value()); });
    if (waited) {
        log_message("has received", request.from, request.tag, request.total_bytes, "");
        matcher_.complete_recv(request);
    } else {
        matcher_.cancel(queue_, request);
    }
    return waited;
}

bool internode_channel::receive_unless_refused(recv_request &request, std::size_t member,
                                               std::uint64_t refusal) {
    if (!call_.can_wait()) {
        return false;
    }
    call_state received;
    recv_request refused{.from = layout_.members[member],
                         .tag = {call_.number(), refusal},
                         .head = bytes_of(received),
                         .body = {}};
    matcher_.post_recv(group_id_, queue_, refused);
    probe_.wait_for_message(member, request, &refused);
    if (refused.is_done()) {
        call_.merge(received);
    } else {
        matcher_.cancel(queue_, refused);
    }
    if (!request.is_done()) {
        return false; // still posted
    }
    log_message("has received", request.from, request.tag, request.total_bytes, "");
    matcher_.complete_recv(request);
    return true;
}

void internode_channel::cancel(recv_request &request) {
    bool const is_done = request.is_done();
    if (!is_done) {
        matcher_.cancel(queue_, request);
    }
    // A member that made another call sends no data.
    if (is_done || !call_.state().agrees()) {
        matcher_.return_rndv_buffer(request);
    }
}

std::byte *internode_channel::scratch(std::size_t nbytes) {
    progress_sends();
    if (!outgoing_->empty()) {
        // A call has failed while its messages are still being sent: they keep this memory.
        outgoing_->back().kept_scratch.push_back(std::exchange(scratch_, {}));
    }
    if (scratch_.size() < nbytes + cache_line_bytes) {
        scratch_.clear(); // nothing to copy
        scratch_.resize(nbytes + cache_line_bytes);
    }
    auto const address = reinterpret_cast<std::uintptr_t>(scratch_.data());
    return scratch_.data() + (cache_line_bytes - address % cache_line_bytes) % cache_line_bytes;
}

} // namespace diomp::group
