// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "spawn.h"

#include <algorithm>
#include <array>
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
    int *error_number; ///< where the child reports why exec failed
    std::vector<char *> arguments;
    std::vector<char *> shell_arguments; ///< for a script without an interpreter line
    std::vector<char *> environment;
    std::vector<cpu_set_t> affinity; ///< empty: that of the caller
    std::vector<int> kept;           ///< descriptors, ascending
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

bool redirect_all(const spawn_request &request) {
    return redirect(request.standard_input, STDIN_FILENO) &&
           redirect(request.standard_output, STDOUT_FILENO) &&
           redirect(request.standard_error, STDERR_FILENO) &&
           (request.inherited < 0 || fcntl(request.inherited, F_SETFD, 0) == 0);
}

/// For a child that shares the caller's table of descriptors. Its own one has those up to the
/// slots.
bool redirect_slots(const spawn_request &request) {
    const vfork_slots &slots = *request.slots;
    return close_range(slots.highest() + 1, ~0U, CLOSE_RANGE_UNSHARE) == 0 &&
           close_range(STDERR_FILENO + 1, slots.highest(), CLOSE_RANGE_CLOEXEC) == 0 &&
           redirect(slots[0], STDIN_FILENO) && redirect(slots[1], STDOUT_FILENO) &&
           redirect(slots[2], STDERR_FILENO) &&
           (request.inherited < 0 || redirect(slots[3], request.inherited));
}

[[noreturn]] void run_child(const child_plan &plan) {
    const spawn_request &request = plan.request;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != plan.parent) {
        _exit(1); // diomp-run died before the line above
    }
    if (request.slots == nullptr) {
        close_others(plan.kept);
    }
    bool const redirected =
        request.slots != nullptr ? redirect_slots(request) : redirect_all(request);
    setpgid(0, 0);
    request.signals.restore_dispositions();
    setrlimit(RLIMIT_NOFILE, &request.open_files);
    if (!plan.affinity.empty()) {
        sched_setaffinity(0, plan.affinity.size() * sizeof(cpu_set_t), plan.affinity.data());
    }
    if (redirected) {
        request.signals.restore_mask(); // a signal that is pending takes effect here
        execve(request.path.c_str(), plan.arguments.data(), plan.environment.data());
        if (errno == ENOEXEC) {
            execve("/bin/sh", plan.shell_arguments.data(), plan.environment.data());
        }
    }
    std::atomic_ref(*plan.error_number).store(errno);
    _exit(1);
}

std::array<int, vfork_slots::num> descriptors_of(const spawn_request &request) {
    return {request.standard_input, request.standard_output, request.standard_error,
            request.inherited};
}

std::vector<int> kept_descriptors(const spawn_request &request) {
    auto const all = descriptors_of(request);
    std::vector<int> kept(all.begin(), all.end());
    std::erase_if(kept, [](int fd) { return fd < 0; });
    std::ranges::sort(kept);
    return kept;
}

int run_vfork_child(void *plan) { run_child(*static_cast<const child_plan *>(plan)); }

/// Holds this thread on its processor, which it leaves to the child: on another one the child may
/// wait behind ranks that have started, while this one is idle. Without effect if the system does
/// not permit it.
class same_processor {
public:
    same_processor() : allowed_(max_sets) {
        cpu_set_t own;
        CPU_ZERO(&own);
        int const cpu = sched_getcpu();
        if (cpu < 0 || cpu >= CPU_SETSIZE ||
            sched_getaffinity(0, allowed_.size() * sizeof(cpu_set_t), allowed_.data()) != 0) {
            allowed_.clear();
            return;
        }
        CPU_SET(static_cast<std::size_t>(cpu), &own);
        sched_setaffinity(0, sizeof(own), &own);
    }
    ~same_processor() {
        if (!allowed_.empty()) {
            sched_setaffinity(0, allowed_.size() * sizeof(cpu_set_t), allowed_.data());
        }
    }
    same_processor(const same_processor &) = delete;
    same_processor &operator=(const same_processor &) = delete;

