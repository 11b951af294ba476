// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A job whose ranks all run on this machine.
#pragma once

#include "core/input_forwarder.h"
#include "core/node.h"
#include "core/supervisor.h"
#include "local_exchange.h"

#include <memory>
#include <string>
#include <vector>

namespace diomp::run {

class job final : public supervisor, private node_events {
public:
    explicit job(run_options options);
    ~job() override;

private:
    status set_up() override;
    status start() override;
    [[nodiscard]] bool finished() const override { return node_->finished(); }
    void end_ranks(int signal, bool notify) override { node_->terminator().end(signal, notify); }
    void kill_ranks() override { node_->terminator().kill(); }
    void signal_ranks(int signal) override { node_->terminator().forward(signal); }
    void on_child(pid_t pid) override { node_->reap(pid); }
    void on_continued() override;
    void clean_up() override;
    [[nodiscard]] std::string describe_rank(int rank) const override {
        return node_->describe_rank(rank);
    }
    void request_stacks() override { node_->stacks().request(); }
    void poll_ranks() override;
    result<rank_descriptors> open_descriptors(int rank);

    void on_hello(int rank, pid_t pid) override;
    void on_finalize(int rank) override { failures_->on_finalize(rank); }
    void on_abort(int rank, int code) override;
    void on_give_up(int rank, int code) override;
    void on_loss(int rank, std::optional<int> peer) override { failures_->on_loss(rank, peer); }
    void on_closed(int rank) override { failures_->on_closed(rank); }
    void on_stacks_shown(int rank) override;
    void on_stacks_done(const std::vector<std::string> &silent) override;
    void on_protocol_error(int rank, const std::string &what) override;
    void on_exit(int rank, const exit_info &how) override;
    void on_start_failure(int rank, const error &why) override;

    std::unique_ptr<node> node_;
    std::unique_ptr<local_exchange> exchange_;
    std::unique_ptr<input_forwarder> input_;
};

} // namespace diomp::run
