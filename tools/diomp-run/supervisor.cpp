// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "supervisor.h"

#include "base/standard_descriptors.h"
#include "launch/host.h"
#include "listener.h"
#include "node.h"
#include "program.h"
#include "program_regions.h"
#include "rank_environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <utility>

namespace diomp::run {
namespace {

/// For a service to listen, at least: a log-in takes its time, however short DIOMP_TIMEOUT is.
constexpr double min_services_limit_s = 10;
/// How much longer than its nodes, which ask the ranks, the supervisor waits for stacks.
constexpr double stacks_patience_s = 0.5;
/// How long a consequence waits for its cause at least, and how long for ranks that are seen to be
/// ending and for hosts that have not reported. The job then has about two seconds to end.
constexpr double short_patience_s = 0.25;
constexpr double long_patience_s = 2;

} // namespace

supervisor::supervisor(run_options options)
    : options_(std::move(options)), host_(launch::host_name()), job_id_(launch::make_job_id(host_)),
      attendance_(options_.ranks), causes_(options_.ranks) {}

supervisor::~supervisor() = default;

int supervisor::run() {
    auto ready = set_up_common();
    if (ready.ok()) {
        ready = set_up();
    }
    if (!ready) {
        std::fprintf(stderr, "diomp-run: %s\n", describe(ready.failure()).c_str());
        return 1;
    }
    if (options_.timeout_s > 0) {
        timeout_->arm(options_.timeout_s); // which includes the start
    }
    auto started = start_services();
    if (started && phase_ == phase::running) {
        started = start();
    }
    if (!started) {
        fail_start(exit_status_.value_or(1), started.failure());
        kill();
    }
    while (!over()) {
        if (auto handled = loop_->run_once(); !handled) {
            fail(1, handled.failure().message());
            kill();
            break;
        }
        after_events();
        if (std::exchange(looks_, false)) {
            look_at_ranks();
        }
    }
    patience_ = first_cause::patience::none; // nothing more will come
    judge();
    stop_services();
    clean_up();
    output_->finish();
    if (output_->reader_gone() && !exit_status_) {
        exit_status_ = status_signal_base + SIGPIPE;
    }
    if (int const error = output_->output_error(); error != 0 && !options_.quiet) {
        std::fprintf(stderr, "diomp-run: cannot write the ranks' output: %s\n",
                     std::strerror(error));
    }
    output_.reset();
    return exit_status_.value_or(0);
}

status supervisor::set_up_common() {
    fill_standard_descriptors();
    // Every rank takes up to five descriptors here.
    original_open_files_ = raise_open_files(static_cast<std::size_t>(options_.ranks) * 8 + 64);
    auto loop = event_loop::create();
    DIOMP_TRY(loop);
    loop_ = std::make_unique<event_loop>(loop.take());
    auto signals =
        signal_port::create(*loop_, [this](const signalfd_siginfo &info) { on_signal(info); });
    DIOMP_TRY(signals);
    signals_ = signals.take();
    auto output = output_hub::create(*loop_, options_.tag_output);
    DIOMP_TRY(output);
    output_ = output.take();
    auto timeout = add_timer(*loop_, [this] { on_timeout(); });
    DIOMP_TRY(timeout);
    timeout_ = timeout.take();
    auto limit = add_timer(*loop_, [this] { stacks_over(); });
    DIOMP_TRY(limit);
    stacks_limit_ = limit.take();
    auto patience = add_timer(*loop_, [this] { on_patience_over(); });
    DIOMP_TRY(patience);
    patience_limit_ = patience.take();
    return {};
}

void supervisor::check_attendance() {
    if (auto const found = attendance_.find_deserter()) {
        fail_rank(found->rank, {1, fmt::format("{} {}", name_rank(found->rank), found->what)});
    }
}

int abort_status(int code) { return code & 0xff; }

// ---- Services of remote devices

services_plan supervisor::plan_services() {
    services_plan plan;
    plan.hosts = options_.device_hosts;
    plan.ranks_are_here = std::ranges::all_of(
        options_.hosts, [](const host_slots &each) { return find_host(each.name).here; });
    plan.remote_shell = options_.remote_shell;
    plan.program = options_.agent_program.empty() ? own_program() : options_.agent_program;
    auto const settings = forwarded_settings(environ, options_.environment);
    for (const auto &[name, value] : settings) {
        plan.settings += fmt::format("{}={}", name, value) + '\0';
    }
    plan.signals = signals_->original();
    plan.open_files = original_open_files_;
    plan.start_limit_s = std::max(lost_after(settings), min_services_limit_s);
    return plan;
}

status supervisor::start_services() {
    if (options_.device_hosts.empty()) {
        return {};
    }
    device_services::handlers handlers;
    handlers.failed = [this](const error &why) {
        if (services_->ready()) {
            fail(1, why.message());
        } else {
            fail_start(1, why);
        }
    };
    handlers.said = [this](const std::string &line) { output_->message(line); };
    auto made = device_services::create(*loop_, plan_services(), std::move(handlers));
    DIOMP_TRY(made);
    services_ = made.take();
    int exit_status = 1;
    auto started = services_->start(exit_status);
    if (!started) {
        exit_status_ = exit_status;
        return started;
    }
    while (phase_ == phase::running && !services_->ready()) {
        DIOMP_TRY(loop_->run_once());
    }
    if (services_->ready()) {
        auto shares = share_devices(services_->listening(), options_.ranks);
        DIOMP_TRY(shares);
        remote_devices_ = shares.take();
    }
    return {};
}

void supervisor::stop_services() {
    if (!services_) {
        return;
    }
    services_->stop();
    while (!services_->over() && loop_->run_once()) {
    }
    if (!exit_status_ && !options_.quiet && services_->unused()) {
        char const *const search_path = std::getenv("PATH");
        program_lookup const program =
            find_program(options_.command.front(), search_path != nullptr ? search_path : "");
        output_->message(fmt::format("warning: the job has not used its remote devices: {}",
                                     guess_why_unused(program.path)));
    }
    services_.reset();
}

// ---- The cause of a failure

void supervisor::fail_rank(int rank, failure what) {
    causes_.note_failure(rank, std::move(what));
    judge();
}

std::string supervisor::name_abort(int rank, int code) const {
    auto const peer = causes_.lost_by(rank);
    return fmt::format("{} aborted the job with status {}{}", name_rank(rank), code,
                       peer ? fmt::format(", after it had lost rank {}", *peer) : "");
}

void supervisor::fail_aborted(int rank, int code) {
    fail_rank(rank, {.exit_status = abort_status(code), .message = name_abort(rank, code)});
}

void supervisor::fail_given_up(int rank, int code) {
    fail_rank(rank, {.exit_status = abort_status(code),
                     .message = name_abort(rank, code),
                     .in_vain = true,
                     .shows_stacks = true});
}

void supervisor::fail_exited(int rank, const exit_info &how) {
    if (how.success()) {
        attendance_.leave(rank);
        check_attendance();
    } else {
        if (services_) {
            services_->look(); // the end of one may be the reason
        }
        // The reader has gone, as in `diomp-run ... | head`: the user knows.
        bool const quiet = how.signal == SIGPIPE && output_->reader_gone();
        fail_rank(rank,
                  {.exit_status = how.status(),
                   .message = quiet ? "" : fmt::format("{} {}", name_rank(rank), describe(how))});
    }
    causes_.note_settled(rank);
    judge();
}

void supervisor::note_loss(int rank, std::optional<int> peer) { causes_.note_loss(rank, peer); }

void supervisor::note_closed(int rank) { causes_.note_closed(rank); }

void supervisor::note_finalized(int rank) {
    attendance_.finalize(rank);
    causes_.note_settled(rank);
}

void supervisor::all_ranks_seen() {
    has_reports_ = true;
    judge();
}

void supervisor::judge() {
    if (phase_ != phase::running || !causes_.has_failure()) {
        return;
    }
    if (patience_ == first_cause::patience::reports && is_settled_ && has_reports_) {
        patience_ = first_cause::patience::ends;
    }
    if (const failure *const cause = causes_.find(patience_)) {
        patience_limit_->disarm();
        fail(cause->exit_status, cause->message,
             cause->shows_stacks ? stacks::shown : stacks::hidden);
    } else if (!std::exchange(is_asked_, true)) {
        looks_ = true;
        patience_limit_->arm(short_patience_s);
    }
}

void supervisor::on_patience_over() {
    if (!std::exchange(is_settled_, true)) {
        patience_limit_->arm(long_patience_s - short_patience_s);
    } else {
        patience_ = first_cause::patience::none;
    }
    judge();
}

// ---- Ending

void supervisor::fail(int exit_status, const std::string &message, stacks wanted) {
    if (phase_ != phase::running) {
        return; // a consequence of what has been reported
    }
    exit_status_ = exit_status;
    // A job that a rank ends by ompx_abort(0) is a success.
    if (!options_.quiet && !message.empty() && exit_status != 0) {
        output_->message(message);
    }
    // Ranks that wait for the one that failed learn it by the watch pipe, the others by the signal.
    if (wanted == stacks::shown) {
        show_and_end(SIGTERM, true);
    } else {
        end(SIGTERM, true);
    }
}

void supervisor::fail_start(int exit_status, const error &why) {
    if (phase_ == phase::running) {
        output_->message(describe(why));
        exit_status_ = exit_status;
        end(SIGTERM, true);
    }
}

void supervisor::show_and_end(int signal, bool tell) {
    phase_ = phase::showing;
    timeout_->disarm();
    end_signal_ = signal;
    end_tells_ = tell;
    stacks_limit_->arm(stacks_limit_s + stacks_patience_s);
    ask_stacks();
}

void supervisor::stacks_over() {
    if (phase_ == phase::showing) {
        end(end_signal_, end_tells_);
    }
}

void supervisor::end(int signal, bool tell) {
    phase_ = phase::ending;
    timeout_->disarm();
    patience_limit_->disarm();
    stacks_limit_->disarm();
    end_ranks(signal, tell);
}

void supervisor::kill() {
    phase_ = phase::killed;
    timeout_->disarm();
    kill_ranks();
}

void supervisor::on_timeout() {
    fail(status_timeout,
         fmt::format("the job did not end within {} s (--timeout); ending it", options_.timeout_s),
         stacks::shown);
}

void supervisor::on_signal(const signalfd_siginfo &info) {
    int const signal = static_cast<int>(info.ssi_signo);
    switch (signal) {
    case SIGCHLD:
        if (!services_ || !services_->owns(static_cast<pid_t>(info.ssi_pid))) {
            on_child(static_cast<pid_t>(info.ssi_pid));
        }
        return;
    case SIGUSR1:
    case SIGUSR2:
        signal_ranks(signal);
        return;
    case SIGTSTP:
        signal_ranks(SIGTSTP);
        raise(SIGSTOP);
        return;
    case SIGCONT:
        signal_ranks(SIGCONT);
        on_continued();
        return;
    default:
        break;
    }
    if (phase_ != phase::running) {
        kill(); // asked twice
        return;
    }
    exit_status_ = status_signal_base + signal;
    if (!options_.quiet) {
        output_->message(fmt::format("got {}; ending the job", signal_name(signal)));
    }
    // No word by the watch pipe: a rank that handles the signal may need the others for that.
    if (signal == SIGQUIT) { // Ctrl-\: whoever wants a core dump wants to know where ranks are
        show_and_end(signal, false);
    } else {
        end(signal, false);
    }
}

} // namespace diomp::run
