// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/service/server.h"

#include "base/log.h"
#include "launch/openmp_files.h"
#include "offload/remote_table.h"
#include "offload/service/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace diomp::offload::service {
namespace {

/// Outlives a crash of the session, which writes into it.
activity_board *make_board() {
    void *const memory = ::mmap(nullptr, sizeof(activity_board), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : new (memory) activity_board;
}

using clock = std::chrono::steady_clock;

constexpr std::size_t most_strangers = 64;
/// Of a client that reads nothing while its session's end is told.
constexpr std::chrono::milliseconds patience_with_reader{200};

std::string describe_end(int wait_status, const activity_board &board) {
    std::string text;
    if (WIFSIGNALED(wait_status)) {
        int const signal = WTERMSIG(wait_status);
        text = fmt::format("died by signal {} ({})", signal, ::strsignal(signal));
    } else {
        text = fmt::format("ended with status {}", WEXITSTATUS(wait_status));
    }
    std::string const running = board.describe();
    return running.empty() ? "its process " + text
                           : fmt::format("its process {} while running {}", text, running);
}

void bind_to(const std::vector<int> &processors) {
    if (processors.empty()) {
        return;
    }
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int const processor : processors) {
        CPU_SET(static_cast<std::size_t>(processor), &set);
    }
    if (::sched_setaffinity(0, sizeof set, &set) != 0) {
        log(log_level::warn, "a session cannot be bound to its processors: {}",
            ::strerrordesc_np(errno));
    }
}

} // namespace

struct server::session_process {
    session_process(remote::control_link link, activity_board *shared, output_pipes made)
        : client(std::move(link)), board(shared), pipes(std::move(made)) {}
    ~session_process() { ::munmap(board, sizeof *board); }
    session_process(const session_process &) = delete;
    session_process &operator=(const session_process &) = delete;

    remote::control_link client;
    activity_board *board;
    output_pipes pipes;
};

/// Connected, and has not said who it is yet. It cannot hold up anybody else.
struct server::stranger {
    stranger(unique_fd socket, std::chrono::steady_clock::time_point limit)
        : link(std::move(socket)), until(limit) {
        link.limit_frames(remote::max_stranger_frame_bytes);
    }

    enum class state { speaking, complete, over };
    [[nodiscard]] state look();

    remote::control_link link;
    bool has_begun = false; ///< its socket is readable, and will be until it has finished
    std::chrono::steady_clock::time_point until;
};

/// Whether all of the first frame has come.
server::stranger::state server::stranger::look() {
    char bytes[sizeof(std::uint32_t) + remote::max_stranger_frame_bytes];
    ssize_t const got = ::recv(link.fd(), bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
    if (got <= 0) {
        return got < 0 && (errno == EAGAIN || errno == EINTR) ? state::speaking : state::over;
    }
    has_begun = true;
    std::uint32_t length = 0;
    auto const size = static_cast<std::size_t>(got);
    if (size < sizeof length) {
        return state::speaking;
    }
    std::memcpy(&length, bytes, sizeof length);
    if (length > remote::max_stranger_frame_bytes) {
        return state::over;
    }
    return size >= sizeof length + length ? state::complete : state::speaking;
}

server::server(unique_fd listener, server_options chosen)
    : listener_(std::move(listener)), chosen_(std::move(chosen)),
      most_sessions_(
          std::max(static_cast<std::size_t>(chosen_.most_sessions), chosen_.devices.size())) {}

server::~server() {
    for (auto const &[pid, session] : sessions_) {
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
    }
}

std::string server::reason_to_refuse(const remote::hello_frame &hello) const {
    // The token first: a stranger learns nothing else.
    if (!remote::same_token(chosen_.token, hello.token)) {
        return "wrong token [remedy: give client and service the same DIOMP_TOKEN or "
               "DIOMP_TOKEN_FILE]";
    }
    if (hello.version != remote::protocol_version) {
        return "another version of DiOMP [remedy: use the same version on both sides]";
    }
    if (hello.device >= chosen_.devices.size()) {
        return fmt::format("there is no such device: it lends {}, from number 0 on",
                           chosen_.devices.size());
    }
    if (sessions_.size() >= most_sessions_) {
        return fmt::format("too many sessions: {} devices are in use, which is its limit [remedy: "
                           "use fewer devices, or wait for other clients; diomp-deviced "
                           "--max-sessions sets the limit]",
                           sessions_.size());
    }
    return {};
}

void server::refuse(remote::control_link &client, remote::frame how, const std::string &why) {
    log(log_level::info, "a client was refused: {}", why);
    packet_writer refusal(how);
    refusal.text(why);
    static_cast<void>(client.send(refusal.take()));
}

void server::greet(remote::control_link client) {
    auto bytes = client.receive(chosen_.greeting_timeout_s);
    if (!bytes) {
        return;
    }
    packet_reader packet(bytes.value());
    if (packet.type<remote::frame>() != remote::frame::hello) {
        return;
    }
    auto hello = remote::decode_hello(packet);
    if (!hello) {
        return;
    }
    if (std::string const why = reason_to_refuse(hello.value()); !why.empty()) {
        refuse(client, remote::frame::refused, why);
        return;
    }
    client.limit_frames(remote::max_frame_bytes);
    lent_device const &device = chosen_.devices[hello.value().device];
    if (client.send(encode(device.description))) {
        start_session(std::move(client), device);
    }
}

void server::start_session(remote::control_link client, const lent_device &device) {
    auto pipes = output_pipes::make();
    activity_board *const board = pipes ? make_board() : nullptr;
    if (board == nullptr) {
        refuse(client, remote::frame::ended, "no memory or descriptors for a further session");
        return;
    }
    auto session = std::make_unique<session_process>(std::move(client), board, pipes.take());
    pid_t const service = ::getpid();
    pid_t const pid = ::fork();
    if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != service) {
            std::_Exit(1); // it had ended before
        }
        sigset_t none;
        sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        listener_.reset();
        for (auto const &[other, process] : sessions_) {
            ::close(process->client.fd());
            process->pipes = {};
        }
        strangers_.clear();
        bind_to(device.processors);
        // Images of programs that are ranks bring the runtime, which would be a rank of its own.
        ::setenv(DIOMP_REMOTE_LOADING, "1", 1);
        session_options options;
        options.images = images_.get();
        options.kind = device.description.kind;
        options.device = device.number;
        options.memory_bytes = device.description.memory_bytes;
        options.least_kernel_time_s = chosen_.least_kernel_time_s;
        options.network_device_memory = chosen_.network_device_memory;
        options.board = board;
        options.pipes = &session->pipes;
        status const served = serve(session->client, options);
        std::_Exit(served ? 0 : 1);
    }
    if (pid < 0) {
        refuse(session->client, remote::frame::ended,
               fmt::format("no process for a further session: {}", ::strerrordesc_np(errno)));
        return;
    }
    session->pipes.write = {};
    ++num_sessions_;
    sessions_.emplace(pid, std::move(session));
}

