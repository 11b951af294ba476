// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Each function tries the thing itself where it can: what a container or a security module forbids
// shows nowhere else.
#include "base/descriptor_message.h"
#include "base/unique_fd.h"
#include "conduit/window.h"
#include "doctor.h"

#include <fmt/core.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace diomp::info {
namespace {

std::string reason() { return std::strerror(errno); }

/// A shared file of 1 GiB without disk behind it, of which one page is touched.
finding memory_file() {
    finding found{"memory files", verdict::fine, "memfd_create gives shared memory", ""};
    constexpr std::size_t size_bytes = std::size_t{1} << 30;
    unique_fd const file(memfd_create("diomp-doctor", MFD_CLOEXEC));
    std::string failed;
    std::signal(SIGXFSZ, SIG_IGN); // under ulimit -f ftruncate() tells
    if (file.get() < 0) {
        failed = "memfd_create: " + reason();
    } else if (ftruncate(file.get(), size_bytes) != 0) {
        failed = "ftruncate to 1 GiB: " + reason();
    } else {
        void *memory = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                            file.get(), 0);
        if (memory == MAP_FAILED) {
            failed = "mmap of 1 GiB: " + reason();
        } else {
            *static_cast<volatile char *>(memory) = 1;
            munmap(memory, size_bytes);
        }
    }
    if (!failed.empty()) {
        found = {"memory files", verdict::bad, failed,
                 "segments are memory files: allow memfd_create in the container, look at ulimit "
                 "-v and -f"};
    }
    return found;
}

/// Where the segments would lie. Only this process's own mappings can be in the way.
finding address_window(const settings &values, const machine &here, int ranks) {
    std::uint64_t const base =
        values.segment_base != 0 ? values.segment_base : conduit::window::default_base();
    std::size_t const per_rank =
        values.segment_size_bytes != 0 ? values.segment_size_bytes : here.memory_bytes;
    auto const wanted = static_cast<double>(per_rank) * ranks;
    std::size_t const span =
        values.segment_size_bytes != 0 || wanted < static_cast<double>(conduit::window::max_span())
            ? static_cast<std::size_t>(wanted)
            : conduit::window::max_span();
    void *wish = reinterpret_cast<void *>(
        base); // NOLINT(performance-no-int-to-ptr): an address is what is asked about
    void *got = mmap(wish, span, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == wish) {
        munmap(got, span);
        return {"address window", verdict::fine,
                fmt::format("{} from {:#x} are free", format_size(span), base), ""};
    }
    std::string const why = got == MAP_FAILED ? reason() : "the system chose another place";
    if (got != MAP_FAILED) {
        munmap(got, span);
    }
    return {
        "address window", verdict::bad,
        fmt::format("{} from {:#x}: {}", format_size(span), base, why),
        "set DIOMP_SEGMENT_BASE to a free place or DIOMP_SEGMENT_SIZE to less; look at ulimit -v"};
}

/// Resource limits below what a job of this size needs.
std::vector<finding> limits(int ranks) {
    std::vector<finding> findings;
    rlimit limit{};
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        findings.push_back(
            {"address space", verdict::note,
             fmt::format("limited to {} per process (ulimit -v)", format_size(limit.rlim_cur)),
             "ulimit -v unlimited; segments only reserve addresses"});
    } else {
        findings.push_back({"address space", verdict::fine, "no limit (ulimit -v)", ""});
    }
    if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) {
        std::string const amount =
            limit.rlim_cur == RLIM_INFINITY ? "no limit" : format_size(limit.rlim_cur);
        findings.push_back({"locked memory", verdict::fine,
                            fmt::format("{} (ulimit -l); ranks on one machine lock none", amount),
                            ""});
    }
    auto const files_needed =
        4 * static_cast<rlim_t>(ranks) + 64; // diomp-run: pipes and a socket per rank
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < files_needed) {
        findings.push_back({"open files", verdict::bad,
                            fmt::format("{} allowed, diomp-run needs {} for {} ranks",
                                        limit.rlim_cur, files_needed, ranks),
                            fmt::format("ulimit -n {}", files_needed)});
    }
    auto const overcommit = read_number("/proc/sys/vm/overcommit_memory");
    if (overcommit == 2) {
        findings.push_back({"overcommit", verdict::note,
                            "vm.overcommit_memory is 2: reservations may count as use",
                            "set it to 0 or 1, or DIOMP_SEGMENT_SIZE to what the program needs"});
    } else {
        findings.push_back({"overcommit", verdict::fine,
                            fmt::format("vm.overcommit_memory is {}", overcommit.value_or(0)), ""});
    }
    constexpr long long maps_wanted = 4096;
    auto const maps = read_number("/proc/sys/vm/max_map_count").value_or(maps_wanted);
    findings.push_back({"mappings", maps < maps_wanted ? verdict::note : verdict::fine,
                        fmt::format("vm.max_map_count is {}", maps),
                        maps < maps_wanted ? "sysctl vm.max_map_count=65530" : ""});
    return findings;
}

