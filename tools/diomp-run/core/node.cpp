// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "node.h"

#include "base/read_file.h"
#include "launch/openmp_files.h"
#include "orphans.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace diomp::run {

namespace local = launch::local;

namespace {

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
    if (!guard_process) {
        return guard_process.take_failure();
    }
    std::unique_ptr<node> made(new node(loop, events, guard_process.take()));
    auto monitor = open_pipe();
    DIOMP_TRY(monitor);
    made->liveness_pipe_ = monitor.take();
    auto stacks = open_pipe();
    DIOMP_TRY(stacks);
    made->stacks_ = stacks.take();
    auto limit = add_timer(loop, [self = made.get()] { self->finish_stacks(); });
    DIOMP_TRY(limit);
    made->stacks_limit_ = limit.take();
    auto grace = add_timer(loop, [self = made.get()] { self->on_grace_over(); });
    if (!grace) {
        return grace.take_failure();
    }
    made->grace_ = grace.take();
    return made;
}

node::~node() {
    for (auto &each : ranks_) {
        loop_.remove(each.token);
    }
}

status node::start(node_plan plan,
                   const std::function<result<rank_descriptors>(int rank)> &descriptors) {
    plan_ = std::move(plan);
    oom_ = oom_counter::of_this_process();
    oom_kills_before_ = oom_.kills().value_or(0);
    ranks_.resize(static_cast<std::size_t>(plan_.ranks));
    for (int rank = plan_.first_rank; rank < plan_.first_rank + plan_.ranks; ++rank) {
        auto ends = descriptors(rank);
        if (!ends) {
            return ends.take_failure();
        }
        DIOMP_TRY(start_rank(rank, ends.value()));
    }
    return {};
}

status node::start_rank(int rank, const rank_descriptors &descriptors) {
    local::rank_info_packet setup_packet;
    setup_packet.rank = static_cast<std::uint32_t>(rank);
    setup_packet.size = static_cast<std::uint32_t>(plan_.world_size);
    setup_packet.node_first = static_cast<std::uint32_t>(plan_.first_rank);
    setup_packet.node_size = static_cast<std::uint32_t>(plan_.ranks);
    setup_packet.job_id = plan_.job_id;
    setup_packet.host = plan_.host;
    unique_fd rank_end;
    auto link = rank_link::create(loop_, events_, setup_packet, liveness_pipe_.reading.get(),
                                  stacks_.reading.get(), rank_end);
    if (!link) {
        return link.take_failure();
    }
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
    auto spawned = spawn(request);
    DIOMP_TRY(spawned);
    auto &started = at(rank);
    started.process = spawned.take();
    ++started_;
    started.link = link.take();
    guard_.monitor(pid(rank));
    // By syscall(): glibc 2.36 declares pidfd_open() with C++ linkage.
    started.pidfd = unique_fd(static_cast<int>(syscall(SYS_pidfd_open, pid(rank), 0)));
    if (!started.pidfd) {
        return system_error("pidfd_open", errno);
    }
    auto token = loop_.add(started.pidfd.get(), EPOLLIN,
                           [this, rank](std::uint32_t) { on_rank_exit(rank); });
    DIOMP_TRY(token);
    started.token = token.value();
    return {};
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
    auto how = pid(rank) > 0 ? peek_exit(pid(rank)) : std::nullopt;
    if (!how || process.ended) {
        return;
    }
    loop_.remove(process.token);
    process.ended = true;
    ++ended_;
    // Handles its last packets before its end.
    process.link->receive();
    if (how->signal == SIGKILL && !killed_) {
        how->reason = explain_kill();
    }
    if (auto const why = process.process.start_failure()) {
        events_.on_start_failure(rank, *why);
    } else {
        events_.on_exit(rank, *how);
    }
    check_stacks();
}

std::string node::explain_kill() const {
    if (oom_.kills().value_or(0) <= oom_kills_before_) {
        return {};
    }
    return fmt::format("out of memory, the kernel's OOM killer has ended it; it is the memory of "
                       "{}; use fewer ranks per node or less memory per rank, or raise the limit",
                       oom_.describe_scope());
}