void server::reap() {
    int how = 0;
    for (pid_t pid = 0; (pid = ::waitpid(-1, &how, WNOHANG)) > 0;) {
        launch::remove_openmp_files(pid);
        auto const found = sessions_.find(pid);
        if (found == sessions_.end()) {
            continue;
        }
        // A kernel may call exit(0), too.
        if (WIFSIGNALED(how) || WEXITSTATUS(how) != 0 ||
            !found->second->board->describe().empty()) {
            std::string const why = describe_end(how, *found->second->board);
            log(log_level::info, "a session is over: {}", why);
            found->second->client.limit_sending(patience_with_reader);
            found->second->pipes.send_to(found->second->client);
            packet_writer packet(remote::frame::ended);
            packet.text(why);
            if (faulty_access const &fault = found->second->board->fault; fault.is_known.load()) {
                packet.number(fault.address.load());
            }
            static_cast<void>(found->second->client.send(packet.take()));
        }
        sessions_.erase(found);
    }
}

void server::accept_one() {
    unique_fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket.valid() && strangers_.size() < most_strangers) {
        auto const limit = std::chrono::duration<double>(chosen_.greeting_timeout_s);
        strangers_.push_back(std::make_unique<stranger>(
            std::move(socket), clock::now() + std::chrono::duration_cast<clock::duration>(limit)));
    }
}

void server::look_at_strangers() {
    std::erase_if(strangers_, [](std::unique_ptr<stranger> const &each) {
        return each->look() == stranger::state::over || clock::now() >= each->until;
    });
    // One by one: a session must not inherit the connections of those behind it.
    for (;;) {
        auto const found = std::find_if(strangers_.begin(), strangers_.end(), [](auto const &each) {
            return each->look() == stranger::state::complete;
        });
        if (found == strangers_.end()) {
            return;
        }
        remote::control_link link = std::move((*found)->link);
        strangers_.erase(found);
        greet(std::move(link));
    }
}

status server::run(int stop_fd) {
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &children, nullptr);
    unique_fd const child_events(::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!child_events.valid()) {
        return system_error("signalfd", errno);
    }
    auto store = image_store::create();
    DIOMP_TRY(store);
    images_ = store.take();
    while (!chosen_.once || num_sessions_ == 0 || !sessions_.empty()) {
        std::vector<pollfd> entries{{listener_.get(), POLLIN, 0},
                                    {child_events.get(), POLLIN, 0},
                                    {stop_fd, POLLIN, 0},
                                    {images_->incoming(), POLLIN, 0}};
        int limit_ms = strangers_.empty() ? -1 : 1000;
        for (auto const &each : strangers_) {
            if (each->has_begun) {
                limit_ms = 20;
            } else {
                entries.push_back({each->link.fd(), POLLIN, 0});
            }
        }
        if (::poll(entries.data(), entries.size(), limit_ms) < 0 && errno != EINTR) {
            return system_error("poll", errno);
        }
        if (entries[3].revents != 0) {
            images_->take();
        }
        look_at_strangers();
        if (entries[2].revents != 0) {
            break;
        }
        if (entries[1].revents != 0) {
            signalfd_siginfo about{};
            while (::read(child_events.get(), &about, sizeof about) > 0) {
            }
            reap();
        }
        if (entries[0].revents != 0) {
            accept_one();
        }
    }
    return {};
}

} // namespace diomp::offload::service