finding processors(const machine &here, int ranks) {
    double usable = here.usable_threads;
    std::string detail =
        fmt::format("{} ranks on {} usable hardware threads", ranks, here.usable_threads);
    if (here.cpu_quota && *here.cpu_quota < usable) {
        usable = *here.cpu_quota;
        detail += fmt::format(", of which the control group grants {:.1f}", usable);
    }
    if (ranks > usable) {
        return {"processors", verdict::note, detail,
                "ranks will take turns; start at most as many as there are cores"};
    }
    return {"processors", verdict::fine, detail, ""};
}

finding memory_amount(const machine &here) {
    std::size_t usable = here.available_bytes;
    std::string detail = fmt::format("{} available", format_size(here.available_bytes));
    if (here.memory_limit_bytes && *here.memory_limit_bytes < here.memory_bytes) {
        usable = std::min(usable, *here.memory_limit_bytes);
        detail +=
            fmt::format(", the control group grants {}", format_size(*here.memory_limit_bytes));
    }
    constexpr std::size_t wanted_bytes = std::size_t{256} << 20;
    bool const little = usable < wanted_bytes;
    return {"memory", little ? verdict::note : verdict::fine, detail,
            little ? "a job of a few ranks needs about 256 MiB; free some" : ""};
}

/// Sends a descriptor through a socket pair, as ranks do with their segments.
finding unix_sockets() {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        return {"Unix sockets", verdict::bad, "socketpair: " + reason(),
                "allow Unix sockets in the container"};
    }
    unique_fd const near(ends[0]);
    unique_fd const far(ends[1]);
    char byte = 'd';
    descriptor_message leaving(&byte, 1);
    leaving.attach(near.get());
    if (sendmsg(near.get(), leaving.header(), MSG_NOSIGNAL) != 1) {
        return {"Unix sockets", verdict::bad, "a descriptor cannot be sent: " + reason(),
                "allow SCM_RIGHTS in the container"};
    }
    descriptor_message arriving(&byte, 1);
    if (recvmsg(far.get(), arriving.header(), MSG_CMSG_CLOEXEC) != 1 || !arriving.take()) {
        return {"Unix sockets", verdict::bad, "a descriptor does not arrive: " + reason(),
                "allow SCM_RIGHTS in the container"};
    }
    return {"Unix sockets", verdict::fine, "descriptors travel between processes", ""};
}

/// One child reads the other's memory: siblings, as ranks are, since a parent may always read its
/// child.
finding cross_memory_attach() {
    constexpr const char *what = "memory attach";
    constexpr const char *remedy =
        "registered memory goes through messages, which is slower; sysctl "
        "kernel.yama.ptrace_scope=1 or less, or CAP_SYS_PTRACE in the container";
    static const std::array<char, 16> secret{"diomp-doctor"};
    std::array<int, 2> ready{};
    if (pipe(ready.data()) != 0) {
        return {what, verdict::note, "pipe: " + reason(), ""};
    }
    unique_fd const read_end(ready[0]);
    unique_fd write_end(ready[1]);
    pid_t const owner = fork();
    if (owner == 0) {
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0,
              0); // as every rank does; needed under yama's scope 1
        char const go = 'g';
        [[maybe_unused]] auto const written = write(write_end.get(), &go, 1);
        pause();
        _exit(0);
    }
    write_end = unique_fd();
    char go = 0;
    int error_number = ECHILD;
    if (owner > 0 && read(read_end.get(), &go, 1) == 1) {
        pid_t const reader = fork();
        if (reader == 0) {
            std::array<char, 16> copy{};
            iovec const local{copy.data(), copy.size()};
            iovec const remote{const_cast<char *>(secret.data()), secret.size()};
            ssize_t const bytes = process_vm_readv(owner, &local, 1, &remote, 1, 0);
            _exit(bytes == static_cast<ssize_t>(copy.size()) && copy == secret
                      ? 0
                      : (errno != 0 ? errno : EIO));
        }
        int status = 0;
        if (reader > 0 && waitpid(reader, &status, 0) == reader && WIFEXITED(status)) {
            error_number = WEXITSTATUS(status);
        }
    }
    if (owner > 0) {
        kill(owner, SIGKILL);
        waitpid(owner, nullptr, 0);
    }
    std::string const scope = read_line("/proc/sys/kernel/yama/ptrace_scope");
    std::string const yama = scope.empty() ? "no yama" : "yama ptrace_scope " + scope;
    if (error_number != 0) {
        return {what, verdict::note,
                fmt::format("process_vm_readv: {} ({})", std::strerror(error_number), yama),
                remedy};
    }
    return {what, verdict::fine,
            fmt::format("a rank can read another's registered memory ({})", yama), ""};
}

} // namespace

std::vector<finding> examine_system(const settings &values, const machine &here, int ranks) {
    std::vector<finding> findings{memory_file(), address_window(values, here, ranks)};
    for (finding &each : limits(ranks)) {
        findings.push_back(std::move(each));
    }
    findings.push_back(processors(here, ranks));
    findings.push_back(memory_amount(here));
    findings.push_back(unix_sockets());
    findings.push_back(cross_memory_attach());
    return findings;
}

} // namespace diomp::info
