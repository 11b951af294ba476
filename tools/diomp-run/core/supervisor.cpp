// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "supervisor.h"

#include "base/standard_descriptors.h"
#include "launch/host.h"
#include "multihost/listener.h"
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

/// Minimum time for a service to listen: a log-in takes time, however short DIOMP_TIMEOUT is.
constexpr double min_services_limit_s = 10;
/// Extra time for the nodes, which collect the ranks' stacks, before the supervisor goes on.
constexpr double stacks_margin_s = 0.5;
/// Time that a consequence waits for its cause: at least, and at most for ranks that are ending and
/// for hosts that have not reported. After that the job has about two seconds to end.
constexpr double min_cause_wait_s = 0.25;
constexpr double max_cause_wait_s = 2;

} // namespace

supervisor::supervisor(run_options options)
    : options_(std::move(options)), host_(launch::host_name()), job_id_(launch::make_job_id(host_)),
      rank_tracker_(options_.ranks), causes_(options_.ranks) {}

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
        timeout_->arm(options_.timeout_s); // including start-up
    }
    auto started = start_services();
    if (started && phase_ == phase::running) {
        started = start();
    }
    if (!started) {
        fail_start(exit_status_.value_or(1), started.failure());
        kill();
    }
    while (!finished()) {
        if (auto handled = loop_->run_once(); !handled) {
            fail(1, handled.failure().message());
            kill();
            break;
        }
        after_events();
        if (std::exchange(poll_requested_, false)) {
            poll_ranks();
        }
    }
    cause_wait_ = first_cause::cause_wait::none; // no more events will come
    report_cause();
    stop_services();
    clean_up();
    output_->finish();
    if (output_->reader_closed() && !exit_status_) {
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
    // diomp-run uses up to five descriptors per rank.
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
    auto limit = add_timer(*loop_, [this] { stacks_done(); });
    DIOMP_TRY(limit);
    stacks_limit_ = limit.take();
    auto cause_wait = add_timer(*loop_, [this] { on_cause_timer(); });
    DIOMP_TRY(cause_wait);
    cause_timer_ = cause_wait.take();
    return {};
}

void supervisor::check_premature_exit() {
    if (auto const found = rank_tracker_.find_premature_exit()) {
        fail_rank(found->rank, {1, fmt::format("{} {}", describe_rank(found->rank), found->what)});
    }
}

int abort_status(int code) { return code & 0xff; }

// ---- Services of remote devices

services_plan supervisor::plan_services() {
    services_plan plan;
    plan.hosts = options_.device_hosts;
    plan.ranks_are_local = std::ranges::all_of(options_.hosts.list, [](const host_slots &each) {
        return resolve_host(each.name).is_local;
    });
    plan.remote_shell = options_.hosts.remote_shell;
    plan.program = options_.hosts.program();
    auto const settings = forwarded_settings(environ, options_.environment);
    for (const auto &[name, value] : settings) {
        plan.settings += fmt::format("{}={}", name, value) + '\0';
    }
    plan.signals = signals_->original();
    plan.open_files = original_open_files_;
    plan.start_limit_s = std::max(peer_timeout(settings), min_services_limit_s);
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
    handlers.on_text = [this](const std::string &line) { output_->message(line); };
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
        auto assigned = assign_devices(services_->listening(), options_.ranks);
        DIOMP_TRY(assigned);
        remote_devices_ = assigned.take();
    }
    return {};
}

void supervisor::stop_services() {
    if (!services_) {
        return;
    }
    services_->stop();
    while (!services_->finished() && loop_->run_once()) {
    }
    if (!exit_status_ && !options_.quiet && services_->unused()) {
        char const *const search_path = std::getenv("PATH");
        program_lookup const program =
            find_program(options_.command.front(), search_path != nullptr ? search_path : "");
        output_->message(fmt::format("warning: the job has not used its remote devices: {}",
                                     explain_unused_devices(program.path)));
    }
    services_.reset();
}

// ---- The cause of a failure

void supervisor::fail_rank(int rank, failure what) {
    causes_.note_failure(rank, std::move(what));
    report_cause();
}

