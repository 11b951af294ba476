// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "node.h"

#include "base/read_file.h"
#include "launch/openmp_files.h"
#include "strays.h"

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

/// Unless the user has said something.
void set_helper_threads(std::vector<std::string> &environment, const std::string &share,
                        const cpu_list &bound_to) {
    for (std::string const &each : environment) {
        if (each.starts_with("LIBOMP_NUM_HIDDEN_HELPER_THREADS=") ||
            each.starts_with("LIBOMP_USE_HIDDEN_HELPER_TASK=")) {
            return;
        }
    }
    std::size_t const processors = bound_to.empty() ? allowed_cpus().size() : bound_to.size();
    environment.push_back(
        fmt::format("LIBOMP_NUM_HIDDEN_HELPER_THREADS={}", helper_threads(share, processors)));
}

} // namespace

result<std::unique_ptr<node>> node::create(event_loop &loop, node_events &events,
                                           const std::string &mark) {
    // Orphans of the job become ours and not init's, so that none is lost.
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    auto keeper = guard::start(mark);
    if (!keeper) {
        return keeper.take_failure();
    }
    std::unique_ptr<node> made(new node(loop, events, keeper.take()));
    auto watch = open_pipe();
    DIOMP_TRY(watch);
    made->watch_ = watch.take();
    auto stacks = open_pipe();
    DIOMP_TRY(stacks);
    made->stacks_ = stacks.take();
    auto limit = add_timer(loop, [self = made.get()] { self->end_stacks(); });
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
    local::welcome_packet welcome;
    welcome.rank = static_cast<std::uint32_t>(rank);
    welcome.size = static_cast<std::uint32_t>(plan_.world_size);
    welcome.node_first = static_cast<std::uint32_t>(plan_.first_rank);
    welcome.node_size = static_cast<std::uint32_t>(plan_.ranks);
    welcome.job_id = plan_.job_id;
    welcome.host = plan_.host;
    unique_fd rank_end;
    auto link = rank_link::create(loop_, events_, welcome, watch_.reading.get(),
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
        std::string const &share =
            plan_.remote_devices[static_cast<std::size_t>(rank - plan_.first_rank)];
        request.environment.push_back(std::string(variable) + share);
        set_helper_threads(request.environment, share,
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
    guard_.watch(pid(rank));
    // Not by its wrapper: glibc 2.36 declares that with C++ linkage.
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

std::string node::name_rank(int rank) const {
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

// ---- The end of ranks

void node::on_rank_exit(int rank) {
    auto &process = at(rank);
    auto how = pid(rank) > 0 ? peek_exit(pid(rank)) : std::nullopt;
    if (!how || process.ended) {
        return;
    }
    loop_.remove(process.token);
    process.ended = true;
    ++ended_;
    // What it said last comes before what is said about it.
    process.link->receive();
    if (how->signal == SIGKILL && !killed_) {
        how->reason = explain_kill();
    }
    if (auto const why = process.process.start_failure()) {
        events_.on_start_failure(rank, *why);
    } else {
        events_.on_exit(rank, *how);
    }
    look_for_stacks();
}

std::string node::explain_kill() const {
    if (oom_.kills().value_or(0) <= oom_kills_before_) {
        return {};
    }
    return fmt::format("out of memory, the kernel's OOM killer has ended it; it is the memory of "
                       "{}; use fewer ranks per node or less memory per rank, or raise the limit",
                       oom_.describe_place());
}

void node::look_for_killed(int except) {
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

void node::look() {
    for (int rank = plan_.first_rank; rank < plan_.first_rank + plan_.ranks; ++rank) {
        if (at(rank).link && !at(rank).ended) {
            at(rank).link->receive();
            on_rank_exit(rank);
        }
    }
}

// ---- Stacks

void node::ask_stacks() {
    asks_stacks_ = true;
    stacks_.writing.reset();
    stacks_limit_->arm(stacks_limit_s);
    look_for_stacks();
}

void node::look_for_stacks() {
    bool const waits = std::ranges::any_of(ranks_, [](const rank_process &each) {
        return each.link && !each.ended && each.link->can_show() && !each.link->has_shown();
    });
    if (asks_stacks_ && !waits) {
        end_stacks();
    }
}

void node::end_stacks() {
    if (!std::exchange(asks_stacks_, false)) {
        return;
    }
    stacks_limit_->disarm();
    std::vector<std::string> silent;
    // Programs without DiOMP show nothing, and nobody misses it.
    bool const expected = std::ranges::any_of(
        ranks_, [](const rank_process &each) { return each.link && each.link->can_show(); });
    for (int rank = plan_.first_rank; expected && rank < plan_.first_rank + plan_.ranks; ++rank) {
        if (!at(rank).ended && at(rank).link && !at(rank).link->has_shown()) {
            silent.push_back(
                fmt::format("{} shows no stacks: {}", name_rank(rank), explain_silence(rank)));
        }
    }
    events_.on_stacks_over(silent);
}

std::string node::explain_silence(int rank) const {
    auto const read = proc_is_ours() ? read_file(fmt::format("/proc/{}/stat", pid(rank)))
                                     : result<std::string>(std::string());
    std::string const text = read ? read.value() : std::string();
    std::size_t const name_end = text.rfind(") "); // the name may have any characters
    char const state =
        name_end != std::string::npos && name_end + 2 < text.size() ? text[name_end + 2] : '?';
    if (state == 'T' || state == 't') {
        return "it is stopped";
    }
    if (!at(rank).link->has_joined()) {
        return "it has not joined the job";
    }
    if (!at(rank).link->can_show()) {
        return "it is outside of DiOMP, or DIOMP_STACKS is off";
    }
    return fmt::format("no answer for {} s{}", stacks_limit_s,
                       state == 'D' ? ", it hangs in the kernel" : "");
}

void node::reap(pid_t pid) {
    // Ranks have their pidfd. This reaps orphans that ended on their own; what signals that were
    // merged into one leave out waits for the end.
    bool const ours = pid == guard_.pid() || std::ranges::any_of(ranks_, [pid](auto &each) {
                          return each.process.pid() == pid;
                      });
    if (!ours) {
        if (waitpid(pid, nullptr, WNOHANG) == pid) {
            launch::remove_openmp_files(pid);
        }
    }
}

void node::end(int signal_number, bool tell) {
    asks_stacks_ = false;
    if (tell) {
        watch_.writing.reset();
    }
    signal(signal_number);
    signal(SIGCONT); // a stopped process would not follow
    grace_->arm(grace_s);
}

void node::kill() {
    killed_ = true;
    asks_stacks_ = false;
    watch_.writing.reset();
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
    // Also after success: what the ranks have left behind ends with the job. Their leaders are
    // still zombies, so these group numbers are theirs.
    signal(SIGKILL);
    reaped_ = true;
    bool const is_clean = kill_and_reap_children(guard_.pid(), kill_limit_s);
    guard_.dismiss();
    return is_clean;
}

} // namespace diomp::run
