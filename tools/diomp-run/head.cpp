// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "head.h"

#include "node.h"
#include "strays.h"

#include <fmt/format.h>

#include <algorithm>
#include <sys/epoll.h>
#include <sys/wait.h>

namespace diomp::run {
namespace {

/// How much longer than its agents, which do the killing, the head waits at the end.
constexpr double patience_s = 3;
/// Time for remote shells to end after their agents have.
constexpr double shell_limit_s = 1;
/// For an agent to connect, at least: a log-in takes its time, however short DIOMP_TIMEOUT is.
constexpr double min_start_limit_s = 10;
/// For a connection to prove who it is.

} // namespace

const head::host &head::host_of(int rank) const {
    auto const after = std::ranges::upper_bound(
        hosts_, rank, {}, [](const host &each) { return each.share.first_rank; });
    return *(after - 1);
}

std::string head::name_rank(int rank) const {
    pid_t const pid = pids_[static_cast<std::size_t>(rank)];
    return fmt::format("rank {} on {} ({}{})", rank, host_of(rank).share.name,
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
    which.heard = clock::now();
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
                                         which.share.name));
        }
        leave(which);
        return;
    default:
        on_rank_frame(which, type, frame);
    }
}

void head::on_link_end(frame_link &from, const std::string &why) {
    host &which = hosts_[static_cast<std::size_t>(from.tag)];
    fail(1,
         fmt::format("lost host {} (ranks {} to {}): {}", which.share.name, which.share.first_rank,
                     which.share.first_rank + which.share.ranks - 1, why));
    leave(which);
}

/// Nothing more is expected of this host.
void head::leave(host &which) {
    if (which.at == stage::gone) {
        return;
    }
    starting_ -= which.at == stage::starting ? 1 : 0;
    which.at = stage::gone;
    on_stacks_over(which);
    on_looked(which);
    if (which.link) {
        which.link->close();
    }
    if (--remaining_ == 0) {
        deadline_->arm(shell_limit_s);
    }
}

void head::on_tick() {
    double const interval_s = heartbeat_interval(lost_after_s_);
    auto const time = clock::now();
    auto const limit = std::chrono::duration<double>(lost_after_s_);
    double const start_limit_s = std::max(lost_after_s_, min_start_limit_s);
    // If this process has slept itself (SIGSTOP, a laptop), silence means nothing yet.
    bool const awake = time - last_tick_ < std::chrono::duration<double>(2 * interval_s + 1);
    last_tick_ = time;
    for (host &each : hosts_) {
        bool const silent = time - each.heard > limit;
        if (!awake) {
            each.heard = time;
        } else if (each.at == stage::starting) {
            if (time - each.heard <= std::chrono::duration<double>(start_limit_s)) {
                continue;
            }
            fail_start(
                1,
                error(OMPX_ERR_TIMEOUT,
                      fmt::format(
                          "host {}: diomp-run there has not connected to {} port {} within {} s; "
                          "check that `{} {} true` works and that no firewall is between, or "
                          "choose the address with --head-address",
                          each.share.name, addresses_.front().first, addresses_.front().second,
                          start_limit_s, options_.remote_shell, each.share.name)));
            leave(each);
        } else if (silent && each.at != stage::waiting && each.at != stage::gone) {
            fail(1, fmt::format("lost host {} (ranks {} to {}): no word from it for {} s "
                                "(DIOMP_TIMEOUT)",
                                each.share.name, each.share.first_rank,
                                each.share.first_rank + each.share.ranks - 1, lost_after_s_));
            leave(each);
        }
    }
    tick_->arm(interval_s);
}

// ---- Ending

bool head::over() const { return gave_up_ || (remaining_ == 0 && shells_ == 0); }

void head::end_ranks(int signal, bool tell) {
    send_to_all(small_frame(frame_type::end, static_cast<std::uint8_t>(signal),
                            static_cast<std::uint8_t>(tell ? 1 : 0)));
    deadline_->arm(grace_s + kill_limit_s + patience_s);
    for (host &each : hosts_) {
        if (each.at == stage::waiting || each.at == stage::starting) {
            leave(each);
        }
    }
}

void head::kill_ranks() {
    send_to_all(small_frame(frame_type::kill));
    deadline_->arm(kill_limit_s + patience_s);
    for (host &each : hosts_) {
        if (each.at == stage::waiting || each.at == stage::starting) {
            leave(each);
        }
    }
    if (remaining_ == 0) {
        deadline_->arm(shell_limit_s);
    }
}

void head::ask_stacks() {
    for (host &each : hosts_) {
        each.shows = each.at == stage::running;
        if (each.shows) {
            each.link->send(small_frame(frame_type::show_stacks));
        }
    }
    if (std::ranges::none_of(hosts_, &host::shows)) {
        stacks_over();
    }
}

void head::look_at_ranks() {
    for (host &each : hosts_) {
        each.looks = each.at == stage::running;
        if (each.looks) {
            each.link->send(small_frame(frame_type::look));
        }
    }
    if (std::ranges::none_of(hosts_, &host::looks)) {
        all_ranks_seen();
    }
}

void head::signal_ranks(int signal) {
    send_to_all(small_frame(frame_type::signal, static_cast<std::uint8_t>(signal)));
}

void head::on_deadline() {
    for (const host &each : hosts_) {
        if (each.at != stage::gone) {
            output_->message(
                fmt::format("host {} does not answer; processes of the job may be left "
                            "there",
                            each.share.name));
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
    // They refer to the loop.
    input_.reset();
    pending_.reset();
    hosts_.clear();
}

} // namespace diomp::run
