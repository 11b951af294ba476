// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "head.h"

#include "core/rank_terminator.h"
#include "launch/openmp_files.h"

#include <fmt/format.h>

#include <optional>
#include <sys/wait.h>

namespace diomp::run {
namespace {

/// Extra time for the agents, which kill the ranks, before the head gives up.
constexpr double agent_margin_s = 3;
/// Time for remote shells to end after their agents.
constexpr double shell_limit_s = 1;

} // namespace

std::string head::describe_rank(int rank) const {
    return hosts_.describe_rank(rank, options_.command.front());
}

// ---- Connections

void head::on_frame(frame_link &from, std::string_view bytes) {
    frame_reader frame(bytes);
    host &which = hosts_[static_cast<std::size_t>(from.tag)];
    which.last_received = std::chrono::steady_clock::now();
    auto const type = frame.type<frame_type>();
    switch (type) {
    case frame_type::alive:
        return;
    case frame_type::ready:
        on_ready(which);
        return;
    case frame_type::start_failed: {
        int const exit_status = frame.number<std::uint8_t>();
        fail_start(exit_status, error(OMPX_ERR_SYSTEM, std::string(frame.text())));
        return;
    }
    case frame_type::message:
        output_->message(std::string(frame.text()));
        return;
    case frame_type::done:
        if (frame.number<std::uint8_t>() == 0) {
            output_->message(fmt::format("some processes of the job on {} do not end, not even by "
                                         "SIGKILL",
                                         which.block.name));
        }
        mark_gone(which);
        return;
    default:
        on_rank_frame(which, type, frame);
    }
}

void head::on_rank_frame(host &from, frame_type type, frame_reader &frame) {
    switch (type) {
    case frame_type::fence:
        if (auto const entered = exchange_.on_fence(from); !entered) {
            fail(1, entered.failure().message());
        }
        if (exchange_.is_waiting()) {
            failures_->on_fence([this] { return exchange_.describe_late(); });
        } else {
            failures_->on_fence_done();
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

void head::on_disconnect(frame_link &from, const std::string &why) {
    lose(hosts_[static_cast<std::size_t>(from.tag)], why);
}

void head::lose(host &which, const std::string &why) {
    fail(1, fmt::format("lost host {}: {}", which.describe(), why));
    mark_gone(which);
}

void head::fail_host_start(host &which, const error &why) {
    fail_start(1, why);
    mark_gone(which);
}

/// Ends the waiting for this host: its agent is done or lost.
void head::mark_gone(host &which) {
    if (which.stage == host_stage::gone) {
        return;
    }
    hosts_.enter(which, host_stage::gone);
    stacks_.on_reply(which);
    polls_.on_reply(which);
    if (which.link) {
        which.link->close();
    }
    if (hosts_.all_are(host_stage::gone)) {
        deadline_->arm(shell_limit_s);
    }
}

void head::mark_unstarted_gone() {
    for (host &each : hosts_) {
        if (each.stage == host_stage::waiting || each.stage == host_stage::starting) {
            mark_gone(each);
        }
    }
}

void head::on_silent(host &which, double limit_s) {
    if (which.stage != host_stage::starting) {
        lose(which, fmt::format("no word from it for {} s (DIOMP_TIMEOUT)", limit_s));
        return;
    }
    fail_host_start(
        which,
        error(OMPX_ERR_TIMEOUT,
              fmt::format("host {}: diomp-run there has not connected to {} within {} s; check "
                          "that `{} {} true` works and that no firewall is between, or choose "
                          "the address with --head-address",
                          which.block.name, listener_->describe(), limit_s,
                          options_.hosts.remote_shell, which.block.name)));
}

// ---- Ending

bool head::finished() const {
    return gave_up_ || (hosts_.all_are(host_stage::gone) && launcher_->running() == 0);
}

void head::end_ranks(int signal, bool notify) {
    hosts_.send_to_all(small_frame(frame_type::end, static_cast<std::uint8_t>(signal),
                                   static_cast<std::uint8_t>(notify ? 1 : 0)));
    deadline_->arm(grace_s + kill_limit_s + agent_margin_s);
    mark_unstarted_gone();
}

void head::kill_ranks() {
    hosts_.send_to_all(small_frame(frame_type::kill));
    deadline_->arm(kill_limit_s + agent_margin_s);
    mark_unstarted_gone();
    if (hosts_.all_are(host_stage::gone)) {
        deadline_->arm(shell_limit_s);
    }
}

void head::signal_ranks(int signal) {
    hosts_.send_to_all(small_frame(frame_type::signal, static_cast<std::uint8_t>(signal)));
}

void head::on_deadline() {
    for (const host &each : hosts_) {
        if (each.stage != host_stage::gone) {
            output_->message(
                fmt::format("host {} does not answer; processes of the job may be left "
                            "there",
                            each.block.name));
        }
    }
    gave_up_ = true;
}

void head::on_child(pid_t pid) {
    if (!launcher_->owns(pid)) {
        launch::reap_child(pid, nullptr, WNOHANG);
    }
}

void head::on_continued() {
    if (hosts_.count(host_stage::running) > 0) {
        input_->resume();
    }
}

void head::clean_up() {
    launcher_->clean_up();
    // These members refer to the event loop.
    input_.reset();
    listener_.reset();
    hosts_.clear();
}

} // namespace diomp::run
