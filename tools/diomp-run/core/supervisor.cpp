// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "supervisor.h"

#include "base/standard_descriptors.h"
#include "launch/host.h"
#include "multihost/listener.h"
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
} // namespace

supervisor::supervisor(run_options options)
    : options_(std::move(options)), job_id_(launch::make_job_id(launch::host_name())) {}

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
    if (started && end_->is_running()) {
        started = start();
    }
    if (!started) {
        fail_start(exit_status_.value_or(1), started.failure());
        end_->kill();
    }
    while (!finished()) {
        if (auto handled = loop_->run_once(); !handled) {
            fail(1, handled.failure().message());
            end_->kill();
            break;
        }
        if (failures_->take_poll_request()) {
            poll_ranks();
        }
    }
    failures_->stop_waiting();
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
    auto timeout = add_timer(*loop_, [this] {
        fail(status_timeout,
             fmt::format("the job did not end within {} s (--timeout); ending it",
                         options_.timeout_s),
             stacks::shown);
    });
    DIOMP_TRY(timeout);
    timeout_ = timeout.take();
    auto end = job_end::create(*loop_, *this, [this] {
        timeout_->disarm();
        failures_->stop();
    });
    DIOMP_TRY(end);
    end_ = end.take();
    auto failures =
        rank_failures::create(*loop_, options_.ranks, start_limits(),
                              {.describe_rank = [this](int rank) { return describe_rank(rank); },
                               .on_cause =
                                   [this](const failure &cause) {
                                       fail(cause.exit_status, cause.message,
                                            cause.shows_stacks ? stacks::shown : stacks::hidden);
                                   },
                               .on_warning =
                                   [this](const std::string &text) {
                                       if (!options_.quiet) {
                                           output_->message(text);
                                       }
                                   }});
    DIOMP_TRY(failures);
    failures_ = failures.take();
    return {};
}

launch::fence_limits supervisor::start_limits() const {
    auto const settings = forwarded_settings(environ, options_.environment);
    return launch::fence_limits::from([&settings](const char *name) -> const char * {
        auto const found = std::ranges::find(settings, name, &named_settings::value_type::first);
        return found != settings.end() ? found->second.c_str() : nullptr;
    });
}

// ---- Services of remote devices

services_plan supervisor::plan_services() const {
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
    while (end_->is_running() && !services_->ready()) {
        DIOMP_TRY(loop_->run_once());
    }
    if (services_->ready()) {
        auto assigned =
            assign_devices(options_.device_hosts, services_->listening(), options_.ranks);
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

// ---- Failures and signals

void supervisor::on_rank_exit(int rank, const exit_info &how) {
    if (!how.success() && services_) {
        services_->poll(); // an ended service may be the reason
    }
    // The reader has closed the output, as in `diomp-run ... | head`: no message is needed.
    failures_->on_exit(rank, how, how.signal == SIGPIPE && output_->reader_closed());
}

void supervisor::fail(int exit_status, const std::string &message, stacks wanted) {
    if (!end_->is_running()) {
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
        end_->show_and_end(SIGTERM, true);
    } else {
        end_->end(SIGTERM, true);
    }
}

void supervisor::fail_start(int exit_status, const error &why) {
    if (end_->is_running()) {
        output_->message(describe(why));
        exit_status_ = exit_status;
        end_->end(SIGTERM, true);
    }
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
        failures_->on_continued(); // before a timer that has expired meanwhile
        return;
    case SIGCONT:
        signal_ranks(SIGCONT);
        failures_->on_continued();
        on_continued();
        return;
    default:
        break;
    }
    if (!end_->is_running()) {
        end_->kill(); // second signal
        return;
    }
    exit_status_ = status_signal_base + signal;
    if (!options_.quiet) {
        output_->message(fmt::format("got {}; ending the job", signal_name(signal)));
    }
    // The liveness pipe stays open: a rank that handles the signal may need the others for that.
    if (signal == SIGQUIT) { // Ctrl-\ asks for core dumps; stacks help as well
        end_->show_and_end(signal, false);
    } else {
        end_->end(signal, false);
    }
}

} // namespace diomp::run
