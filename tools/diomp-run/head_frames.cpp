// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What agents tell the head about their ranks.
#include "head.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace diomp::run {
namespace {

/// Word of used output goes out in portions.
constexpr std::uint32_t thank_bytes = window_bytes / 4;

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
    case frame_type::input_taken:
        input_->taken(frame.number<std::uint32_t>());
        return;
    case frame_type::stacks_over:
        on_stacks_over(from);
        return;
    case frame_type::looked:
        on_looked(from);
        return;
    default:
        break;
    }
    auto const rank = static_cast<int>(frame.number<std::uint32_t>());
    auto const pid = static_cast<pid_t>(frame.number<std::uint32_t>());
    if (rank < from.share.first_rank || rank >= from.share.first_rank + from.share.ranks) {
        fail(1, fmt::format("host {} sent what diomp-run does not understand", from.share.name));
        return;
    }
    pids_[static_cast<std::size_t>(rank)] = pid;
    switch (type) {
    case frame_type::joined:
        attendance_.join(rank);
        if (options_.verbose) {
            output_->message(fmt::format("rank {} joined (pid {})", rank, pid));
        }
        check_attendance();
        return;
    case frame_type::finalized:
        note_finalized(rank);
        return;
    case frame_type::exited:
        on_exited(rank, frame);
        return;
    case frame_type::aborted:
        fail_aborted(rank, static_cast<int>(frame.number<std::uint32_t>()));
        return;
    case frame_type::gave_up:
        fail_given_up(rank, static_cast<int>(frame.number<std::uint32_t>()));
        return;
    case frame_type::loss: {
        auto const peer = frame.number<std::uint32_t>();
        note_loss(rank, peer == launch::local::unknown_peer
                            ? std::nullopt
                            : std::optional(static_cast<int>(peer)));
        return;
    }
    case frame_type::closed:
        note_closed(rank);
        return;
    case frame_type::bad_rank:
        fail(1, fmt::format("{} sent what diomp-run does not understand: {}", name_rank(rank),
                            frame.text()));
        return;
    default:
        fail(1, fmt::format("host {} sent what diomp-run does not understand", from.share.name));
    }
}

void head::on_fence(host &from) {
    if (from.in_fence) {
        fail(1, fmt::format("host {} entered a fence twice", from.share.name));
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
    frame_writer answer(frame_type::value);
    answer.number(owner);
    answer.text(key);
    answer.number(static_cast<std::uint8_t>(value != nullptr ? 1 : 0));
    answer.text(value != nullptr ? *value : "");
    from.link->send(answer.take());
}

void head::on_output(host &from, frame_reader &frame) {
    auto const rank = static_cast<int>(frame.number<std::uint32_t>());
    int const which = frame.number<std::uint8_t>() != 0 ? 1 : 0;
    std::string_view const text = frame.rest();
    if (rank < from.share.first_rank || rank >= from.share.first_rank + from.share.ranks ||
        !options_.output_dir.empty()) {
        return;
    }
    from.unthanked += static_cast<std::uint32_t>(text.size());
    output_->add_text(rank, which, text);
    if (!output_->congested(0) && !output_->congested(1)) {
        thank(from);
    }
}

void head::thank(host &which) {
    if (which.unthanked >= thank_bytes && which.link) {
        which.link->send(small_frame(frame_type::output_taken, which.unthanked));
        which.unthanked = 0;
    }
}

/// The reader of our output has become slower or faster, or has gone.
void head::on_flow() {
    for (int const which : {0, 1}) {
        if (output_->reader_gone(which)) {
            send_to_all(small_frame(frame_type::output_closed, static_cast<std::uint8_t>(which)));
        }
    }
    if (!output_->congested(0) && !output_->congested(1)) {
        for (host &each : hosts_) {
            thank(each);
        }
    }
}

void head::on_exited(int rank, frame_reader &frame) {
    exit_info how;
    how.code = static_cast<int>(frame.number<std::uint32_t>());
    how.signal = static_cast<int>(frame.number<std::uint32_t>());
    how.core_dumped = frame.number<std::uint8_t>() != 0;
    how.reason = frame.text();
    fail_exited(rank, how);
}

void head::on_looked(host &from) {
    if (std::exchange(from.looks, false) && std::ranges::none_of(hosts_, &host::looks)) {
        all_ranks_seen();
    }
}

void head::on_stacks_over(host &from) {
    if (std::exchange(from.shows, false) && std::ranges::none_of(hosts_, &host::shows)) {
        stacks_over();
    }
}

} // namespace diomp::run
