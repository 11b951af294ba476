// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Start-up of a job on several hosts, until its ranks run.
#include "head.h"
#include "listener.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <unistd.h>

namespace diomp::run {
head::head(run_options options, std::vector<rank_block> blocks)
    : supervisor(std::move(options)), settings_(forwarded_settings(environ, options_.environment)),
      hosts_(std::move(blocks), options_.ranks), exchange_(hosts_),
      stacks_(hosts_, frame_type::show_stacks, [this] { end_->on_stacks_done(); }),
      polls_(hosts_, frame_type::poll, [this] { failures_->on_polled(); }) {}

head::~head() = default;

status head::set_up() {
    spawn_request common;
    common.signals = signals_->original();
    common.open_files = original_open_files_;
    auto launcher = agent_launcher::create(
        *loop_, hosts_, *output_, options_.hosts,
        fmt::format("{}={}", launch::local::job_variable, job_id_), std::move(common),
        [this](host &which, const error &why) { fail_host_start(which, why); });
    DIOMP_TRY(launcher);
    launcher_ = launcher.take();
    auto monitor =
        host_monitor::create(*loop_, hosts_, peer_timeout(settings_),
                             [this](host &which, double limit_s) { on_silent(which, limit_s); });
    DIOMP_TRY(monitor);
    monitor_ = monitor.take();
    auto deadline = add_timer(*loop_, [this] { on_deadline(); });
    DIOMP_TRY(deadline);
    deadline_ = deadline.take();
    ranks_output_ = std::make_unique<head_output>(*output_, hosts_);
    output_->add_remote_ranks(options_.output_dir.empty() ? options_.ranks : 0);
    output_->on_flow_change = [this] { ranks_output_->on_flow_change(); };
    input_ = std::make_unique<input_reader>(*loop_, [this](std::string_view text) {
        frame_writer frame(frame_type::input);
        frame.bytes(text);
        hosts_[0].link->send(frame.take());
    });
    return {};
}

status head::start() {
    exit_status_ = status_usage; // until the command line is known to be correct
    int exit_status = status_usage;
    if (auto found = launcher_->find_shell(exit_status); !found) {
        exit_status_ = exit_status;
        return found;
    }
    bool const is_all_local = std::ranges::all_of(hosts_, &host::is_local);
    auto port = open_listener(options_.hosts.head_address.empty() && is_all_local
                                  ? "127.0.0.1"
                                  : options_.hosts.head_address);
    DIOMP_TRY(port);
    exit_status_.reset();
    auto made = agent_listener::create(
        *loop_, port.take(), hosts_.size(),
        {.on_text = [this](const std::string &text) { output_->message(text); },
         .on_agent = [this](auto from) { accept_agent(std::move(from)); }});
    DIOMP_TRY(made);
    listener_ = made.take();
    monitor_->start();
    start_more();
    return {};
}

void head::start_more() {
    while (end_->is_running() && hosts_.count(host_stage::waiting) > 0 &&
           hosts_.count(host_stage::starting) < max_starting) {
        // Hosts are started in order.
        std::size_t const index = hosts_.size() - hosts_.count(host_stage::waiting);
        host &which = hosts_[index];
        auto const started =
            launcher_->start(which, listener_->bootstrap(index, monitor_->timeout_s(),
                                                         signals_->original().ignored_list()));
        if (!started) {
            fail_host_start(which,
                            error(OMPX_ERR_SYSTEM, fmt::format("host {}: {}", which.block.name,
                                                               started.failure().message())));
        } else if (options_.verbose) {
            output_->message(fmt::format(
                "host {}: ranks {} to {}, started by {}", which.block.name, which.block.first_rank,
                which.block.first_rank + which.block.ranks - 1, started.value()));
        }
    }
}

/// Accepts the authenticated connection of an agent. A second connection of a host, or one that is
/// too late, is closed.
void head::accept_agent(secure::pending_connections::proven_connection from) {
    std::size_t const index = from.proven.peer.number;
    host &which = hosts_[index];
    if (which.stage != host_stage::starting) {
        return;
    }
    auto link = frame_link::create(*loop_, *this, std::move(from.socket), std::move(from.proven),
                                   monitor_->timeout_s());
    if (!link) {
        return; // the agent reports the closed connection
    }
    which.link = link.take();
    which.link->tag = static_cast<int>(index);
    which.last_received = std::chrono::steady_clock::now();
    hosts_.enter(which, host_stage::connected);
    send_setup(which);
    start_more();
}

void head::send_setup(host &which) {
    if (!end_->is_running()) {
        which.link->send(small_frame(frame_type::kill)); // the job is ending already
        return;
    }
    agent_setup setup;
    setup.world_size = static_cast<std::uint32_t>(options_.ranks);
    setup.block = which.block;
    setup.bind = options_.bind;
    setup.verbose = options_.verbose;
    setup.job_id = job_id_;
    std::error_code failure;
    setup.directory = std::filesystem::current_path(failure).string();
    const char *const path = std::getenv("PATH");
    setup.search_path = path != nullptr ? path : "";
    setup.output_dir = options_.output_dir;
    setup.command = options_.command;
    setup.environment = settings_;
    if (!remote_devices_.empty()) {
        auto const first = remote_devices_.begin() + which.block.first_rank;
        setup.remote_devices.assign(first, first + which.block.ranks);
    }
    which.link->send(encode_setup(setup));
}

void head::on_ready(host &which) {
    if (which.stage != host_stage::connected) {
        return;
    }
    hosts_.enter(which, host_stage::ready);
    if (!hosts_.all_are(host_stage::ready)) {
        return;
    }
    listener_->close();
    for (host &each : hosts_) {
        hosts_.enter(each, host_stage::running);
        each.link->send(small_frame(frame_type::go));
    }
    input_->resume();
}

} // namespace diomp::run
