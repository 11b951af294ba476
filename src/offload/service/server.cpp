// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/service/server.h"

#include "base/log.h"
#include "launch/host.h"
#include "launch/openmp_files.h"
#include "offload/remote_table.h"
#include "offload/service/session.h"
#include "offload/service/target.h"
#include "transport/arena.h"
#include "transport/registration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <iterator>
#include <limits>
#include <new>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace diomp::offload::service {
namespace {

/// In shared memory, so that it outlives a crash of the session, which writes to it.
activity_table *make_activity_table() {
    void *const memory = ::mmap(nullptr, sizeof(activity_table), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : new (memory) activity_table;
}

/// Limit for sending the end of a session to a client that does not read.
constexpr std::chrono::milliseconds final_send_timeout{200};
/// A session whose client is gone has this time.
constexpr std::chrono::seconds max_time_to_end{5};

std::string describe_end(int wait_status, const activity_table &activities) {
    std::string text;
    if (WIFSIGNALED(wait_status)) {
        int const signal = WTERMSIG(wait_status);
        text = fmt::format("died by signal {} ({})", signal, ::strsignal(signal));
    } else {
        text = fmt::format("ended with status {}", WEXITSTATUS(wait_status));
    }
    std::string const running = activities.describe();
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
    session_process(remote::control_connection connection, activity_table *shared,
                    output_pipes made)
        : client(std::move(connection)), activities(shared), pipes(std::move(made)) {}
    ~session_process() { ::munmap(activities, sizeof *activities); }
    session_process(const session_process &) = delete;
    session_process &operator=(const session_process &) = delete;

    /// Call after the process has ended: sends its remaining output and the reason.
    void send_end(const std::string &why) {
        client.set_send_timeout(final_send_timeout);
        if (!client.take_over()) {
            return;
        }
        pipes.send_to(client);
        packet_writer packet(remote::frame::ended);
        packet.text(why);
        if (activities->fault.is_known.load()) {
            packet.number(activities->fault.address.load());
        }
        static_cast<void>(client.send(packet.take()));
    }

    /// The client has closed its connection, after which the session ends by itself.
    void note_client_gone() { end_due_ = std::chrono::steady_clock::now() + max_time_to_end; }
    [[nodiscard]] const std::optional<std::chrono::steady_clock::time_point> &end_due() const {
        return end_due_;
    }

    remote::control_connection client;
    activity_table *activities;
    output_pipes pipes;
    session_folder folder; ///< of a confined session

private:
    std::optional<std::chrono::steady_clock::time_point> end_due_; ///< note_client_gone
};

remote::device_description describe_host() {
    remote::device_description made;
    made.host = launch::host_name();
    made.identity = transport::identify_this_host();
    made.has_rdma_adapter = transport::has_rdma_adapter();
    return made;
}

std::uint64_t max_memory_bytes() { return transport::arena::max_span(); }

server::server(unique_fd listener, secure::secret token, server_options chosen)
    : listener_(std::move(listener)), token_(std::move(token)), chosen_(std::move(chosen)),
      max_sessions_(
          std::max(static_cast<std::size_t>(chosen_.max_sessions), chosen_.devices.size())) {}

server::~server() {
    for (auto const &[pid, session] : sessions_) {
        ::kill(pid, SIGKILL);
        launch::reap_child(pid);
    }
    sessions_.clear();
    // Others remove the folders of sessions, and may be killed once this process has ended.
    while (launch::reap_child(-1) > 0) {
    }
}

std::string server::reason_to_refuse(std::uint32_t device) const {
    if (device >= chosen_.devices.size()) {
        return fmt::format("there is no such device: it lends {}, from number 0 on",
                           chosen_.devices.size());
    }
    if (sessions_.size() >= max_sessions_) {
        return fmt::format("too many sessions: {} devices are in use, which is its limit [remedy: "
                           "use fewer devices, or wait for other clients; diomp-deviced "
                           "--max-sessions sets the limit]",
                           sessions_.size());
    }
    return {};
}

void server::refuse(remote::control_connection &client, remote::frame how, const std::string &why) {
    log(log_level::info, "a client was refused: {}", why);
    packet_writer refusal(how);
    refusal.text(why);
    static_cast<void>(client.send(refusal.take()));
}

void server::serve_proven() {
    while (!proven_.empty()) {
        auto next = std::move(proven_.front());
        proven_.pop_front();
        serve(remote::control_connection(std::move(next.socket), std::move(next.proven)));
    }
}

/// Serves an authenticated client.
void server::serve(remote::control_connection client) {
    std::uint32_t const device = client.peer().number;
    if (std::string const why = reason_to_refuse(device); !why.empty()) {
        refuse(client, remote::frame::refused, why);
        return;
    }
    lent_device const &lent = chosen_.devices[device];
    if (client.send(encode(lent.description))) {
        start_session(std::move(client), lent);
    }
}

void server::start_session(remote::control_connection client, const lent_device &device) {
    auto pipes = output_pipes::make();
    while (!pipes && pending_->close_oldest()) { // an authenticated client takes precedence over
                                                 // pending connections
        pipes = output_pipes::make();
    }
    activity_table *const activities = pipes ? make_activity_table() : nullptr;
    if (activities == nullptr) {
        refuse(client, remote::frame::ended, "no memory or file descriptors for another session");
        return;
    }
    auto session = std::make_unique<session_process>(std::move(client), activities, pipes.take());
    session->client.share_count(activities->sent);
    if (chosen_.rights != confinement::off) {
        auto folder = session_folder::create();
        if (!folder) {
            refuse(session->client, remote::frame::ended, folder.failure().message());
            return;
        }
        session->folder = folder.take();
    }
    pid_t const service = ::getpid();
    pid_t const pid = ::fork();
    if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != service) {
            std::_Exit(1); // the service ended before prctl
        }
        run_session_process(*session, device);
    }
    if (pid < 0) {
        refuse(session->client, remote::frame::ended,
               fmt::format("cannot fork another session: {}", ::strerrordesc_np(errno)));
        return;
    }
    session->pipes.write = {};
    ++num_sessions_;
    sessions_.emplace(pid, std::move(session));
}

