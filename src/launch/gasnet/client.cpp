// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/gasnet/client.h"

#include "launch/gasnet/launcher.h"
#include "launch/gasnet/udp_master.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace diomp::launch::gasnet {
namespace {

client g_client;
bool g_is_joined = false;
bool g_ends_the_job = false; ///< GASNet, as under its own start-up
bool g_leaves_in_order = false;

constexpr bool is_udp = std::string_view(GASNET_CONDUIT_NAME_STR) == "UDP";

std::set<int> open_sockets(int wanted_type) {
    std::set<int> found;
    std::error_code failure; // a container may have no /proc
    for (auto const &entry : std::filesystem::directory_iterator("/proc/self/fd", failure)) {
        std::string const name = entry.path().filename();
        int fd = -1;
        std::from_chars(name.data(), name.data() + name.size(), fd);
        int type = 0;
        socklen_t size = sizeof(type);
        if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == wanted_type) {
            found.insert(fd);
        }
    }
    return found;
}

/// AMUDP has one socket for all datagrams and one to its master, and does not say which.
class new_socket {
public:
    explicit new_socket(int type) : type_(type), before_(open_sockets(type)) {}
    [[nodiscard]] int find() const {
        for (int const fd : open_sockets(type_)) {
            if (!before_.contains(fd)) {
                return fd;
            }
        }
        return -1;
    }

private:
    int type_;
    std::set<int> before_;
};

/// How this process was started, which GASNet's spawner by ssh does again on every host.
std::vector<std::string> command_line() {
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    std::vector<std::string> words;
    for (std::string word; std::getline(file, word, '\0');) {
        words.push_back(word);
    }
    std::error_code failed;
    auto const program = std::filesystem::read_symlink("/proc/self/exe", failed);
    if (words.empty()) {
        words.emplace_back("diomp");
    }
    if (!failed) {
        words.front() = program; // also where it was found on the search path
    }
    return words;
}

status initialize() {
    // GASNet keeps what it is given, until the process ends.
    static auto &words = *new std::vector<std::string>;
    static auto &arguments = *new std::vector<char *>;
    words = command_line();
    arguments.clear();
    for (std::string &word : words) {
        arguments.push_back(word.data());
    }
    int argc = static_cast<int>(arguments.size());
    arguments.push_back(nullptr);
    char **argv = arguments.data();
    new_socket const datagrams(SOCK_DGRAM);
    int const outcome = gex_Client_Init(&g_client.handle, &g_client.endpoint, &g_client.team,
                                        "diomp", &argc, &argv, 0);
    if (outcome != GASNET_OK) {
        return error(OMPX_ERR_SYSTEM,
                     fmt::format("GASNet-EX does not start: {} ({})", gasnet_ErrorDesc(outcome),
                                 gasnet_ErrorName(outcome)));
    }
    g_is_joined = true; // whatever follows, the process ends as one of GASNet's
    if (argc > static_cast<int>(words.size())) {
        return error(OMPX_ERR_UNSUPPORTED,
                     fmt::format("GASNet-EX has started {} without its arguments, which it hands "
                                 "over too late for a program that does not ask for them",
                                 words.front()),
                     fmt::format("start it with a PMIx launcher or with gasnetrun_{} "
                                 "-spawner=mpi, or without arguments",
                                 conduit_name()));
    }
    g_client.event_fd = is_udp ? datagrams.find() : -1;
    return {};
}

/// For the duration of the start; GASNet and its children read the environment only then.
class variable {
public:
    variable(const char *name, const std::string &value) : name_(name) {
        ::setenv(name, value.c_str(), 1);
    }
    ~variable() { ::unsetenv(name_); }
    variable(const variable &) = delete;
    variable &operator=(const variable &) = delete;

private:
    const char *name_;
};

/// The master would end all ranks when one has left. Its work is done; AMUDP is left with a socket
/// on which nothing comes. No call of GASNet may lie between the two.
status let_go_of_master(int control_fd) {
    if (control_fd < 0) {
        return error(OMPX_ERR_SYSTEM, "GASNet-EX's udp conduit has no connection to its master");
    }
    int quiet[2]; // the other end stays open, or the first one would look closed
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, quiet) != 0 ||
        ::dup2(quiet[0], control_fd) < 0) {
        return system_error("socketpair", errno);
    }
    ::close(quiet[0]);
    return {};
}

