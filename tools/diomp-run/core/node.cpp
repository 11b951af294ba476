// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "node.h"

#include "base/sanitizer.h"
#include "launch/openmp_files.h"
#include "orphans.h"

#include <climits>
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <utility>

namespace diomp::run {

namespace local = launch::local;

namespace {

/// A fork of a process with the descriptors of so many ranks is expensive (spawn.h). A stack in the
/// caller's memory is nothing that the sanitizers know.
constexpr int min_vfork_ranks =
    DIOMP_THREAD_SANITIZER != 0 || DIOMP_ADDRESS_SANITIZER != 0 ? INT_MAX : 64;

/// Sets the number of libomp's hidden helper threads, unless the user has set it.
void set_helper_threads(std::vector<std::string> &environment, const std::string &rank_devices,
                        const cpu_list &bound_to) {
    for (std::string const &each : environment) {
        if (each.starts_with("LIBOMP_NUM_HIDDEN_HELPER_THREADS=") ||
            each.starts_with("LIBOMP_USE_HIDDEN_HELPER_TASK=")) {
            return;
        }
    }
    std::size_t const processors = bound_to.empty() ? allowed_cpus().size() : bound_to.size();
    environment.push_back(fmt::format("LIBOMP_NUM_HIDDEN_HELPER_THREADS={}",
                                      helper_threads(rank_devices, processors)));
}

} // namespace

result<std::unique_ptr<node>> node::create(event_loop &loop, node_events &events,
                                           const std::string &mark) {
    // Orphans of the job become children of this process, not of init.
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    auto guard_process = guard::start(mark);
    DIOMP_TRY(guard_process);
    std::unique_ptr<node> made(new node(loop, events, guard_process.take()));
    auto terminator = rank_terminator::create(loop, made->ranks_,
                                              [self = made.get()] { self->stacks_->cancel(); });
    DIOMP_TRY(terminator);
    made->terminator_ = terminator.take();
    auto stacks =
        stack_collector::create(loop, made->ranks_, [self = made.get()](const auto &silent) {
            self->on_stacks_done(silent);
        });
    DIOMP_TRY(stacks);
    made->stacks_ = stacks.take();
    return made;
}

status node::start(node_plan plan, exchange_events &exchange,
                   const std::function<result<rank_descriptors>(int rank)> &descriptors) {
    plan_ = std::move(plan);
    oom_ = oom_counter::of_this_process();
    ranks_ = std::vector<rank_process>(static_cast<std::size_t>(plan_.ranks));
    if (plan_.ranks >= min_vfork_ranks) {
        auto slots = vfork_slots::create();
        DIOMP_TRY(slots);
        vfork_slots_.emplace(slots.take());
    }
    for (int rank = plan_.first_rank; rank < plan_.first_rank + plan_.ranks; ++rank) {
        auto ends = descriptors(rank);
        DIOMP_TRY(ends);
        DIOMP_TRY(start_rank(rank, exchange, ends.value()));
    }
    return {};
}

status node::start_rank(int rank, exchange_events &exchange, const rank_descriptors &descriptors) {
    local::rank_info_packet setup_packet;
    setup_packet.rank = static_cast<std::uint32_t>(rank);
    setup_packet.size = static_cast<std::uint32_t>(plan_.world_size);
    setup_packet.node_first = static_cast<std::uint32_t>(plan_.first_rank);
    setup_packet.node_size = static_cast<std::uint32_t>(plan_.ranks);
    setup_packet.job_id = plan_.job_id;
    setup_packet.host = plan_.host;
    unique_fd rank_end;
    auto link = rank_link::create(loop_, events_, exchange, setup_packet,
                                  terminator_->liveness_fd(), rank_end);
    DIOMP_TRY(link);
    spawn_request request = plan_.common;
    for (const auto &[name, value] :
         {std::pair(local::fd_variable, std::to_string(rank_end.get())),
          std::pair(local::rank_variable, std::to_string(rank)),
          std::pair(local::size_variable, std::to_string(plan_.world_size)),
          std::pair(local::job_variable, plan_.job_id),
          std::pair(local::user_rank_variable, std::to_string(rank))}) {
        request.environment.push_back(fmt::format("{}={}", name, value));
    }
    if (!plan_.remote_devices.empty()) {
        static constexpr std::string_view variable = "DIOMP_REMOTE_DEVICES=";
        std::erase_if(request.environment,
                      [](const std::string &each) { return each.starts_with(variable); });
        std::string const &rank_devices =
            plan_.remote_devices[static_cast<std::size_t>(rank - plan_.first_rank)];
        request.environment.push_back(std::string(variable) + rank_devices);
        set_helper_threads(request.environment, rank_devices,
                           plan_.placement[static_cast<std::size_t>(rank - plan_.first_rank)]);
    }
    request.standard_input = descriptors.in.get();
    request.standard_output = descriptors.out.get();
    request.standard_error = descriptors.err.get();
    request.inherited = rank_end.get();
    request.cpus = plan_.placement[static_cast<std::size_t>(rank - plan_.first_rank)];
    if (request.cpus.empty() && vfork_slots_) {
        request.slots = &*vfork_slots_;
    }
    auto &started = at(rank);
    DIOMP_TRY(started.process.start(request));
    ++started_;
    started.link = link.take();
    guard_.monitor(pid(rank));
    return started.process.watch(loop_, [this, rank] { on_rank_exit(rank); });
}

std::string node::describe_rank(int rank) const {
    return fmt::format("rank {} on {} (pid {}, {})", rank, plan_.host, pid(rank),
                       plan_.common.arguments.front());
}

std::string node::describe_placement(int rank) const {
    auto const &cpus = plan_.placement[static_cast<std::size_t>(rank - plan_.first_rank)];
    return fmt::format("rank {} of {} on {}: pid {}, {}", rank, plan_.world_size, plan_.host,
                       pid(rank), cpus.empty() ? "unbound" : "cpus " + format_cpu_list(cpus));
}

void node::send(int rank, const std::vector<shared_packet> &packets) {
    if (at(rank).link) {
        at(rank).link->send(packets);
    }
}

void node::send_to_all(const std::vector<shared_packet> &packets) {
    for (auto &each : ranks_) {
        if (each.link) {
            each.link->send(packets);
        }
    }
}

// ---- End of the ranks

void node::on_rank_exit(int rank) {
    auto &process = at(rank);
    auto how = process.process.exit();
    if (!how || process.ended) {
        return;
    }
    process.process.unwatch();
    process.ended = true;
    ++ended_;
    // Handles its last packets before its end.
    process.link->receive();
    if (how->signal == SIGKILL && !terminator_->has_killed()) {
        how->reason = oom_.explain_kill();
    }
    if (auto const why = process.process.start_failure()) {
        events_.on_start_failure(rank, *why);
    } else {
        events_.on_exit(rank, *how);
    }
    stacks_->check();
}

void node::handle_killed(int except) {
    for (int rank = plan_.first_rank; rank < plan_.first_rank + plan_.ranks; ++rank) {
        auto const &process = at(rank);
        if (rank != except && !process.ended) {
            auto const how = process.process.exit();
            if (how && how->signal != 0) {
                on_rank_exit(rank);
            }
        }
    }
}

void node::poll() {
    for (int rank = plan_.first_rank; rank < plan_.first_rank + plan_.ranks; ++rank) {
        if (at(rank).link && !at(rank).ended) {
            at(rank).link->receive();
            on_rank_exit(rank);
        }
    }
}

void node::on_stacks_done(const std::vector<stack_collector::silent_rank> &silent) {
    std::vector<std::string> sentences;
    sentences.reserve(silent.size());
    for (const auto &[index, reason] : silent) {
        sentences.push_back(fmt::format("{} shows no stacks: {}",
                                        describe_rank(plan_.first_rank + static_cast<int>(index)),
                                        reason));
    }
    events_.on_stacks_done(sentences);
}

void node::reap(pid_t pid) {
    // Ranks are reaped by pidfd. This reaps orphans that end by themselves; several SIGCHLD may be
    // merged into one, so the rest is reaped in clean_up().
    bool const ours = pid == guard_.pid() || std::ranges::any_of(ranks_, [pid](auto &each) {
                          return each.process.pid() == pid;
                      });
    if (!ours) {
        launch::reap_child(pid, nullptr, WNOHANG);
    }
}

bool node::clean_up() {
    // Also after success: processes that the ranks have left end with the job. The group leaders
    // are still zombies, so the group ids have not been reused.
    terminator_->kill_remaining();
    bool const is_clean = kill_and_reap_children(guard_.pid(), kill_limit_s);
    guard_.dismiss();
    return is_clean;
}

} // namespace diomp::run
