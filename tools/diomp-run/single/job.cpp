// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "job.h"

#include "launch/host.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

namespace diomp::run {

namespace local = launch::local;

job::job(run_options options) : supervisor(std::move(options)) {}

job::~job() = default;

status job::set_up() {
    auto made = node::create(*loop_, *this, fmt::format("{}={}", local::job_variable, job_id_));
    DIOMP_TRY(made);
    node_ = made.take();
    exchange_ = std::make_unique<local_exchange>(*node_, *failures_, options_.ranks);
    return {};
}

status job::start() {
    node_plan plan;
    plan.ranks = options_.ranks;
    plan.world_size = options_.ranks;
    plan.job_id = job_id_;
    plan.host = launch::host_name();
    plan.remote_devices = remote_devices_;
    plan.common.arguments = options_.command;
    plan.common.signals = signals_->original();
    plan.common.open_files = original_open_files_;
    const char *const search_path = std::getenv("PATH");
    int exit_status = 1;
    if (auto complete =
            complete_plan(plan, search_path != nullptr ? search_path : "", options_.bind,
                          explicit_settings(options_.environment), exit_status);
        !complete) {
        exit_status_ = exit_status;
        return complete;
    }
    DIOMP_TRY(make_output_directory(options_.output_dir));
    DIOMP_TRY(node_->start(std::move(plan), *exchange_,
                           [this](int rank) { return open_descriptors(rank); }));
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
    if (options_.verbose) {
        output_->message(fmt::format("rank {} joined (pid {})", rank, pid));
    }
    failures_->on_join(rank);
}

void job::on_abort(int rank, int code) {
    node_->handle_killed(rank);
    output_->collect(rank);
    failures_->on_abort(rank, code);
}

void job::on_give_up(int rank, int code) {
    node_->handle_killed(rank);
    output_->collect(rank);
    failures_->on_give_up(rank, code);
}

void job::poll_ranks() {
    node_->poll();
    failures_->on_polled();
}

void job::on_stacks_shown(int rank) {
    output_->collect(rank);
    node_->stacks().check();
}

void job::on_stacks_done(const std::vector<std::string> &silent) {
    for (const std::string &sentence : silent) {
        output_->message(sentence);
    }
    end_->on_stacks_done();
}

void job::on_protocol_error(int rank, const std::string &what) {
    fail(1, fmt::format("{} sent an invalid message: {}", describe_rank(rank), what));
}

void job::on_start_failure(int /*rank*/, const error &why) {
    fail_start(status_cannot_execute, why);
}

void job::on_exit(int rank, const exit_info &how) {
    output_->collect(rank);
    on_rank_exit(rank, how);
}

} // namespace diomp::run