std::string supervisor::describe_abort(int rank, int code) const {
    auto const peer = causes_.lost_by(rank);
    return fmt::format("{} aborted the job with status {}{}", describe_rank(rank), code,
                       peer ? fmt::format(", after it had lost rank {}", *peer) : "");
}

void supervisor::fail_aborted(int rank, int code) {
    fail_rank(rank, {.exit_status = abort_status(code), .message = describe_abort(rank, code)});
}

void supervisor::fail_given_up(int rank, int code) {
    fail_rank(rank, {.exit_status = abort_status(code),
                     .message = describe_abort(rank, code),
                     .after_timeout = true,
                     .shows_stacks = true});
}

void supervisor::fail_exited(int rank, const exit_info &how) {
    if (how.success()) {
        rank_tracker_.mark_exited(rank);
        check_premature_exit();
    } else {
        if (services_) {
            services_->poll(); // an ended service may be the reason
        }
        // The reader has closed the output, as in `diomp-run ... | head`: no message is needed.
        bool const quiet = how.signal == SIGPIPE && output_->reader_closed();
        fail_rank(
            rank,
            {.exit_status = how.status(),
             .message = quiet ? "" : fmt::format("{} {}", describe_rank(rank), describe(how))});
    }
    causes_.note_done(rank);
    report_cause();
}

void supervisor::note_loss(int rank, std::optional<int> peer) { causes_.note_loss(rank, peer); }

void supervisor::note_closed(int rank) { causes_.note_closed(rank); }

void supervisor::note_finalized(int rank) {
    rank_tracker_.finalize(rank);
    causes_.note_done(rank);
}

void supervisor::on_ranks_polled() {
    has_reports_ = true;
    report_cause();
}

void supervisor::report_cause() {
    if (phase_ != phase::running || !causes_.has_failure()) {
        return;
    }
    if (cause_wait_ == first_cause::cause_wait::reports && is_short_wait_over_ && has_reports_) {
        cause_wait_ = first_cause::cause_wait::exits;
    }
    if (const failure *const cause = causes_.find(cause_wait_)) {
        cause_timer_->disarm();
        fail(cause->exit_status, cause->message,
             cause->shows_stacks ? stacks::shown : stacks::hidden);
    } else if (!std::exchange(is_polled_, true)) {
        poll_requested_ = true;
        cause_timer_->arm(min_cause_wait_s);
    }
}

void supervisor::on_cause_timer() {
    if (!std::exchange(is_short_wait_over_, true)) {
        cause_timer_->arm(max_cause_wait_s - min_cause_wait_s);
    } else {
        cause_wait_ = first_cause::cause_wait::none;
    }
    report_cause();
}

// ---- Ending

void supervisor::fail(int exit_status, const std::string &message, stacks wanted) {
    if (phase_ != phase::running) {
        return; // a consequence of the reported failure
    }
    exit_status_ = exit_status;
    // A job that a rank ends with ompx_abort(0) has succeeded.
    if (!options_.quiet && !message.empty() && exit_status != 0) {
        output_->message(message);
    }
    // The liveness pipe wakes ranks that wait in DiOMP for the failed rank; the signal ends the
    // others.
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

void supervisor::show_and_end(int signal, bool notify) {
    phase_ = phase::showing;
    timeout_->disarm();
    end_signal_ = signal;
    end_notifies_ = notify;
    stacks_limit_->arm(stacks_limit_s + stacks_margin_s);
    request_stacks();
}

void supervisor::stacks_done() {
    if (phase_ == phase::showing) {
        end(end_signal_, end_notifies_);
    }
}

void supervisor::end(int signal, bool notify) {
    phase_ = phase::ending;
    timeout_->disarm();
    cause_timer_->disarm();
    stacks_limit_->disarm();
    end_ranks(signal, notify);
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
        kill(); // second signal
        return;
    }
    exit_status_ = status_signal_base + signal;
    if (!options_.quiet) {
        output_->message(fmt::format("got {}; ending the job", signal_name(signal)));
    }
    // The liveness pipe stays open: a rank that handles the signal may need the others for that.
    if (signal == SIGQUIT) { // Ctrl-\ asks for core dumps; stacks help as well
        show_and_end(signal, false);
    } else {
        end(signal, false);
    }
}

} // namespace diomp::run
