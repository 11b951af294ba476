// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Handlers of the head for the agents' frames about ranks.
#include "head.h"

#include <fmt/format.h>

#include <optional>

namespace diomp::run {
void head::on_rank_frame(host &from, frame_type type, frame_reader &frame) {
    switch (type) {
    case frame_type::fence:
        if (auto const entered = exchange_.on_fence(from); !entered) {
            fail(1, entered.failure().message());
        }
        return;
    case frame_type::entries:
        exchange_.on_entries(frame);
        return;
    case frame_type::get:
        exchange_.on_get(from, frame);
        return;
    case frame_type::output:
        if (options_.output_dir.empty()) {
            ranks_output_->on_output(from, frame);
        }
        return;
    case frame_type::input_ack:
        input_->on_ack(frame.number<std::uint32_t>());
        return;
    case frame_type::stacks_done:
        stacks_.on_reply(from);
        return;
    case frame_type::polled:
        polls_.on_reply(from);
        return;
    default:
        break;
    }
    auto const rank = static_cast<int>(frame.number<std::uint32_t>());
    auto const pid = static_cast<pid_t>(frame.number<std::uint32_t>());
    if (!from.block.contains(rank)) {
        fail(1, fmt::format("host {} sent an invalid message", from.block.name));
        return;
    }
    hosts_.set_pid(rank, pid);
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
    case frame_type::exited: {
        exit_info how;
        how.code = static_cast<int>(frame.number<std::uint32_t>());
        how.signal = static_cast<int>(frame.number<std::uint32_t>());
        how.core_dumped = frame.number<std::uint8_t>() != 0;
        how.reason = frame.text();
        on_rank_exit(rank, how);
        return;
    }
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

} // namespace diomp::run