void node::handle_killed(int except) {
    for (int rank = plan_.first_rank; rank < plan_.first_rank + plan_.ranks; ++rank) {
        auto const &process = at(rank);
        if (rank != except && !process.ended && pid(rank) > 0) {
            auto const how = peek_exit(pid(rank));
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

// ---- Stacks

void node::request_stacks() {
    stacks_requested_ = true;
    stacks_.writing.reset();
    stacks_limit_->arm(stacks_limit_s);
    check_stacks();
}

void node::check_stacks() {
    bool const waits = std::ranges::any_of(ranks_, [](const rank_process &each) {
        return each.link && !each.ended && each.link->can_show_stacks() &&
               !each.link->has_shown_stacks();
    });
    if (stacks_requested_ && !waits) {
        finish_stacks();
    }
}

void node::finish_stacks() {
    if (!std::exchange(stacks_requested_, false)) {
        return;
    }
    stacks_limit_->disarm();
    std::vector<std::string> silent;
    // If no rank can print stacks, the program does not use DiOMP: no message.
    bool const expected = std::ranges::any_of(
        ranks_, [](const rank_process &each) { return each.link && each.link->can_show_stacks(); });
    for (int rank = plan_.first_rank; expected && rank < plan_.first_rank + plan_.ranks; ++rank) {
        if (!at(rank).ended && at(rank).link && !at(rank).link->has_shown_stacks()) {
            silent.push_back(
                fmt::format("{} shows no stacks: {}", describe_rank(rank), explain_silence(rank)));
        }
    }
    events_.on_stacks_done(silent);
}

std::string node::explain_silence(int rank) const {
    auto const read = proc_is_ours() ? read_file(fmt::format("/proc/{}/stat", pid(rank)))
                                     : result<std::string>(std::string());
    std::string const text = read ? read.value() : std::string();
    std::size_t const name_end = text.rfind(") "); // the name may contain any characters
    char const state =
        name_end != std::string::npos && name_end + 2 < text.size() ? text[name_end + 2] : '?';
    if (state == 'T' || state == 't') {
        return "it is stopped";
    }
    if (!at(rank).link->has_joined()) {
        return "it has not joined the job";
    }
    if (!at(rank).link->can_show_stacks()) {
        return "it is outside of DiOMP, or DIOMP_STACKS is off";
    }
    return fmt::format("no answer for {} s{}", stacks_limit_s,
                       state == 'D' ? ", it hangs in the kernel" : "");
}

void node::reap(pid_t pid) {
    // Ranks are reaped by pidfd. This reaps orphans that end by themselves; several SIGCHLD may be
    // merged into one, so the rest is reaped in clean_up().
    bool const ours = pid == guard_.pid() || std::ranges::any_of(ranks_, [pid](auto &each) {
                          return each.process.pid() == pid;
                      });
    if (!ours) {
        if (waitpid(pid, nullptr, WNOHANG) == pid) {
            launch::remove_openmp_files(pid);
        }
    }
}

void node::end(int signal_number, bool notify) {
    stacks_requested_ = false;
    if (notify) {
        liveness_pipe_.writing.reset();
    }
    signal(signal_number);
    signal(SIGCONT); // a stopped process would not handle the signal
    grace_->arm(grace_s);
}

void node::kill() {
    killed_ = true;
    stacks_requested_ = false;
    liveness_pipe_.writing.reset();
    signal(SIGKILL);
    grace_->arm(kill_limit_s);
}

void node::signal(int number) {
    for (auto const &each : ranks_) {
        if (each.process.pid() > 0 && !reaped_) {
            ::kill(-each.process.pid(), number);
        }
    }
}

void node::on_grace_over() {
    if (killed_) {
        gave_up_ = true;
    } else {
        kill();
    }
}

bool node::clean_up() {
    // Also after success: processes that the ranks have left end with the job. The group leaders
    // are still zombies, so the group ids have not been reused.
    signal(SIGKILL);
    reaped_ = true;
    bool const is_clean = kill_and_reap_children(guard_.pid(), kill_limit_s);
    guard_.dismiss();
    return is_clean;
}

} // namespace diomp::run
