// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Each check tries the operation itself if possible: restrictions by containers and security
// modules are not visible otherwise.
#include "base/descriptor_message.h"
#include "base/sizes.h"
#include "base/unique_fd.h"
#include "doctor.h"
#include "transport/arena.h"

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
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace diomp::info {
namespace {

std::string errno_text() { return std::strerror(errno); }

/// Creates a memory file of 1 GiB, maps it shared and touches one page.
finding check_memory_files() {
    finding found{"memory files", severity::fine, "memfd_create gives shared memory", ""};
    constexpr std::size_t size_bytes = std::size_t{1} << 30;
    unique_fd const file(memfd_create("diomp-doctor", MFD_CLOEXEC));
    std::string failed;
    std::signal(SIGXFSZ, SIG_IGN); // under ulimit -f, ftruncate() returns the error
    if (file.get() < 0) {
        failed = "memfd_create: " + errno_text();
    } else if (ftruncate(file.get(), size_bytes) != 0) {
        failed = "ftruncate to 1 GiB: " + errno_text();
    } else {
        void *memory = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                            file.get(), 0);
        if (memory == MAP_FAILED) {
            failed = "mmap of 1 GiB: " + errno_text();
        } else {
            *static_cast<volatile char *>(memory) = 1;
            munmap(memory, size_bytes);
        }
    }
    if (!failed.empty()) {
        found = {"memory files", severity::bad, failed,
                 "segments are memory files: allow memfd_create in the container, check ulimit "
                 "-v and -f"};
    }
    return found;
}

/// Checks the address range of the segments. Only mappings of this process can occupy it.
finding check_address_range(const settings &values, const machine &here, int ranks) {
    std::uint64_t const base = values.memory.segment_base != 0 ? values.memory.segment_base
                                                               : transport::arena::default_base();
    std::size_t const per_rank = values.memory.segment_size_bytes != 0
                                     ? values.memory.segment_size_bytes
                                     : here.memory_bytes;
    auto const wanted = static_cast<double>(per_rank) * ranks;
    std::size_t const span = values.memory.segment_size_bytes != 0 ||
                                     wanted < static_cast<double>(transport::arena::max_span())
                                 ? static_cast<std::size_t>(wanted)
                                 : transport::arena::max_span();
    if (wanted > static_cast<double>(transport::arena::max_span()) &&
        values.memory.segment_size_bytes != 0) {
        return {"address range", severity::bad,
                fmt::format("{} ranks times {} per segment exceed the address arena of {}", ranks,
                            format_size(per_rank), format_size(transport::arena::max_span())),
                "set DIOMP_SEGMENT_SIZE to a smaller value"};
    }
    void *hint =
        reinterpret_cast<void *>(base); // NOLINT(performance-no-int-to-ptr): mmap takes an address
    void *mapped = mmap(hint, span, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (mapped == hint) {
        munmap(mapped, span);
        return {"address range", severity::fine,
                fmt::format("{} from {:#x} are free", format_size(span), base), ""};
    }
    std::string const why =
        mapped == MAP_FAILED ? errno_text() : "the system chose another address";
    if (mapped != MAP_FAILED) {
        munmap(mapped, span);
    }
    return {
        "address range", severity::bad,
        fmt::format("{} from {:#x}: {}", format_size(span), base, why),
        "set DIOMP_SEGMENT_BASE to a free address or DIOMP_SEGMENT_SIZE to less; check ulimit -v"};
}

/// Checks resource limits for a job of this size.
std::vector<finding> check_limits(int ranks) {
    std::vector<finding> findings;
    rlimit limit{};
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        findings.push_back(
            {"address space", severity::note,
             fmt::format("limited to {} per process (ulimit -v)", format_size(limit.rlim_cur)),
             "ulimit -v unlimited; segments only reserve addresses"});
    } else {
        findings.push_back({"address space", severity::fine, "no limit (ulimit -v)", ""});
    }
    if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) {
        std::string const amount =
            limit.rlim_cur == RLIM_INFINITY ? "no limit" : format_size(limit.rlim_cur);
        findings.push_back(
            {"locked memory", severity::fine,
             fmt::format("{} (ulimit -l); ranks on one machine do not lock memory", amount), ""});
    }
    auto const files_needed =
        4 * static_cast<rlim_t>(ranks) + 64; // for diomp-run: pipes and a socket per rank
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < files_needed) {
        findings.push_back({"open files", severity::bad,
                            fmt::format("{} allowed, diomp-run needs {} for {} ranks",
                                        limit.rlim_cur, files_needed, ranks),
                            fmt::format("ulimit -n {}", files_needed)});
    }
    auto const overcommit = read_number("/proc/sys/vm/overcommit_memory");
    if (overcommit == 2) {
        findings.push_back({"overcommit", severity::note,
                            "vm.overcommit_memory is 2: reservations may count as use",
                            "set it to 0 or 1, or DIOMP_SEGMENT_SIZE to what the program needs"});
    } else {
        findings.push_back({"overcommit", severity::fine,
                            fmt::format("vm.overcommit_memory is {}", overcommit.value_or(0)), ""});
    }
    constexpr long long maps_wanted = 4096;
    auto const maps = read_number("/proc/sys/vm/max_map_count").value_or(maps_wanted);
    findings.push_back({"mappings", maps < maps_wanted ? severity::note : severity::fine,
                        fmt::format("vm.max_map_count is {}", maps),
                        maps < maps_wanted ? "sysctl vm.max_map_count=65530" : ""});
    return findings;
}

