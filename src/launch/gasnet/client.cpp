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

gasnet_client g_client;
bool g_is_joined = false;
bool g_owns_job = false; ///< GASNet ends the job, as under its own start-up
bool g_is_finalized = false;

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

/// Finds a socket that was opened since construction. AMUDP has one for all datagrams and one to
/// its master, and does not provide the descriptors.
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

/// The command line of this process, which GASNet's ssh spawner repeats on every host.
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
    // GASNet uses the arguments until the process ends.
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
    g_is_joined = true; // also after a later error, GASNet must end the process
    if (argc > static_cast<int>(words.size())) {
        return error(OMPX_ERR_UNSUPPORTED,
                     fmt::format("GASNet-EX has started {} without its arguments: it provides them "
                                 "only after its own initialization",
                                 words.front()),
                     fmt::format("start it with a PMIx launcher or with gasnetrun_{} "
                                 "-spawner=mpi, or without arguments",
                                 conduit_name()));
    }
    g_client.event_fd = is_udp ? datagrams.find() : -1;
    return {};
}

/// Sets a variable for the duration of the start. GASNet and its children read it only then.
class scoped_variable {
public:
    scoped_variable(const char *name, const std::string &value) : name_(name) {
        ::setenv(name, value.c_str(), 1);
    }
    ~scoped_variable() { ::unsetenv(name_); }
    scoped_variable(const scoped_variable &) = delete;
    scoped_variable &operator=(const scoped_variable &) = delete;

private:
    const char *name_;
};

/// Disconnects from the master, which would end all ranks when one has exited. After the start it
/// is not needed. AMUDP gets a socket that never receives data in place of the connection. No call
/// of GASNet may happen between the start and this call.
status detach_from_master(int control_fd) {
    if (control_fd < 0) {
        return error(OMPX_ERR_SYSTEM, "GASNet-EX's udp conduit has no connection to its master");
    }
    int silent_pair[2]; // the second socket stays open, or the first one would appear closed
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, silent_pair) != 0 ||
        ::dup2(silent_pair[0], control_fd) < 0) {
        return system_error("socketpair", errno);
    }
    ::close(silent_pair[0]);
    return {};
}

status start_as_worker(launcher &job_launcher) {
    constexpr std::string_view key = "gasnet.udp";
    auto const &job = job_launcher.info();
    pid_t master = -1;
    if (job.rank == world_rank(0)) {
        auto started = start_udp_master(job.size, job.local_size == job.size);
        DIOMP_TRY(started);
        master = started.value().process;
        DIOMP_TRY(job_launcher.put(key, started.value().worker_arguments));
    }
    DIOMP_TRY(job_launcher.fence());
    auto arguments = job_launcher.get(world_rank(0), key);
    DIOMP_TRY(arguments);
    scoped_variable const worker("AMUDP_WORKER_ARGS", arguments.value());
    scoped_variable const rank("GASNET_WORKER_RANK", std::to_string(job.rank.value()));
    new_socket const to_master(SOCK_STREAM);
    DIOMP_TRY(initialize());
    DIOMP_TRY(job_launcher.fence()); // all ranks have started
    if (master > 0) {
        ::kill(master, SIGKILL);
        ::waitpid(master, nullptr, 0);
    }
    return detach_from_master(to_master.find());
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

const gasnet_client *joined_client() { return g_is_joined ? &g_client : nullptr; }

status to_status(const char *call, int code) {
    if (code == GASNET_OK) {
        return {};
    }
    return error(OMPX_ERR_SYSTEM,
                 fmt::format("{}: {} ({})", call, gasnet_ErrorDesc(code), gasnet_ErrorName(code)));
}

void mark_finalized() { g_is_finalized = true; }

// Without this call GASNet ends the whole job when one rank returns from exit(), with the status of
// that rank, and after destructors of libraries that it needs.
void notify_process_exit(int exit_status) {
    if (!g_is_joined || !g_owns_job) {
        return;
    }
    if (exit_status == 0 && g_is_finalized) { // no rank is ended while it is still active
        gex_Event_Wait(gex_Coll_BarrierNB(g_client.team, 0));
    }
    std::cout.flush();
    std::clog.flush();
    gasnet_exit(exit_status);
}

result<const gasnet_client *> join_spawned() {
    if (!g_is_joined) {
        g_owns_job = true;
        DIOMP_TRY(initialize());
    }
    return joined_client();
}

result<const gasnet_client *> join_through(launcher &job_launcher) {
    if (g_is_joined) {
        return joined_client();
    }
    if constexpr (is_udp) {
        DIOMP_TRY(start_as_worker(job_launcher));
    } else {
        std::string_view const name = job_launcher.name();
        if (!name.starts_with("PMI") && job_launcher.info().size > 1) {
            return error(
                OMPX_ERR_UNSUPPORTED,
                fmt::format("GASNet-EX's {} conduit cannot join a job of {}", conduit_name(), name),
                fmt::format("start the program with gasnetrun_{}, or with a PMIx launcher "
                            "where GASNet-EX was built for one",
                            conduit_name()));
        }
        g_owns_job = true;
        DIOMP_TRY(initialize());
    }
    if (gex_TM_QueryRank(g_client.team) !=
            static_cast<gex_Rank_t>(job_launcher.info().rank.value()) ||
        gex_TM_QuerySize(g_client.team) != static_cast<gex_Rank_t>(job_launcher.info().size)) {
        return error(OMPX_ERR_SYSTEM,
                     fmt::format("GASNet-EX calls this process rank {} of {}, {} calls it rank {} "
                                 "of {}",
                                 gex_TM_QueryRank(g_client.team), gex_TM_QuerySize(g_client.team),
                                 job_launcher.name(), job_launcher.info().rank.value(),
                                 job_launcher.info().size));
    }
    return joined_client();
}

} // namespace diomp::launch::gasnet
