// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/gasnet/udp_master.h"

#include "base/unique_fd.h"

#include <fmt/format.h>

#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <gasnetex.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace diomp::launch::gasnet {
namespace {

constexpr int pipe_in_master = 3;
constexpr int start_timeout_ms = 20000;

/// Address of the first interface that other hosts can reach. Host names are not used: they often
/// resolve to loopback.
std::string external_address() {
    std::string found;
    ifaddrs *all = nullptr;
    if (::getifaddrs(&all) != 0) {
        return found;
    }
    for (ifaddrs *each = all; each != nullptr && found.empty(); each = each->ifa_next) {
        if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET ||
            (each->ifa_flags & IFF_LOOPBACK) != 0 || (each->ifa_flags & IFF_UP) == 0) {
            continue;
        }
        std::array<char, INET_ADDRSTRLEN> text{};
        auto const *const address = reinterpret_cast<const sockaddr_in *>(each->ifa_addr);
        if (::inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size()) != nullptr) {
            found = text.data();
        }
    }
    ::freeifaddrs(all);
    return found;
}

void set_default(const char *name, const std::string &value) {
    if (!value.empty()) {
        ::setenv(name, value.c_str(), 0);
    }
}

/// Skips exit handlers, which belong to the rank.
void exit_now(int code, void * /*unused*/) { ::_exit(code); }

/// Runs the master in a forked process. GASNet runs a command to start workers; the command set
/// here writes the worker arguments to the pipe instead.
[[noreturn]] void run_master(int pipe, int num_workers, bool one_host) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::prctl(PR_SET_NAME, "diomp-gasnet");
    ::on_exit(exit_now, nullptr);
    int const null_device = ::open("/dev/null", O_RDWR);
    ::dup2(null_device, STDIN_FILENO);
    ::dup2(null_device, STDOUT_FILENO);
    ::dup2(pipe, pipe_in_master);
    ::close_range(pipe_in_master + 1, ~0U, 0);
    ::setenv("GASNET_SPAWNFN", "C", 1);
    ::setenv("GASNET_CSPAWN_CMD", fmt::format("{{ %C ; }} >&{}", pipe_in_master).c_str(), 1);
    ::setenv("GASNET_CSPAWN_ROUTE_OUTPUT", "0", 1);
    // The workers get this environment. Ranks may exit at any time, and the conduit's own liveness
    // check detects failed ones.
    ::setenv("GASNET_CATCH_EXIT", "0", 1);
    set_default("GASNET_REQUESTTIMEOUT_MAX", "0");
    set_default("GASNET_MAX_SEGSIZE", "1MB/P"); // the arena is not GASNet's
    set_default("GASNET_MASTERIP", one_host ? "127.0.0.1" : external_address());
    std::string number = std::to_string(num_workers);
    char command[] = "printenv";
    char what[] = "AMUDP_WORKER_ARGS";
    char *arguments[] = {command, number.data(), what, nullptr};
    char **argv = arguments;
    int argc = 3;
    gex_Client_t client{};
    gex_EP_t endpoint{};
    gex_TM_t team{};
    gex_Client_Init(&client, &endpoint, &team, "diomp", &argc, &argv, 0);
    ::_exit(1); // gex_Client_Init does not return in the master
}

result<std::string> read_line(int fd) {
    std::string line;
    pollfd watched{fd, POLLIN, 0};
    while (::poll(&watched, 1, start_timeout_ms) > 0) {
        char each = 0;
        ssize_t const got = ::read(fd, &each, 1);
        if (got == 1 && each == '\n') {
            return line;
        }
        if (got <= 0) {
            break;
        }
        line += each;
    }
    return error(OMPX_ERR_SYSTEM, "the master process of GASNet-EX's udp conduit did not start",
                 "GASNET_SPAWN_VERBOSE=1 shows what it does");
}

} // namespace

result<udp_master> start_udp_master(int num_workers, bool one_host) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        return system_error("pipe2", errno);
    }
    unique_fd const reading(ends[0]);
    unique_fd writing(ends[1]);
    pid_t const master = ::fork();
    if (master < 0) {
        return system_error("fork", errno);
    }
    if (master == 0) {
        run_master(writing.get(), num_workers, one_host);
    }
    writing.reset();
    auto arguments = read_line(reading.get());
    DIOMP_TRY(arguments);
    return udp_master{master, arguments.take()};
}

} // namespace diomp::launch::gasnet
