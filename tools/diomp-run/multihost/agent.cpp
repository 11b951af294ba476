// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "agent.h"

#include "base/standard_descriptors.h"
#include "head_connection.h"
#include "launch/host.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

namespace diomp::run {
namespace {

namespace local = launch::local;

/// Limit for the head to close the connection after the agent has sent its last frame.
constexpr double shutdown_limit_s = 10;

std::vector<shared_packet> value_packet(const std::string *value) {
    frame_writer packet(local::packet_type::value);
    packet.number(static_cast<std::uint8_t>(value != nullptr ? 1 : 0));
    packet.text(value != nullptr ? *value : "");
    return {std::make_shared<const std::string>(packet.take())};
}

} // namespace

agent::agent() = default;
agent::~agent() = default;

int run_agent() { return agent().run(); }

int agent::run() {
    if (auto ready = set_up(); !ready) {
        std::fprintf(stderr, "diomp-run: %s\n", describe(ready.failure()).c_str());
        return 1;
    }
    while (!stopping_ || (node_ && !node_->finished())) {
        if (!loop_->run_once()) {
            break;
        }
    }
    bool const served = head_->is_open();
    clean_up();
    while (head_->is_open() && loop_->run_once()) {
    }
    return served ? 0 : 1;
}

status agent::set_up() {
    fill_standard_descriptors();
    auto bootstrap = read_bootstrap();
    DIOMP_TRY(bootstrap);
    bootstrap_ = bootstrap.take();
    ignore_signals(bootstrap_.ignored_signals); // a remote shell does not pass dispositions on
    auto connection = connect_to_head(bootstrap_);
    DIOMP_TRY(connection);
    unique_fd const null(open("/dev/null", O_RDONLY | O_CLOEXEC));
    dup2(null.get(), STDIN_FILENO);
    auto loop = event_loop::create();
    DIOMP_TRY(loop);
    loop_ = std::make_unique<event_loop>(loop.take());
    auto signals =
        signal_port::create(*loop_, [this](const signalfd_siginfo &info) { on_signal(info); });
    DIOMP_TRY(signals);
    signals_ = signals.take();
    auto link = frame_link::create(*loop_, *this, std::move(connection.value().socket),
                                   std::move(connection.value().proven), bootstrap_.timeout_s);
    DIOMP_TRY(link);
    head_ = link.take();
    double const interval_s = heartbeat_interval(bootstrap_.timeout_s);
    auto alive = add_timer(*loop_, [this, interval_s] {
        // A queued frame serves as a heartbeat too.
        if (head_->flushed()) {
            head_->send(small_frame(frame_type::alive));
        }
        alive_->arm(interval_s);
    });
    DIOMP_TRY(alive);
    alive_ = alive.take();
    auto shutdown_timer = add_timer(*loop_, [this] { head_->close(); });
    DIOMP_TRY(shutdown_timer);
    alive_->arm(interval_s);
    shutdown_timer_ = shutdown_timer.take();
    return {};
}

void agent::clean_up() {
    // `done` reports whether processes are left, so the clean-up comes first.
    bool const clean = !node_ || node_->clean_up();
    if (output_) {
        output_->finish();
    }
    head_->send(small_frame(frame_type::done, static_cast<std::uint8_t>(clean ? 1 : 0)));
    head_->finish_sending();
    shutdown_timer_->arm(shutdown_limit_s);
}

void agent::on_signal(const signalfd_siginfo &info) {
    auto const signal = static_cast<int>(info.ssi_signo);
    switch (signal) {
    case SIGCHLD:
        if (node_) {
            node_->reap(static_cast<pid_t>(info.ssi_pid));
        }
        return;
    case SIGINT:
    case SIGTERM:
    case SIGHUP:
    case SIGQUIT: {
        // Sent by a user of this host, or by the remote shell when its session ends.
        frame_writer frame(frame_type::start_failed);
        frame.number(static_cast<std::uint8_t>(status_signal_base + signal));
        frame.text(fmt::format("diomp-run on {} (pid {}) got {}",
                               setup_.block.name.empty() ? launch::host_name() : setup_.block.name,
                               getpid(), signal_name(signal)));
        head_->send(frame.take());
        stopping_ = true;
        if (node_ && !termination_sent_) {
            termination_sent_ = true;
            node_->terminator().end(SIGTERM, true);
        }
        return;
    }
    default:
        return; // the head forwards SIGUSR1 and similar signals
    }
}

// ---- Frames from the head

void agent::on_frame(frame_link & /*from*/, std::string_view bytes) {
    frame_reader frame(bytes);
    auto const type = frame.type<frame_type>();
    switch (type) {
    case frame_type::setup: {
        auto setup = decode_setup(frame);
        report_start(setup ? prepare(setup.take()) : status(setup.take_failure()));
        return;
    }
    case frame_type::go:
        if (!stopping_) {
            report_start(start_ranks());
        }
        return;
    case frame_type::fence_done:
        on_fence_done(frame.number<std::uint8_t>() != 0);
        return;
    case frame_type::value:
        on_value(frame);
        return;
    case frame_type::output_ack:
        if (output_) {
            output_->on_ack(frame.number<std::uint32_t>());
        }
        return;
    case frame_type::output_closed:
        if (output_) {
            output_->close(frame.number<std::uint8_t>());
        }
        return;
    case frame_type::input:
        if (input_) {
            input_->add(frame.rest());
        }
        return;
    default:
        on_control_frame(type, frame);
    }
}

void agent::on_control_frame(frame_type type, frame_reader &frame) {
    auto const number = static_cast<int>(frame.number<std::uint8_t>());
    switch (type) {
    case frame_type::end:
        stopping_ = true;
        termination_sent_ = true;
        if (node_) {
            node_->terminator().end(number, frame.number<std::uint8_t>() != 0);
        }
        return;
    case frame_type::kill:
        stopping_ = true;
        termination_sent_ = true;
        if (node_) {
            node_->terminator().kill();
        }
        return;
    case frame_type::show_stacks:
        if (node_) {
            node_->stacks().request();
        } else {
            on_stacks_done({});
        }
        return;
    case frame_type::signal:
        if (node_) {
            node_->terminator().signal(number);
        }
        return;
    case frame_type::poll:
        if (node_) {
            node_->poll();
        }
        head_->send(small_frame(frame_type::polled));
        return;
    default:
        std::fprintf(stderr, "diomp-run: unknown frame %d from the head\n", static_cast<int>(type));
    }
}

void agent::on_disconnect(frame_link & /*from*/, const std::string & /*why*/) {
    // The job cannot go on without the head.
    stopping_ = true;
    if (node_) {
        node_->terminator().kill();
    }
}

void agent::on_fence_done(bool invalidate) {
    if (invalidate) {
        cache_.clear();
    }
    if (node_) {
        node_->send_to_all(release_packets(deferred_entries_, invalidate));
    }
    deferred_entries_.clear();
}

void agent::on_value(frame_reader &frame) {
    auto const owner = static_cast<int>(frame.number<std::uint32_t>());
    value_key const key(owner, std::string(frame.text()));
    bool const found = frame.number<std::uint8_t>() != 0;
    std::string const value(frame.text());
    if (found) {
        cache_.insert_or_assign(key, value);
    }
    auto const waiting = pending_gets_.extract(key);
    if (!waiting.empty() && node_) {
        for (int const rank : waiting.mapped()) {
            node_->send(rank, value_packet(found ? &value : nullptr));
        }
    }
}

// ---- Packets from the ranks

void agent::send_rank(frame_type type, int rank) {
    head_->send(small_frame(type, static_cast<std::uint32_t>(rank),
                            static_cast<std::uint32_t>(node_->pid(rank))));
}

void agent::on_hello(int rank, pid_t /*pid*/) { send_rank(frame_type::joined, rank); }

void agent::on_finalize(int rank) { send_rank(frame_type::finalized, rank); }

void agent::on_entries(int /*rank*/, std::vector<local::entry> entries) {
    exchange_->add(std::move(entries));
}

void agent::on_fence(int rank) {
    auto const complete = exchange_->enter_fence(rank);
    if (!complete) {
        on_protocol_error(rank, complete.failure().message());
    } else if (complete.value()) {
        deferred_entries_ = exchange_->take_entries();
        for (const std::string &frame : entry_frames(deferred_entries_)) {
            head_->send(frame);
        }
        head_->send(small_frame(frame_type::fence));
    }
}

void agent::on_get(int rank, int owner, std::string key) {
    value_key wanted(owner, std::move(key));
    if (auto const known = cache_.find(wanted); known != cache_.end()) {
        node_->send(rank, value_packet(&known->second));
        return;
    }
    auto const [item, is_new] = pending_gets_.try_emplace(std::move(wanted));
    item->second.push_back(rank);
    if (is_new) {
        frame_writer frame(frame_type::get);
        frame.number(static_cast<std::uint32_t>(owner));
        frame.text(item->first.second);
        head_->send(frame.take());
    }
}

void agent::on_abort(int rank, int code) { send_abort(frame_type::aborted, rank, code); }

void agent::on_give_up(int rank, int code) { send_abort(frame_type::gave_up, rank, code); }

void agent::send_abort(frame_type type, int rank, int code) {
    node_->handle_killed(rank);
    if (output_) {
        output_->collect(rank);
    }
    head_->send(small_frame(type, static_cast<std::uint32_t>(rank),
                            static_cast<std::uint32_t>(node_->pid(rank)),
                            static_cast<std::uint32_t>(code)));
}

void agent::on_loss(int rank, std::optional<int> peer) {
    head_->send(small_frame(frame_type::loss, static_cast<std::uint32_t>(rank),
                            static_cast<std::uint32_t>(node_->pid(rank)),
                            peer ? static_cast<std::uint32_t>(*peer) : local::unknown_peer));
}

void agent::on_closed(int rank) { send_rank(frame_type::closed, rank); }

void agent::on_stacks_shown(int rank) {
    if (output_) {
        output_->collect(rank);
    }
    node_->stacks().check();
}

void agent::on_stacks_done(const std::vector<std::string> &silent) {
    for (const std::string &sentence : silent) {
        frame_writer frame(frame_type::message);
        frame.text(sentence);
        head_->send(frame.take());
    }
    head_->send(small_frame(frame_type::stacks_done));
}

void agent::on_protocol_error(int rank, const std::string &what) {
    frame_writer frame(frame_type::bad_rank);
    frame.number(static_cast<std::uint32_t>(rank));
    frame.number(static_cast<std::uint32_t>(node_->pid(rank)));
    frame.text(what);
    head_->send(frame.take());
}

void agent::on_exit(int rank, const exit_info &how) {
    if (output_) {
        output_->collect(rank);
    }
    frame_writer frame(frame_type::exited);
    for (int const number : {rank, node_->pid(rank), how.code, how.signal}) {
        frame.number(static_cast<std::uint32_t>(number));
    }
    frame.number(static_cast<std::uint8_t>(how.core_dumped ? 1 : 0));
    frame.text(how.reason);
    head_->send(frame.take());
    if (node_->finished()) {
        stopping_ = true;
    }
}

} // namespace diomp::run