status start_as_worker(launcher &starter) {
    constexpr std::string_view key = "gasnet.udp";
    auto const &job = starter.info();
    pid_t master = -1;
    if (job.rank == world_rank(0)) {
        auto started = start_udp_master(job.size, job.local_size == job.size);
        DIOMP_TRY(started);
        master = started.value().process;
        DIOMP_TRY(starter.put(key, started.value().worker_arguments));
    }
    DIOMP_TRY(starter.fence());
    auto arguments = starter.get(world_rank(0), key);
    DIOMP_TRY(arguments);
    variable const worker("AMUDP_WORKER_ARGS", arguments.value());
    variable const rank("GASNET_WORKER_RANK", std::to_string(job.rank.value()));
    new_socket const to_master(SOCK_STREAM);
    DIOMP_TRY(initialize());
    DIOMP_TRY(starter.fence()); // everybody has started
    if (master > 0) {
        ::kill(master, SIGKILL);
        ::waitpid(master, nullptr, 0);
    }
    return let_go_of_master(to_master.find());
}

} // namespace

const char *conduit_name() {
    static auto const *const lower = new std::string([] {
        std::string name = GASNET_CONDUIT_NAME_STR;
        for (char &each : name) {
            each = static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
        }
        return name;
    }());
    return lower->c_str();
}

const client *joined_client() { return g_is_joined ? &g_client : nullptr; }

status checked(const char *call, int code) {
    if (code == GASNET_OK) {
        return {};
    }
    return error(OMPX_ERR_SYSTEM,
                 fmt::format("{}: {} ({})", call, gasnet_ErrorDesc(code), gasnet_ErrorName(code)));
}

void leave_in_order() { g_leaves_in_order = true; }

// Left alone GASNet ends the whole job when one rank leaves exit(), with that rank's status, and
// after the libraries that it needs have been ended.
void end_of_process(int exit_status) {
    if (!g_is_joined || !g_ends_the_job) {
        return;
    }
    if (exit_status == 0 && g_leaves_in_order) { // nobody is ended while still at something
        gex_Event_Wait(gex_Coll_BarrierNB(g_client.team, 0));
    }
    std::cout.flush();
    std::clog.flush();
    gasnet_exit(exit_status);
}

result<const client *> join_spawned() {
    if (!g_is_joined) {
        g_ends_the_job = true;
        DIOMP_TRY(initialize());
    }
    return joined_client();
}

result<const client *> join_through(launcher &starter) {
    if (g_is_joined) {
        return joined_client();
    }
    if constexpr (is_udp) {
        DIOMP_TRY(start_as_worker(starter));
    } else {
        std::string_view const name = starter.name();
        if (!name.starts_with("PMI") && starter.info().size > 1) {
            return error(
                OMPX_ERR_UNSUPPORTED,
                fmt::format("GASNet-EX's {} conduit cannot join a job of {}", conduit_name(), name),
                fmt::format("start the program with gasnetrun_{}, or with a PMIx launcher "
                            "where GASNet-EX was built for one",
                            conduit_name()));
        }
        g_ends_the_job = true;
        DIOMP_TRY(initialize());
    }
    if (gex_TM_QueryRank(g_client.team) != static_cast<gex_Rank_t>(starter.info().rank.value()) ||
        gex_TM_QuerySize(g_client.team) != static_cast<gex_Rank_t>(starter.info().size)) {
        return error(OMPX_ERR_SYSTEM,
                     fmt::format("GASNet-EX calls this process rank {} of {}, {} calls it rank {} "
                                 "of {}",
                                 gex_TM_QueryRank(g_client.team), gex_TM_QuerySize(g_client.team),
                                 starter.name(), starter.info().rank.value(), starter.info().size));
    }
    return joined_client();
}

} // namespace diomp::launch::gasnet
