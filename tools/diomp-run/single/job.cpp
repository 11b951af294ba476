// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "job.h"

#include "core/program.h"
#include "core/program_regions.h"
#include "core/rank_environment.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

namespace diomp::run {

namespace local = launch::local;

job::job(run_options options) : supervisor(std::move(options)), exchange_(0, options_.ranks) {}

job::~job() = default;

status job::set_up() {
    auto made = node::create(*loop_, *this, fmt::format("{}={}", local::job_variable, job_id_));
    DIOMP_TRY(made);
    node_ = made.take();
    return {};
}

status job::start() {
    program_lookup const program = find_program(
        options_.command.front(), std::getenv("PATH") != nullptr ? std::getenv("PATH") : "");
    if (program.exit_status != 0) {
        exit_status_ = program.exit_status;
        return error(OMPX_ERR_ARG, program.message);
    }
    if (auto usable = remote_devices_.empty() ? status() : check_remote_regions(program.path);
        !usable) {
        exit_status_ = status_usage;
        return usable;
    }
    auto placement =
        assign_cores(options_.ranks, options_.bind, group_by_core(allowed_cpus(), read_siblings));
    if (!placement) {
        exit_status_ = status_usage;
        return placement.take_failure();
    }
    DIOMP_TRY(make_output_directory(options_.output_dir));
    node_plan plan;
    plan.ranks = options_.ranks;
    plan.world_size = options_.ranks;
    plan.job_id = job_id_;
    plan.host = host_;
    plan.placement = placement.take();
    plan.remote_devices = remote_devices_;
    plan.common.path = program.path;
    plan.common.arguments = options_.command;
    plan.common.environment =
        rank_environment(environ, explicit_settings(options_.environment), libomptarget_folder());
    plan.common.signals = signals_->original();
    plan.common.open_files = original_open_files_;
    DIOMP_TRY(node_->start(std::move(plan), [this](int rank) { return open_descriptors(rank); }));
    if (options_.verbose) {
        for (int rank = 0; rank < options_.ranks; ++rank) {
            output_->message(node_->describe_placement(rank));
        }
    }
    if (!input_) {
        // Rank 0 has the descriptor now; the writer must notice when rank 0 closes it.
        unique_fd const null(open("/dev/null", O_RDONLY | O_CLOEXEC));
        dup2(null.get(), STDIN_FILENO);
    }
    return {};
}

result<rank_descriptors> job::open_descriptors(int rank) {
    auto input = rank == 0 ? input_forwarder::open(*loop_, input_)
                           : result<unique_fd>(unique_fd(open("/dev/null", O_RDONLY | O_CLOEXEC)));
    DIOMP_TRY(input);
    auto ends = options_.output_dir.empty() ? output_->open_pipes(rank)
                                            : open_output_files(rank, options_.output_dir);
    DIOMP_TRY(ends);
    return rank_descriptors{input.take(), std::move(ends.value().out), std::move(ends.value().err)};
}

void job::on_continued() {
    if (input_) {
        input_->resume();
    }
}

void job::clean_up() {
    if (!node_->clean_up()) {
        output_->message("some processes of the job do not end, not even by SIGKILL");
    }
    // These members refer to the event loop, and the ranks' names are not needed any more.
    node_.reset();
    input_.reset();
}

// ---- Packets from the ranks

void job::on_hello(int rank, pid_t pid) {
    rank_tracker_.join(rank);
    if (options_.verbose) {
        output_->message(fmt::format("rank {} joined (pid {})", rank, pid));
    }
    check_premature_exit();
}

void job::on_entries(int /*rank*/, std::vector<local::entry> entries) {
    exchange_.add(std::move(entries));
}

void job::on_fence(int rank) {
    auto const complete = exchange_.enter_fence(rank);
    if (!complete) {
        on_protocol_error(rank, complete.failure().message());
    } else if (complete.value()) {
        node_->send_to_all(release_packets(exchange_.take_entries(), false));
    }
}

void job::on_get(int rank, int owner, std::string key) {
    // On one host all values are delivered with the fence, so the runtime never sends `get`.
    on_protocol_error(rank, fmt::format("a request for the value '{}' of rank {}", key, owner));
}

void job::on_finalize(int rank) { note_finalized(rank); }

void job::on_abort(int rank, int code) {
    node_->handle_killed(rank);
    output_->collect(rank);
    fail_aborted(rank, code);
}

void job::on_give_up(int rank, int code) {
    node_->handle_killed(rank);
    output_->collect(rank);
    fail_given_up(rank, code);
}

void job::poll_ranks() {
    node_->poll();
    on_ranks_polled();
}

void job::on_stacks_shown(int rank) {
    output_->collect(rank);
    node_->stacks().check();
}

void job::on_stacks_done(const std::vector<std::string> &silent) {
    for (const std::string &sentence : silent) {
        output_->message(sentence);
    }
    stacks_done();
}

void job::on_protocol_error(int rank, const std::string &what) {
    fail(1, fmt::format("{} sent an invalid message: {}", describe_rank(rank), what));
}

void job::on_start_failure(int /*rank*/, const error &why) {
    fail_start(status_cannot_execute, why);
}

void job::on_exit(int rank, const exit_info &how) {
    output_->collect(rank);
    fail_exited(rank, how);
}

} // namespace diomp::run
