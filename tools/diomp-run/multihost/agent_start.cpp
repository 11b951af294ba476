// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Start-up of an agent, until its ranks run.
#include "agent.h"
#include "core/program.h"
#include "core/program_regions.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

namespace diomp::run {

namespace local = launch::local;

/// Checks and prepares what the ranks need, so that no rank starts on any host if something is
/// missing.
status agent::prepare(agent_setup setup) {
    setup_ = std::move(setup);
    original_open_files_ = raise_open_files(static_cast<std::size_t>(setup_.block.ranks) * 8 + 64);
    std::string const mark =
        fmt::format("{}={}:{}", local::node_variable, setup_.job_id, bootstrap_.index);
    auto made = node::create(*loop_, *this, mark);
    DIOMP_TRY(made);
    node_ = made.take();
    if (chdir(setup_.directory.c_str()) != 0) {
        return system_error("cannot work in the directory " + setup_.directory, errno);
    }
    const char *const own_path = std::getenv("PATH");
    program_lookup const program = find_program(
        setup_.command.front(),
        setup_.search_path + (own_path != nullptr ? fmt::format(":{}", own_path) : ""));
    if (program.exit_status != 0) {
        failure_status_ = program.exit_status;
        return error(OMPX_ERR_ARG, program.message);
    }
    if (auto usable = setup_.remote_devices.empty() ? status() : check_remote_regions(program.path);
        !usable) {
        failure_status_ = status_usage;
        return usable;
    }
    auto placement =
        assign_cores(setup_.block.ranks, setup_.bind, group_by_core(allowed_cpus(), read_siblings));
    if (!placement) {
        failure_status_ = status_usage;
        return placement.take_failure();
    }
    DIOMP_TRY(make_output_directory(setup_.output_dir));
    plan_.first_rank = setup_.block.first_rank;
    plan_.ranks = setup_.block.ranks;
    plan_.world_size = static_cast<int>(setup_.world_size);
    plan_.job_id = setup_.job_id;
    plan_.host = setup_.block.name;
    plan_.placement = placement.take();
    plan_.remote_devices = setup_.remote_devices;
    plan_.common.path = program.path;
    plan_.common.arguments = setup_.command;
    plan_.common.environment = rank_environment(environ, setup_.environment, libomptarget_folder());
    plan_.common.environment.push_back(mark);
    plan_.common.signals = signals_->original();
    plan_.common.open_files = original_open_files_;
    exchange_ = std::make_unique<exchange>(plan_.first_rank, plan_.ranks);
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
    if (!node_ || plan_.ranks == 0) {
        return error(OMPX_ERR_SYSTEM, "the head has sent go before setup");
    }
    DIOMP_TRY(node_->start(std::move(plan_), [this](int rank) { return open_descriptors(rank); }));
    for (int rank = node_->plan().first_rank;
         setup_.verbose && rank < node_->plan().first_rank + node_->plan().ranks; ++rank) {
        frame_writer frame(frame_type::message);
        frame.text(node_->describe_placement(rank));
        head_->send(frame.take());
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

/// Reports a failure to the head, which then ends the job on all hosts.
void agent::report_start(const status &started) {
    if (!started.ok()) {
        report_failure(failure_status_, started.failure());
    }
}

void agent::report_failure(int exit_status, const error &why) {
    frame_writer frame(frame_type::start_failed);
    frame.number(static_cast<std::uint8_t>(exit_status));
    frame.text(fmt::format("{}: {}", setup_.block.name, describe(why)));
    head_->send(frame.take());
}

void agent::on_start_failure(int /*rank*/, const error &why) {
    report_failure(status_cannot_execute, why);
    stopping_ = stopping_ || node_->finished();
}

} // namespace diomp::run
