// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "agent.h"

#include "base/standard_descriptors.h"
#include "head_connection.h"
#include "launch/host.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace diomp::run {

namespace local = launch::local;

agent::agent() = default;
agent::~agent() = default;

int run_agent() { return agent().run(); }

int agent::run() {
    if (auto ready = set_up(); !ready) {
        std::fprintf(stderr, "diomp-run: %s\n", describe(ready.failure()).c_str());
        return 1;
    }
    while (phase_ == phase::serving || (node_ && !node_->finished())) {
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
    index_ = bootstrap.value().index;
    // A remote shell does not pass dispositions on.
    ignore_signals(bootstrap.value().ignored_signals);
    auto connection = connect_to_head(bootstrap.value());
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
    auto link = head_link::create(*loop_, *this, connection.take(), bootstrap.value().timeout_s);
    DIOMP_TRY(link);
    head_ = link.take();
    return {};
}

void agent::clean_up() {
    // `done` reports whether processes are left, so the clean-up comes first.
    bool const clean = !node_ || node_->clean_up();
    if (output_) {
        output_->finish();
    }
    head_->finish(clean);
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
    case SIGQUIT:
        // Sent by a user of this host, or by the remote shell when its session ends.
        head_->send_failure(
            status_signal_base + signal,
            fmt::format("diomp-run on {} (pid {}) got {}",
                        setup_.block.name.empty() ? launch::host_name() : setup_.block.name,
                        getpid(), signal_name(signal)));
        if (!node_) {
            stop();
        } else if (std::exchange(phase_, phase::ending) != phase::ending) {
            node_->terminator().end(SIGTERM, true);
        }
        return;
    default:
        return; // the head forwards SIGUSR1 and similar signals
    }
}

// ---- Start of the ranks

/// Checks and prepares what the ranks need, so that no rank starts on any host if something is
/// missing.
status agent::prepare(agent_setup setup, int &exit_status) {
    setup_ = std::move(setup);
    plan_.common.open_files =
        raise_open_files(static_cast<std::size_t>(setup_.block.ranks) * 8 + 64);
    std::string const mark = fmt::format("{}={}:{}", local::node_variable, setup_.job_id, index_);
    auto made = node::create(*loop_, *this, mark);
    DIOMP_TRY(made);
    node_ = made.take();
    if (chdir(setup_.directory.c_str()) != 0) {
        return system_error("cannot work in the directory " + setup_.directory, errno);
    }
    const char *const own_path = std::getenv("PATH");
    plan_.first_rank = setup_.block.first_rank;
    plan_.ranks = setup_.block.ranks;
    plan_.world_size = static_cast<int>(setup_.world_size);
    plan_.job_id = setup_.job_id;
    plan_.host = setup_.block.name;
    plan_.remote_devices = setup_.remote_devices;
    plan_.common.arguments = setup_.command;
    plan_.common.signals = signals_->original();
    DIOMP_TRY(complete_plan(
        plan_, setup_.search_path + (own_path != nullptr ? fmt::format(":{}", own_path) : ""),
        setup_.bind, setup_.environment, exit_status));
    plan_.common.environment.push_back(mark);
    DIOMP_TRY(make_output_directory(setup_.output_dir));
    exchange_ = std::make_unique<agent_exchange>(*head_, *node_, setup_.block);
    if (setup_.output_dir.empty()) {
        output_ = std::make_unique<output_relay>(
            *loop_, plan_.first_rank, [this](int rank, int which, std::string_view text) {
                frame_writer frame(frame_type::output);
                frame.number(static_cast<std::uint32_t>(rank));
                frame.number(static_cast<std::uint8_t>(which));
                frame.bytes(text);
                head_->send(frame.take());
            });
    }
    head_->send(small_frame(frame_type::ready));
    return {};
}

status agent::start_ranks() {
    if (!exchange_ || plan_.ranks == 0) {
        return error(OMPX_ERR_SYSTEM, "the head has sent go before setup");
    }
    DIOMP_TRY(node_->start(std::move(plan_), *exchange_,
                           [this](int rank) { return open_descriptors(rank); }));
    for (int rank = node_->plan().first_rank;
         setup_.verbose && rank < node_->plan().first_rank + node_->plan().ranks; ++rank) {
        head_->send_message(node_->describe_placement(rank));
    }
    return {};
}

result<rank_descriptors> agent::open_descriptors(int rank) {
    rank_descriptors descriptors;
    if (rank == 0) {
        auto made = input_pipe::create(*loop_, descriptors.in, [this](std::size_t bytes) {
            head_->send(small_frame(frame_type::input_ack, static_cast<std::uint32_t>(bytes)));
        });
        DIOMP_TRY(made);
        input_ = made.take();
    } else {
        descriptors.in = unique_fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
    }
    auto ends = output_ ? output_->open_pipes(rank) : open_output_files(rank, setup_.output_dir);
    DIOMP_TRY(ends);
    descriptors.out = std::move(ends.value().out);
    descriptors.err = std::move(ends.value().err);
    return descriptors;
}

void agent::report_failure(int exit_status, const error &why) {
    head_->send_failure(exit_status, fmt::format("{}: {}", setup_.block.name, describe(why)));
}

void agent::on_start_failure(int /*rank*/, const error &why) {
    report_failure(status_cannot_execute, why);
    if (node_->finished()) {
        stop();
    }
}

// ---- Frames from the head

void agent::on_frame(frame_link & /*from*/, std::string_view bytes) {
    frame_reader frame(bytes);
    auto const type = frame.type<frame_type>();
    switch (type) {
    case frame_type::setup: {
        auto setup = decode_setup(frame);
        int exit_status = 1;
        status const ready = setup ? prepare(setup.take(), exit_status) : setup.take_failure();
        if (!ready) {
            report_failure(exit_status, ready.failure());
        }
        return;
    }
    case frame_type::go:
        if (phase_ == phase::serving) {
            if (auto const started = start_ranks(); !started) {
                report_failure(1, started.failure());
            }
        }
        return;
    case frame_type::fence_done:
        if (exchange_) {
            exchange_->on_fence_done(frame.number<std::uint8_t>() != 0);
        }
        return;
    case frame_type::value:
        if (exchange_) {
            exchange_->on_value(frame);
        }
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
        phase_ = phase::ending;
        if (node_) {
            node_->terminator().end(number, frame.number<std::uint8_t>() != 0);
        }
        return;
    case frame_type::kill:
        phase_ = phase::ending;
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
            node_->terminator().forward(number);
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
    stop();
    if (node_) {
        node_->terminator().kill();
    }
}

// ---- Packets from the ranks

void agent::send_rank(frame_type type, int rank) {
    head_->send(small_frame(type, static_cast<std::uint32_t>(rank),
                            static_cast<std::uint32_t>(node_->pid(rank))));
}

void agent::on_hello(int rank, pid_t /*pid*/) { send_rank(frame_type::joined, rank); }

void agent::on_finalize(int rank) { send_rank(frame_type::finalized, rank); }

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
        head_->send_message(sentence);
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
        stop();
    }
}

} // namespace diomp::run
