// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Start-up of an agent, until its ranks run.
#include "agent.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

namespace diomp::run {

namespace local = launch::local;

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

} // namespace diomp::run
