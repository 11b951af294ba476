// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "spawn.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace diomp::run {
namespace {

std::vector<char *> pointers(const std::vector<std::string> &strings) {
    std::vector<char *> list;
    list.reserve(strings.size() + 1);
    for (const std::string &text : strings) {
        list.push_back(const_cast<char *>(text.c_str())); // exec's type; it does not write
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

/// Everything the child needs, prepared before vfork: between vfork and exec only system calls are
/// allowed.
struct child_plan {
    const spawn_request &request;
    std::vector<char *> arguments;
    std::vector<char *> shell_arguments; ///< for a script without an interpreter line
    std::vector<char *> environment;
    std::vector<cpu_set_t> affinity;
    pid_t parent;
};

/// The place where the child leaves why exec failed. A shared page rather than a variable, so that
/// it also works where a sanitizer turns vfork into fork.
class shared_errno {
public:
    shared_errno()
        : page_(mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                     0)) {}
    shared_errno(const shared_errno &) = delete;
    shared_errno &operator=(const shared_errno &) = delete;
    ~shared_errno() {
        if (*this) {
            munmap(page_, sizeof(int));
        }
    }
    explicit operator bool() const { return page_ != MAP_FAILED; }
    [[nodiscard]] volatile int &value() const { return *static_cast<volatile int *>(page_); }

private:
    void *page_;
};

bool redirect(int from, int to) {
    // Same number: dup2 would leave close-on-exec set.
    return from == to ? fcntl(to, F_SETFD, 0) == 0 : dup2(from, to) == to;
}

[[noreturn]] void run_child(const child_plan &plan, volatile int &why) {
    const spawn_request &request = plan.request;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != plan.parent) {
        _exit(1); // diomp-run died before the line above
    }
    setpgid(0, 0);
    for (int signal = 1; signal < NSIG; ++signal) {
        struct sigaction action{};
        action.sa_handler = SIG_DFL;
        sigaction(signal, &action, nullptr); // SIGKILL and SIGSTOP refuse; that is fine
    }
    setrlimit(RLIMIT_NOFILE, &request.open_files);
    if (!plan.affinity.empty()) {
        sched_setaffinity(0, plan.affinity.size() * sizeof(cpu_set_t), plan.affinity.data());
    }
    bool const redirected = redirect(request.standard_input, STDIN_FILENO) &&
                            redirect(request.standard_output, STDOUT_FILENO) &&
                            redirect(request.standard_error, STDERR_FILENO) &&
                            (request.inherited < 0 || fcntl(request.inherited, F_SETFD, 0) == 0);
    if (redirected) {
        sigprocmask(SIG_SETMASK, &request.signal_mask, nullptr);
        execve(request.path.c_str(), plan.arguments.data(), plan.environment.data());
        if (errno == ENOEXEC) {
            execve("/bin/sh", plan.shell_arguments.data(), plan.environment.data());
        }
    }
    why = errno;
    _exit(1);
}

} // namespace

result<pid_t> spawn(const spawn_request &request) {
    std::vector<std::string> shell{"sh", request.path};
    shell.insert(shell.end(), request.arguments.begin() + 1, request.arguments.end());
    child_plan const plan{request,
                          pointers(request.arguments),
                          pointers(shell),
                          pointers(request.environment),
                          affinity_mask(request.cpus),
                          getpid()};
    shared_errno const why;
    if (!why) {
        return system_error("mmap", errno);
    }
    // posix_spawn cannot do what the child does; see the header.
    pid_t const child = vfork(); // NOLINT(bugprone-unsafe-functions)
    if (child == 0) {
        run_child(plan, why.value());
    }
    if (child < 0) {
        return system_error("cannot start a process", errno);
    }
    if (why.value() != 0) {
        int const error = why.value();
        waitpid(child, nullptr, 0);
        return system_error("cannot execute " + request.path, error);
    }
    return child;
}

} // namespace diomp::run
