// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Handlers of the head for the agents' frames about ranks.
#include "head.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace diomp::run {
namespace {

/// Output is acknowledged in portions of this size.
constexpr std::uint32_t ack_bytes = max_unacked_bytes / 4;

} // namespace

void head::on_rank_frame(host &from, frame_type type, frame_reader &frame) {
    switch (type) {
    case frame_type::fence:
        on_fence(from);
        return;
    case frame_type::entries: {
        std::vector<launch::local::entry> entries;
        if (auto decoded = launch::local::decode_entries(frame, entries); decoded.ok()) {
            values_.stage(std::move(entries));
        }
        return;
    }
    case frame_type::get:
        on_get(from, frame);
        return;
    case frame_type::output:
        on_output(from, frame);
        return;
    case frame_type::input_ack:
        input_->on_ack(frame.number<std::uint32_t>());
        return;
    case frame_type::stacks_done:
        on_stacks_done(from);
        return;
    case frame_type::polled:
        on_polled(from);
        return;
    default:
        break;
    }
    auto const rank = static_cast<int>(frame.number<std::uint32_t>());
    auto const pid = static_cast<pid_t>(frame.number<std::uint32_t>());
    if (rank < from.block.first_rank || rank >= from.block.first_rank + from.block.ranks) {
        fail(1, fmt::format("host {} sent an invalid message", from.block.name));
        return;
    }
    pids_[static_cast<std::size_t>(rank)] = pid;
    switch (type) {
    case frame_type::joined:
        if (options_.verbose) {
            output_->message(fmt::format("rank {} joined (pid {})", rank, pid));
        }
        failures_->on_join(rank);
        return;
    case frame_type::finalized:
        failures_->on_finalize(rank);
        return;
    case frame_type::exited:
        on_exited(rank, frame);
        return;
    case frame_type::aborted:
        failures_->on_abort(rank, static_cast<int>(frame.number<std::uint32_t>()));
        return;
    case frame_type::gave_up:
        failures_->on_give_up(rank, static_cast<int>(frame.number<std::uint32_t>()));
        return;
    case frame_type::loss: {
        auto const peer = frame.number<std::uint32_t>();
        failures_->on_loss(rank, peer == launch::local::unknown_peer
                                     ? std::nullopt
                                     : std::optional(static_cast<int>(peer)));
        return;
    }
    case frame_type::closed:
        failures_->on_closed(rank);
        return;
    case frame_type::bad_rank:
        fail(1, fmt::format("{} sent an invalid message: {}", describe_rank(rank), frame.text()));
        return;
    default:
        fail(1, fmt::format("host {} sent an invalid message", from.block.name));
    }
}

void head::on_fence(host &from) {
    if (from.in_fence) {
        fail(1, fmt::format("host {} entered a fence twice", from.block.name));
        return;
    }
    from.in_fence = true;
    if (++in_fence_ < hosts_.size()) {
        return;
    }
    in_fence_ = 0;
    for (host &each : hosts_) {
        each.in_fence = false;
    }
    bool const replaced = values_.commit();
    send_to_all(small_frame(frame_type::fence_done, static_cast<std::uint8_t>(replaced ? 1 : 0)));
}

void head::on_get(host &from, frame_reader &frame) {
    auto const owner = frame.number<std::uint32_t>();
    std::string const key(frame.text());
    const std::string *const value = values_.find(static_cast<int>(owner), key);
    frame_writer reply(frame_type::value);
    reply.number(owner);
    reply.text(key);
    reply.number(static_cast<std::uint8_t>(value != nullptr ? 1 : 0));
    reply.text(value != nullptr ? *value : "");
    from.link->send(reply.take());
}

void head::on_output(host &from, frame_reader &frame) {
    auto const rank = static_cast<int>(frame.number<std::uint32_t>());
    int const which = frame.number<std::uint8_t>() != 0 ? 1 : 0;
    std::string_view const text = frame.rest();
    if (rank < from.block.first_rank || rank >= from.block.first_rank + from.block.ranks ||
        !options_.output_dir.empty()) {
        return;
    }
    from.unacked_bytes += static_cast<std::uint32_t>(text.size());
    output_->add_text(rank, which, text);
    if (!output_->congested(0) && !output_->congested(1)) {
        send_output_ack(from);
    }
}

void head::send_output_ack(host &which) {
    if (which.unacked_bytes >= ack_bytes && which.link) {
        which.link->send(small_frame(frame_type::output_ack, which.unacked_bytes));
        which.unacked_bytes = 0;
    }
}

/// The reader of diomp-run's output has become slower or faster, or has closed it.
void head::on_flow_change() {
    for (int const which : {0, 1}) {
        if (output_->reader_closed(which)) {
            send_to_all(small_frame(frame_type::output_closed, static_cast<std::uint8_t>(which)));
        }
    }
    if (!output_->congested(0) && !output_->congested(1)) {
        for (host &each : hosts_) {
            send_output_ack(each);
        }
    }
}

void head::on_exited(int rank, frame_reader &frame) {
    exit_info how;
    how.code = static_cast<int>(frame.number<std::uint32_t>());
    how.signal = static_cast<int>(frame.number<std::uint32_t>());
    how.core_dumped = frame.number<std::uint8_t>() != 0;
    how.reason = frame.text();
    on_rank_exit(rank, how);
}

void head::on_polled(host &from) {
    if (std::exchange(from.poll_pending, false) &&
        std::ranges::none_of(hosts_, &host::poll_pending)) {
        failures_->on_polled();
    }
}

void head::on_stacks_done(host &from) {
    if (std::exchange(from.stacks_pending, false) &&
        std::ranges::none_of(hosts_, &host::stacks_pending)) {
        end_->on_stacks_done();
    }
}

} // namespace diomp::run
