// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/internal/matcher.h"

#include "transport/conduit.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace diomp::group {
namespace {

template <typename Struct>
Struct read_as(std::span<const std::byte> payload) {
    Struct read;
    std::memcpy(&read, payload.data(), sizeof(read));
    return read;
}

} // namespace

matcher::matcher(messaging::engine &engine, workspace &space, std::byte *own_slot)
    : engine_(engine), space_(space), rndv_buffers_(space, own_slot),
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
            sent = engine_
                       .wait_for_network(
                           [&] {
                               return engine_.transport().messages(to).try_send(
                                   to, fragment_handler_, packet);
                           },
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
    bool const needs_rtr = sends_rtr && request.head.empty() && !is_eager(request.body.size());
    bool const is_done = own.post(request);
    if (is_done || !needs_rtr) {
        return;
    }
    std::uint64_t address = 0;
    if (space_.contains(request.body)) {
        address = reinterpret_cast<std::uint64_t>(request.body.data());
    } else if (request.body.size() <= rndv_buffers::buffer_bytes) {
        request.rndv_buffer = rndv_buffers_.take();
        address = request.rndv_buffer == 0
                      ? 0
                      : reinterpret_cast<std::uint64_t>(rndv_buffers_.data(request.rndv_buffer));
    }
    engine_.send(request.from, rtr_handler_, control_message{group_id, request.tag, address});
}

void matcher::complete_recv(recv_request &request) {
    if (request.rndv_buffer != 0) {
        std::memcpy(request.body.data(), rndv_buffers_.data(request.rndv_buffer),
                    request.body.size());
        return_rndv_buffer(request);
    }
}

void matcher::return_rndv_buffer(recv_request &request) {
    rndv_buffers_.give_back(std::exchange(request.rndv_buffer, 0));
}

// The rndv buffer is not freed: the sender may still put into it.
void matcher::cancel(match_queue &own, const recv_request &request) {
    if (own.remove(request)) {
        if (auto *const longs = engine_.transport().am_long(); longs != nullptr) {
            longs->revoke_recv_buffer(request.body.data());
        }
    }
}

void matcher::request_report(std::uint64_t group_id, world_rank rank, std::uint64_t call) {
    engine_.send(rank, report_request_handler_, control_message{group_id, {call, 0}, 0});
}

void matcher::on_fragment(const transport::message &incoming) {
    auto const header = read_as<fragment_header>(incoming.payload);
    if (auto const own = queues_.lock_or_create(header.group_id); own.found != nullptr) {
        own.found->add_fragment(incoming.source, header.tag, header.total_bytes, header.offset,
                                incoming.payload.subspan(sizeof(header)));
    }
}

void matcher::on_rtr(const transport::message &incoming) {
    auto const control = read_as<control_message>(incoming.payload);
    if (auto const own = queues_.lock_or_create(control.group_id); own.found != nullptr) {
        own.found->add_rtr(incoming.source, control.tag, control.address);
    }
}

std::byte *matcher::recv_buffer_for(const transport::message &header, std::size_t nbytes) {
    auto const control = read_as<control_message>(header.payload);
    auto const own = queues_.lock_or_create(control.group_id);
    return own.found == nullptr
               ? nullptr
               : own.found->recv_buffer_for(header.source, control.tag,
                                            header.payload.size() - sizeof(control), nbytes);
}

// Runs in the conduit's progress.
void matcher::on_am_long(const transport::message &incoming) {
    auto const control = read_as<control_message>(incoming.payload);
    if (auto const own = queues_.lock_or_create(control.group_id); own.found != nullptr) {
        rndv_buffers_.give_back(own.found->add_long(incoming.source, control.tag,
                                                    incoming.payload.subspan(sizeof(control)),
                                                    incoming.long_payload));
    }
}

void matcher::on_fin(const transport::message &incoming) {
    auto const control = read_as<control_message>(incoming.payload);
    if (auto const own = queues_.lock_or_create(control.group_id); own.found != nullptr) {
        own.found->add_fin(incoming.source, control.tag);
    }
}

void matcher::on_report_request(const transport::message &incoming) {
    auto const query = read_as<control_message>(incoming.payload);
    std::optional<call_report> report;
    if (auto const own = queues_.lock(query.group_id); own.found != nullptr) {
        report = own.found->report_of(query.tag.call);
    }
    if (report) {
        engine_.send(incoming.source, report_handler_,
                     report_message{query.group_id, query.tag.call, *report});
    }
}

void matcher::on_report(const transport::message &incoming) {
    auto const reply = read_as<report_message>(incoming.payload);
    if (auto const own = queues_.lock(reply.group_id); own.found != nullptr) {
        own.found->add_report(reply.call, reply.report);
    }
}

} // namespace diomp::group
