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

/// How long the head may take to close the connection after everything has been said.
constexpr double farewell_s = 10;

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
    while (!over_ || (node_ && !node_->over())) {
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
    auto invitation = read_invitation();
    DIOMP_TRY(invitation);
    invitation_ = invitation.take();
    ignore_signals(invitation_.ignored_signals); // a remote shell passes no dispositions on
    auto connection = connect_to_head(invitation_);
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
                                   std::move(connection.value().proven), invitation_.timeout_s);
    DIOMP_TRY(link);
    head_ = link.take();
    double const interval_s = heartbeat_interval(invitation_.timeout_s);
    auto alive = add_timer(*loop_, [this, interval_s] {
        // What waits already will tell as much.
        if (head_->flushed()) {
            head_->send(small_frame(frame_type::alive));
        }
        alive_->arm(interval_s);
    });
    DIOMP_TRY(alive);
    alive_ = alive.take();
    auto farewell = add_timer(*loop_, [this] { head_->close(); });
    DIOMP_TRY(farewell);
    alive_->arm(interval_s);
    farewell_ = farewell.take();
    return {};
}

void agent::clean_up() {
    // The head counts on being told the truth about what is left.
    bool const clean = !node_ || node_->clean_up();
    if (output_) {
        output_->finish();
    }
    head_->send(small_frame(frame_type::done, static_cast<std::uint8_t>(clean ? 1 : 0)));
    head_->finish_sending();
    farewell_->arm(farewell_s);
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
        // Somebody on this host, or the remote shell's end of the session.
        frame_writer frame(frame_type::start_failed);
        frame.number(static_cast<std::uint8_t>(status_signal_base + signal));
        frame.text(fmt::format("diomp-run on {} (pid {}) got {}",
                               setup_.host.empty() ? launch::host_name() : setup_.host, getpid(),
                               signal_name(signal)));
        head_->send(frame.take());
        over_ = true;
        if (node_ && !ending_) {
            ending_ = true;
            node_->end(SIGTERM, true);
        }
        return;
    }
    default:
        return; // SIGUSR1 and the like come from the head
    }
}

// ---- From the head

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
        if (!over_) {
            report_start(start_ranks());
        }
        return;
    case frame_type::fence_done:
        on_fence_done(frame.number<std::uint8_t>() != 0);
        return;
    case frame_type::value:
        on_value(frame);
        return;
    case frame_type::output_taken:
        if (output_) {
            output_->taken(frame.number<std::uint32_t>());
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
        over_ = true;
        ending_ = true;
        if (node_) {
            node_->end(number, frame.number<std::uint8_t>() != 0);
        }
        return;
    case frame_type::kill:
        over_ = true;
        ending_ = true;
        if (node_) {
            node_->kill();
        }
        return;
    case frame_type::show_stacks:
        if (node_) {
            node_->ask_stacks();
        } else {
            on_stacks_over({});
        }
        return;
    case frame_type::signal:
        if (node_) {
            node_->signal(number);
        }
        return;
    case frame_type::look:
        if (node_) {
            node_->look();
        }
        head_->send(small_frame(frame_type::looked));
        return;
    default:
        std::fprintf(stderr, "diomp-run: unknown frame %d from the head\n", static_cast<int>(type));
    }
}

void agent::on_link_end(frame_link & /*from*/, const std::string & /*why*/) {
    // Nobody is there to hear; without the head there is no job.
    over_ = true;
    if (node_) {
        node_->kill();
    }
}

void agent::on_fence_done(bool forget) {
    if (forget) {
        cache_.clear();
    }
    if (node_) {
        node_->send_to_all(release_packets(held_, forget));
    }
    held_.clear();
}

void agent::on_value(frame_reader &frame) {
    auto const owner = static_cast<int>(frame.number<std::uint32_t>());
    name const key(owner, std::string(frame.text()));
    bool const found = frame.number<std::uint8_t>() != 0;
    std::string const value(frame.text());
    if (found) {
        cache_.insert_or_assign(key, value);
    }
    auto const waiting = asked_.extract(key);
    if (!waiting.empty() && node_) {
        for (int const rank : waiting.mapped()) {
            node_->send(rank, value_packet(found ? &value : nullptr));
        }
    }
}

// ---- From the ranks

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
        held_ = exchange_->take_entries();
        for (const std::string &frame : entry_frames(held_)) {
            head_->send(frame);
        }
        head_->send(small_frame(frame_type::fence));
    }
}

void agent::on_get(int rank, int owner, std::string key) {
    name wanted(owner, std::move(key));
    if (auto const known = cache_.find(wanted); known != cache_.end()) {
        node_->send(rank, value_packet(&known->second));
        return;
    }
    auto const [place, is_new] = asked_.try_emplace(std::move(wanted));
    place->second.push_back(rank);
    if (is_new) {
        frame_writer frame(frame_type::get);
        frame.number(static_cast<std::uint32_t>(owner));
        frame.text(place->first.second);
        head_->send(frame.take());
    }
}

void agent::on_abort(int rank, int code) { send_abort(frame_type::aborted, rank, code); }

void agent::on_give_up(int rank, int code) { send_abort(frame_type::gave_up, rank, code); }

void agent::send_abort(frame_type type, int rank, int code) {
    node_->look_for_killed(rank);
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
    node_->look_for_stacks();
}

void agent::on_stacks_over(const std::vector<std::string> &silent) {
    for (const std::string &sentence : silent) {
        frame_writer frame(frame_type::message);
        frame.text(sentence);
        head_->send(frame.take());
    }
    head_->send(small_frame(frame_type::stacks_over));
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
    if (node_->over()) {
        over_ = true;
    }
}

} // namespace diomp::run