finding check_processors(const machine &here, int ranks) {
    double usable = here.usable_threads;
    std::string detail =
        fmt::format("{} ranks on {} usable hardware threads", ranks, here.usable_threads);
    if (here.cpu_quota && *here.cpu_quota < usable) {
        usable = *here.cpu_quota;
        detail += fmt::format(", of which the control group grants {:.1f}", usable);
    }
    if (ranks > usable) {
        return {"processors", severity::note, detail,
                "ranks will share cores; start at most as many ranks as there are cores"};
    }
    return {"processors", severity::fine, detail, ""};
}

finding check_memory(const machine &here) {
    std::size_t usable = here.available_bytes;
    std::string detail = fmt::format("{} available", format_size(here.available_bytes));
    if (here.memory_limit_bytes && *here.memory_limit_bytes < here.memory_bytes) {
        usable = std::min(usable, *here.memory_limit_bytes);
        detail +=
            fmt::format(", the control group grants {}", format_size(*here.memory_limit_bytes));
    }
    constexpr std::size_t wanted_bytes = std::size_t{256} << 20;
    bool const little = usable < wanted_bytes;
    return {"memory", little ? severity::note : severity::fine, detail,
            little ? "a job of a few ranks needs about 256 MiB; free some" : ""};
}

/// libomp and UCX keep files in /dev/shm, which is small in many containers. Where it is missing or
/// not writable they do without.
finding check_shared_memory_folder() {
    constexpr const char *folder = "/dev/shm";
    constexpr std::uint64_t needed_by_libomp = std::uint64_t{64} << 10;
    constexpr std::uint64_t wanted = std::uint64_t{64} << 20;
    constexpr const char *remedy =
        "remove files that ended jobs have left there, or give the container "
        "more (--shm-size)";
    struct statvfs facts{};
    if (access(folder, W_OK) != 0 || statvfs(folder, &facts) != 0) {
        return {folder, severity::fine, "not writable, and not needed", ""};
    }
    std::uint64_t const left = std::uint64_t{facts.f_bavail} * facts.f_frsize;
    std::string const text = fmt::format("{} left", format_size(left));
    if (left < needed_by_libomp) {
        return {folder, severity::bad, text + ": programs with OpenMP end by SIGBUS", remedy};
    }
    if (left < wanted) {
        return {folder, severity::note, text + ", of which UCX takes 4 MiB and more per rank",
                remedy};
    }
    return {folder, severity::fine, text, ""};
}

/// Sends a descriptor through a socket pair, as ranks do with those of their segments.
finding check_unix_sockets() {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        return {"Unix sockets", severity::bad, "socketpair: " + errno_text(),
                "allow Unix sockets in the container"};
    }
    unique_fd const sender(ends[0]);
    unique_fd const receiver(ends[1]);
    char byte = 'd';
    descriptor_message outgoing(&byte, 1);
    outgoing.attach(sender.get());
    if (sendmsg(sender.get(), outgoing.header(), MSG_NOSIGNAL) != 1) {
        return {"Unix sockets", severity::bad, "a descriptor cannot be sent: " + errno_text(),
                "allow SCM_RIGHTS in the container"};
    }
    descriptor_message incoming(&byte, 1);
    if (recvmsg(receiver.get(), incoming.header(), MSG_CMSG_CLOEXEC) != 1 || !incoming.take()) {
        return {"Unix sockets", severity::bad, "a descriptor does not arrive: " + errno_text(),
                "allow SCM_RIGHTS in the container"};
    }
    return {"Unix sockets", severity::fine, "descriptors can be passed between processes", ""};
}

/// Lets one child process read another one's memory. The processes are siblings, as ranks are: a
/// parent may always read its child.
finding check_memory_attach() {
    constexpr const char *what = "memory attach";
    constexpr const char *remedy =
        "transfers of registered memory use messages, which is slower; sysctl "
        "kernel.yama.ptrace_scope=1 or less, or CAP_SYS_PTRACE in the container";
    static const std::array<char, 16> secret{"diomp-doctor"};
    std::array<int, 2> ready{};
    if (pipe(ready.data()) != 0) {
        return {what, severity::note, "pipe: " + errno_text(), ""};
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
        return {what, severity::note,
                fmt::format("process_vm_readv: {} ({})", std::strerror(error_number), yama),
                remedy};
    }
    return {what, severity::fine,
            fmt::format("a rank can read another's registered memory ({})", yama), ""};
}

} // namespace

std::vector<finding> examine_system(const settings &values, const machine &here, int ranks) {
    std::vector<finding> findings{check_memory_files(), check_address_range(values, here, ranks)};
    for (finding &each : check_limits(ranks)) {
        findings.push_back(std::move(each));
    }
    findings.push_back(check_processors(here, ranks));
    findings.push_back(check_memory(here));
    findings.push_back(check_shared_memory_folder());
    findings.push_back(check_unix_sockets());
    findings.push_back(check_memory_attach());
    return findings;
}

} // namespace diomp::info