    /// The processors that this thread had before, and the child gets; empty: no change.
    [[nodiscard]] const std::vector<cpu_set_t> &allowed() const { return allowed_; }

private:
    static constexpr std::size_t max_sets = 8;
    std::vector<cpu_set_t> allowed_;
};

/// The child runs on the memory of this thread, which sleeps until its exec. No handler of this
/// process may run there.
pid_t vfork_child(child_plan &plan) {
    constexpr std::size_t stack_bytes = std::size_t{64} << 10;
    alignas(16) std::array<std::byte, stack_bytes> stack; // NOLINT(*-member-init)
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    same_processor const here;
    plan.affinity = here.allowed();
    pid_t const child = clone(run_vfork_child, stack.data() + stack.size(),
                              CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, &plan);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return child;
}

pid_t fork_child(const child_plan &plan) {
    pid_t const child = fork();
    if (child == 0) {
        run_child(plan);
    }
    return child;
}

} // namespace

// ---- Descriptors for children that share those of the caller

result<vfork_slots> vfork_slots::create() {
    vfork_slots made;
    made.null_ = unique_fd(open("/dev/null", O_RDWR | O_CLOEXEC));
    for (unique_fd &each : made.fds_) {
        each = unique_fd(fcntl(made.null_.get(), F_DUPFD_CLOEXEC, made.null_.get()));
        if (!each.valid()) {
            return system_error("cannot open /dev/null", errno);
        }
    }
    return made;
}

status vfork_slots::fill(const std::array<int, num> &with) const {
    for (std::size_t slot = 0; slot < num; ++slot) {
        if (dup3(with[slot] < 0 ? null_.get() : with[slot], fds_[slot].get(), O_CLOEXEC) < 0) {
            return system_error("dup3", errno);
        }
    }
    return {};
}

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
    : page_(std::exchange(other.page_, nullptr)), known_(other.known_) {}

exec_outcome &exec_outcome::operator=(exec_outcome &&other) noexcept {
    std::swap(page_, other.page_);
    std::swap(known_, other.known_);
    return *this;
}

exec_outcome::~exec_outcome() {
    if (page_ != nullptr) {
        munmap(page_, sizeof(int));
    }
}

int exec_outcome::error_number() const {
    return page_ != nullptr ? std::atomic_ref(*page_).load() : known_;
}

std::optional<error> spawned_process::start_failure() const {
    if (int const number = outcome_.error_number(); number != 0) {
        return system_error("cannot execute " + path_, number);
    }
    return std::nullopt;
}

result<spawned_process> spawn(const spawn_request &request) {
    exec_outcome outcome;
    int error_number = 0;
    if (request.slots != nullptr) {
        DIOMP_TRY(request.slots->fill(descriptors_of(request)));
    } else {
        auto created = exec_outcome::create();
        DIOMP_TRY(created);
        outcome = created.take();
    }
    std::vector<std::string> shell{"sh", request.path};
    shell.insert(shell.end(), request.arguments.begin() + 1, request.arguments.end());
    child_plan plan{request,
                    request.slots != nullptr ? &error_number : outcome.page(),
                    pointers(request.arguments),
                    pointers(shell),
                    pointers(request.environment),
                    affinity_mask(request.cpus),
                    kept_descriptors(request),
                    getpid()};
    pid_t const child = request.slots != nullptr ? vfork_child(plan) : fork_child(plan);
    if (child < 0) {
        return system_error("cannot start a process", errno);
    }
    if (request.slots != nullptr) {
        outcome = exec_outcome(error_number);
        DIOMP_TRY(request.slots->fill({-1, -1, -1, -1}));
    }
    // The child does this too. Done here, the group can be signalled before the child has run.
    // Fails after the child's exec, when it is no longer needed.
    setpgid(child, child);
    return spawned_process(child, std::move(outcome), request.path);
}

} // namespace diomp::run