/// Takes rights from this process, which is a session. OpenMP's library is loaded first: it
/// registers itself by a file in /dev/shm, which the service removes.
status server::confine(const session_process &own, const lent_device &device) {
    if (device.description.kind == "cpu" && load_libomptarget()) {
        using get_number = int (*)();
        if (auto *const initialize =
                reinterpret_cast<get_number>(::dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
            initialize != nullptr) {
            initialize();
        }
    }
    ::setenv("TMPDIR", own.folder.path().c_str(), 1);
    // UCX's transports over shared memory open files of other processes, which would fail.
    ::setenv("UCX_TLS", "^sm", 0);
    images_->stop_sharing();
    std::array<int, 5> kept{own.client.fd(), own.pipes.read[0].get(), own.pipes.read[1].get(),
                            own.pipes.write[0].get(), own.pipes.write[1].get()};
    close_other_descriptors(kept);
    return confine_this_process(own.folder.path());
}

/// Body of a session's process. First releases what belongs to the service and to other clients.
void server::run_session_process(session_process &own, const lent_device &device) {
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    pending_.reset();
    proven_.clear();
    token_.reset();
    sessions_.clear();
    bind_to(device.processors);
    // Images of programs that are ranks load the runtime, which must not start as a rank here.
    ::setenv(DIOMP_REMOTE_LOADING, "1", 1);
    if (chosen_.rights != confinement::off) {
        if (status const confined = confine(own, device); !confined) {
            refuse(own.client, remote::frame::ended, confined.failure().message());
            std::_Exit(1);
        }
    }
    session_options options;
    options.images = images_.get();
    options.kind = device.description.kind;
    options.device = device.number;
    options.memory_bytes = device.description.memory_bytes;
    options.min_kernel_time_s = chosen_.min_kernel_time_s;
    options.network_device_memory = chosen_.network_device_memory;
    // Sockets that pass memory would let a session of another client fetch it.
    options.may_share_memory = chosen_.rights == confinement::off;
    options.activities = own.activities;
    options.pipes = &own.pipes;
    status const served = service::serve(own.client, options);
    std::_Exit(served ? 0 : 1);
}

void server::reap() {
    int how = 0;
    for (pid_t pid = 0; (pid = launch::reap_child(-1, &how, WNOHANG)) > 0;) {
        auto const found = sessions_.find(pid);
        if (found == sessions_.end()) {
            continue;
        }
        // A kernel may also have called exit(0).
        if (WIFSIGNALED(how) || WEXITSTATUS(how) != 0 ||
            !found->second->activities->describe().empty()) {
            std::string const why = describe_end(how, *found->second->activities);
            log(log_level::info, "a session ended: {}", why);
            found->second->send_end(why);
        }
        sessions_.erase(found);
    }
}

/// Waits for events of `entries` and of the clients that close their connections, and ends sessions
/// that stand still after that: they would keep their place.
status server::wait_for_events(std::vector<pollfd> &entries) {
    using clock = std::chrono::steady_clock;
    std::size_t const num_own = entries.size();
    std::vector<session_process *> watched;
    auto next_end = clock::time_point::max();
    for (auto const &[pid, session] : sessions_) {
        if (!session->end_due()) {
            entries.push_back({session->client.fd(), POLLRDHUP, 0});
            watched.push_back(session.get());
        } else {
            next_end = std::min(next_end, *session->end_due());
        }
    }
    int wait_ms = -1;
    if (next_end != clock::time_point::max()) {
        auto const left = std::chrono::ceil<std::chrono::milliseconds>(next_end - clock::now());
        wait_ms = std::max(0, static_cast<int>(left.count()));
    }
    if (::poll(entries.data(), entries.size(), wait_ms) < 0 && errno != EINTR) {
        return system_error("poll", errno);
    }
    for (std::size_t i = 0; i < watched.size(); ++i) {
        if (entries[num_own + i].revents != 0) {
            watched[i]->note_client_gone();
        }
    }
    for (auto const &[pid, session] : sessions_) {
        if (session->end_due() && *session->end_due() <= clock::now()) {
            log(log_level::info, "a session that does not end after its client is killed: {}", pid);
            ::kill(pid, SIGKILL);
            session->note_client_gone(); // it is reaped when the system has ended it
        }
    }
    return {};
}

status server::listen() {
    secure::pending_options options;
    options.time_limit =
        std::chrono::milliseconds(static_cast<std::int64_t>(chosen_.handshake_timeout_s * 1000));
    // A client names the device that it requests. The existing devices are disclosed only to
    // authenticated clients.
    static constexpr secure::party_range clients{secure::role::client, 0,
                                                 std::numeric_limits<std::uint32_t>::max()};
    auto pending = secure::pending_connections::create(
        std::move(listener_),
        [this] {
            return secure::handshake::respond(
                *token_, remote::handshake_options_for(remote::service_party), clients);
        },
        [](const std::string &text) { log(log_level::warn, "{}", text); }, options);
    DIOMP_TRY(pending);
    pending_.emplace(pending.take());
    return {};
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
    DIOMP_TRY(listen());
    if (chosen_.rights != confinement::off) {
        session_folder::remove_abandoned();
    }
    while (!chosen_.once || num_sessions_ == 0 || !sessions_.empty()) {
        std::vector<pollfd> entries{{pending_->fd(), POLLIN, 0},
                                    {child_events.get(), POLLIN, 0},
                                    {stop_fd, POLLIN, 0},
                                    {images_->incoming(), POLLIN, 0}};
        DIOMP_TRY(wait_for_events(entries));
        if (entries[3].revents != 0) {
            images_->take();
        }
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
            for (auto &each : pending_->advance()) {
                proven_.push_back(std::move(each));
            }
            serve_proven();
        }
    }
    return {};
}

} // namespace diomp::offload::service
