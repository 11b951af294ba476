// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "head.h"

#include "core/node.h"
#include "core/orphans.h"

#include <fmt/format.h>

#include <algorithm>
#include <sys/epoll.h>
#include <sys/wait.h>

namespace diomp::run {
namespace {

/// Extra time for the agents, which kill the ranks, before the head gives up.
constexpr double agent_margin_s = 3;
/// Time for remote shells to end after their agents.
constexpr double shell_limit_s = 1;
/// Minimum time for an agent to connect: a log-in takes time, however short DIOMP_TIMEOUT is.
constexpr double min_start_limit_s = 10;

} // namespace

const head::host &head::host_of(int rank) const {
    auto const after = std::ranges::upper_bound(
        hosts_, rank, {}, [](const host &each) { return each.block.first_rank; });
    return *(after - 1);
}

std::string head::describe_rank(int rank) const {
    pid_t const pid = pids_[static_cast<std::size_t>(rank)];
    return fmt::format("rank {} on {} ({}{})", rank, host_of(rank).block.name,
                       pid > 0 ? fmt::format("pid {}, ", pid) : "", options_.command.front());
}

void head::send_to_all(std::string_view frame) {
    for (host &each : hosts_) {
        if (each.link) {
            each.link->send(frame);
        }
    }
}

// ---- Connections

void head::on_frame(frame_link &from, std::string_view bytes) {
    frame_reader frame(bytes);
    host &which = hosts_[static_cast<std::size_t>(from.tag)];
    which.last_received = clock::now();
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

void head::on_disconnect(frame_link &from, const std::string &why) {
    host &which = hosts_[static_cast<std::size_t>(from.tag)];
    fail(1,
         fmt::format("lost host {} (ranks {} to {}): {}", which.block.name, which.block.first_rank,
                     which.block.first_rank + which.block.ranks - 1, why));
    mark_gone(which);
}

/// Ends the waiting for this host: its agent is done or lost.
void head::mark_gone(host &which) {
    if (which.state == stage::gone) {
        return;
    }
    starting_ -= which.state == stage::starting ? 1 : 0;
    which.state = stage::gone;
    on_stacks_done(which);
    on_polled(which);
    if (which.link) {
        which.link->close();
    }
    if (--remaining_ == 0) {
        deadline_->arm(shell_limit_s);
    }
}

void head::on_tick() {
    double const interval_s = heartbeat_interval(peer_timeout_s_);
    auto const time = clock::now();
    auto const limit = std::chrono::duration<double>(peer_timeout_s_);
    double const start_limit_s = std::max(peer_timeout_s_, min_start_limit_s);
    // If this process was stopped itself (SIGSTOP, suspend), silence does not mean a lost host.
    bool const awake = time - last_tick_ < std::chrono::duration<double>(2 * interval_s + 1);
    last_tick_ = time;
    for (host &each : hosts_) {
        bool const silent = time - each.last_received > limit;
        if (!awake) {
            each.last_received = time;
        } else if (each.state == stage::starting) {
            if (time - each.last_received <= std::chrono::duration<double>(start_limit_s)) {
                continue;
            }
            fail_start(
                1,
                error(OMPX_ERR_TIMEOUT,
                      fmt::format(
                          "host {}: diomp-run there has not connected to {} port {} within {} s; "
                          "check that `{} {} true` works and that no firewall is between, or "
                          "choose the address with --head-address",
                          each.block.name, addresses_.front().first, addresses_.front().second,
                          start_limit_s, options_.hosts.remote_shell, each.block.name)));
            mark_gone(each);
        } else if (silent && each.state != stage::waiting && each.state != stage::gone) {
            fail(1, fmt::format("lost host {} (ranks {} to {}): no word from it for {} s "
                                "(DIOMP_TIMEOUT)",
                                each.block.name, each.block.first_rank,
                                each.block.first_rank + each.block.ranks - 1, peer_timeout_s_));
            mark_gone(each);
        }
    }
    tick_->arm(interval_s);
}

// ---- Ending

bool head::finished() const { return gave_up_ || (remaining_ == 0 && shells_ == 0); }

void head::end_ranks(int signal, bool notify) {
    send_to_all(small_frame(frame_type::end, static_cast<std::uint8_t>(signal),
                            static_cast<std::uint8_t>(notify ? 1 : 0)));
    deadline_->arm(grace_s + kill_limit_s + agent_margin_s);
    for (host &each : hosts_) {
        if (each.state == stage::waiting || each.state == stage::starting) {
            mark_gone(each);
        }
    }
}

void head::kill_ranks() {
    send_to_all(small_frame(frame_type::kill));
    deadline_->arm(kill_limit_s + agent_margin_s);
    for (host &each : hosts_) {
        if (each.state == stage::waiting || each.state == stage::starting) {
            mark_gone(each);
        }
    }
    if (remaining_ == 0) {
        deadline_->arm(shell_limit_s);
    }
}

void head::request_stacks() {
    for (host &each : hosts_) {
        each.stacks_pending = each.state == stage::running;
        if (each.stacks_pending) {
            each.link->send(small_frame(frame_type::show_stacks));
        }
    }
    if (std::ranges::none_of(hosts_, &host::stacks_pending)) {
        end_->on_stacks_done();
    }
}

void head::poll_ranks() {
    for (host &each : hosts_) {
        each.poll_pending = each.state == stage::running;
        if (each.poll_pending) {
            each.link->send(small_frame(frame_type::poll));
        }
    }
    if (std::ranges::none_of(hosts_, &host::poll_pending)) {
        failures_->on_polled();
    }
}

void head::signal_ranks(int signal) {
    send_to_all(small_frame(frame_type::signal, static_cast<std::uint8_t>(signal)));
}

void head::on_deadline() {
    for (const host &each : hosts_) {
        if (each.state != stage::gone) {
            output_->message(
                fmt::format("host {} does not answer; processes of the job may be left "
                            "there",
                            each.block.name));
        }
    }
    gave_up_ = true;
}

void head::on_child(pid_t pid) {
    bool const ours = pid == guard_->pid() || std::ranges::any_of(hosts_, [pid](const host &each) {
                          return each.shell.pid() == pid;
                      });
    if (!ours) {
        waitpid(pid, nullptr, WNOHANG);
    }
}

void head::on_continued() {
    if (ready_ == hosts_.size()) {
        input_->resume();
    }
}

void head::clean_up() {
    for (const host &each : hosts_) {
        if (each.shell.pid() > 0) {
            ::kill(-each.shell.pid(), SIGKILL);
        }
    }
    if (!kill_and_reap_children(guard_->pid(), kill_limit_s)) {
        output_->message("some remote shells do not end, not even by SIGKILL");
    }
    guard_->dismiss();
    for (const host &each : hosts_) {
        if (each.shell.pid() > 0) {
            output_->collect_pipe(each.shell_output);
        }
    }
    // These members refer to the event loop.
    input_.reset();
    pending_.reset();
    hosts_.clear();
}

} // namespace diomp::run
