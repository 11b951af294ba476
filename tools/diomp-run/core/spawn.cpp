// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "spawn.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <utility>

namespace diomp::run {
namespace {

std::vector<char *> pointers(const std::vector<std::string> &strings) {
    std::vector<char *> list;
    list.reserve(strings.size() + 1);
    for (const std::string &text : strings) {
        list.push_back(const_cast<char *>(text.c_str())); // execve does not modify the strings
    }
    list.push_back(nullptr);
    return list;
}

std::vector<cpu_set_t> affinity_mask(const cpu_list &cpus) {
    std::vector<cpu_set_t> mask;
    if (!cpus.empty()) {
        mask.resize(static_cast<std::size_t>(cpus.back()) / CPU_SETSIZE + 1);
        for (int const cpu : cpus) {
            CPU_SET_S(static_cast<std::size_t>(cpu), mask.size() * sizeof(cpu_set_t), mask.data());
        }
    }
    return mask;
}

/// Data for the child, prepared before fork: between fork and exec the child only makes system
/// calls.
struct child_plan {
    const spawn_request &request;
    std::vector<char *> arguments;
    std::vector<char *> shell_arguments; ///< for a script without an interpreter line
    std::vector<char *> environment;
    std::vector<cpu_set_t> affinity;
    std::vector<int> kept; ///< descriptors, ascending
    pid_t parent;
};

/// Closes all other descriptors. Ranks detect the end of the job, and diomp-run the end of ranks,
/// by closed descriptors of diomp-run: copies must not stay open while this child waits for a
/// processor.
void close_others(const std::vector<int> &kept) {
    unsigned next = 0;
    for (int const fd : kept) {
        auto const number = static_cast<unsigned>(fd);
        if (number > next) {
            close_range(next, number - 1, 0);
        }
        next = number + 1;
    }
    close_range(next, ~0U, 0);
}

bool redirect(int from, int to) {
    // With equal numbers, dup2 would leave close-on-exec set.
    return from == to ? fcntl(to, F_SETFD, 0) == 0 : dup2(from, to) == to;
}

[[noreturn]] void run_child(const child_plan &plan, const exec_outcome &outcome) {
    const spawn_request &request = plan.request;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != plan.parent) {
        _exit(1); // diomp-run died before the line above
    }
    close_others(plan.kept);
    setpgid(0, 0);
    request.signals.restore_dispositions();
    setrlimit(RLIMIT_NOFILE, &request.open_files);
    if (!plan.affinity.empty()) {
        sched_setaffinity(0, plan.affinity.size() * sizeof(cpu_set_t), plan.affinity.data());
    }
    bool const redirected = redirect(request.standard_input, STDIN_FILENO) &&
                            redirect(request.standard_output, STDOUT_FILENO) &&
                            redirect(request.standard_error, STDERR_FILENO) &&
                            (request.inherited < 0 || fcntl(request.inherited, F_SETFD, 0) == 0);
    if (redirected) {
        request.signals.restore_mask(); // a signal that is pending takes effect here
        execve(request.path.c_str(), plan.arguments.data(), plan.environment.data());
        if (errno == ENOEXEC) {
            execve("/bin/sh", plan.shell_arguments.data(), plan.environment.data());
        }
    }
    outcome.report(errno);
    _exit(1);
}

std::vector<int> kept_descriptors(const spawn_request &request) {
    std::vector<int> kept{request.standard_input, request.standard_output, request.standard_error,
                          request.inherited};
    std::erase_if(kept, [](int fd) { return fd < 0; });
    std::ranges::sort(kept);
    return kept;
}

} // namespace

// ---- Result of exec

result<exec_outcome> exec_outcome::create() {
    void *const page =
        mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return system_error("mmap", errno);
    }
    return exec_outcome(static_cast<int *>(page));
}

exec_outcome::exec_outcome(exec_outcome &&other) noexcept
    : page_(std::exchange(other.page_, nullptr)) {}

exec_outcome &exec_outcome::operator=(exec_outcome &&other) noexcept {
    std::swap(page_, other.page_);
    return *this;
}

exec_outcome::~exec_outcome() {
    if (page_ != nullptr) {
        munmap(page_, sizeof(int));
    }
}

void exec_outcome::report(int error_number) const { std::atomic_ref(*page_).store(error_number); }

int exec_outcome::error_number() const {
    return page_ != nullptr ? std::atomic_ref(*page_).load() : 0;
}

std::optional<error> spawned_process::start_failure() const {
    if (int const number = outcome_.error_number(); number != 0) {
        return system_error("cannot execute " + path_, number);
    }
    return std::nullopt;
}

result<spawned_process> spawn(const spawn_request &request) {
    auto outcome = exec_outcome::create();
    DIOMP_TRY(outcome);
    std::vector<std::string> shell{"sh", request.path};
    shell.insert(shell.end(), request.arguments.begin() + 1, request.arguments.end());
    child_plan const plan{request,
                          pointers(request.arguments),
                          pointers(shell),
                          pointers(request.environment),
                          affinity_mask(request.cpus),
                          kept_descriptors(request),
                          getpid()};
    pid_t const child = fork();
    if (child == 0) {
        run_child(plan, outcome.value());
    }
    if (child < 0) {
        return system_error("cannot start a process", errno);
    }
    // The child does this too. Done here, the group can be signalled before the child has run.
    // Fails after the child's exec, when it is no longer needed.
    setpgid(child, child);
    return spawned_process(child, outcome.take(), request.path);
}

} // namespace diomp::run
