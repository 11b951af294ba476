// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/service/output.h"

#include "base/log_setup.h"
#include "base/service_thread.h"
#include "offload/remote/protocol.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>

namespace diomp::offload::service {
namespace {

// Bytes that have been read from a pipe but not sent would be lost with the process, and after half
// a frame the server could not report the reason. Bytes in the pipe are sent by the server. So a
// crash or an exit in a region waits until no send is in progress, of output or of a reply (whose
// sender may lose its core after the client has received it), and no more bytes are read after
// that. One session per process.
std::atomic<bool> g_is_ending{false};
std::atomic<bool> g_is_sending{false};
std::atomic<faulty_access *> g_fault{nullptr};
std::atomic<const remote::control_connection *> g_client{nullptr};
/// Limit of the wait, in ms: the client may have stopped reading.
constexpr int max_waits = 1000;

void wait_until_sent() {
    g_is_ending.store(true);
    const remote::control_connection *const client = g_client.load();
    auto const is_sending = [client] {
        return g_is_sending.load() || (client != nullptr && client->is_sending());
    };
    timespec const one_ms{0, 1000000};
    for (int i = 0; i < max_waits && is_sending(); ++i) {
        ::nanosleep(&one_ms, nullptr);
    }
}

void wait_before_crash(int signal, siginfo_t *about, void * /*context*/) {
    faulty_access *const fault = g_fault.load();
    // Only the kernel provides an address, and only for faults that have one.
    bool const is_access = (signal == SIGSEGV || signal == SIGBUS) && about->si_code > 0 &&
                           about->si_code != SI_KERNEL;
    if (fault != nullptr && is_access && !g_is_ending.load()) {
        fault->address.store(reinterpret_cast<std::uint64_t>(about->si_addr));
        fault->is_known.store(true);
    }
    wait_until_sent();
    ::raise(signal); // SA_RESETHAND has restored the default action
}

void install_end_handlers(const remote::control_connection &client, faulty_access &fault) {
    g_client.store(&client);
    g_fault.store(&fault);
    struct sigaction action{};
    action.sa_sigaction = wait_before_crash;
    action.sa_flags = static_cast<int>(SA_SIGINFO | SA_RESETHAND | SA_NODEFER);
    for (int const signal : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP}) {
        ::sigaction(signal, &action, nullptr);
    }
    static_cast<void>(std::atexit(wait_until_sent)); // a region may call exit()
}

} // namespace

result<output_pipes> output_pipes::make() {
    output_pipes made;
    for (std::size_t i = 0; i < 2; ++i) {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) {
            return system_error("pipe", errno);
        }
        made.read[i] = unique_fd(ends[0]);
        made.write[i] = unique_fd(ends[1]);
        ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    }
    return made;
}

std::array<std::uint64_t, 2> output_pipes::send_to(remote::control_connection &client) const {
    std::array<std::uint64_t, 2> sent{};
    for (std::size_t i = 0; i < 2; ++i) {
        char bytes[16384];
        for (;;) {
            ssize_t const got = ::read(read[i].get(), bytes, sizeof bytes);
            if (got <= 0) {
                break;
            }
            packet_writer packet(remote::frame::output);
            packet.number(static_cast<std::uint8_t>(i + 1));
            packet.bytes({bytes, static_cast<std::size_t>(got)});
            if (client.send(packet.take())) {
                sent[i] += static_cast<std::uint64_t>(got);
            }
        }
    }
    return sent;
}

result<std::unique_ptr<output>> output::redirect(remote::control_connection &client,
                                                 output_pipes pipes, faulty_access &fault) {
    std::unique_ptr<output> made(new output(client, std::move(pipes)));
    std::fflush(nullptr);
    made->log_ = unique_fd(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    if (!made->log_.valid()) {
        return system_error("keeping standard error for the log", errno);
    }
    set_log_descriptor(made->log_.get());
    for (std::size_t i = 0; i < 2; ++i) {
        unique_fd const write_end = std::move(made->pipes_.write[i]);
        if (::dup2(write_end.get(), i == 0 ? STDOUT_FILENO : STDERR_FILENO) < 0) {
            return system_error("dup2", errno);
        }
    }
    made->stop_ = unique_fd(::eventfd(0, EFD_CLOEXEC));
    if (!made->stop_.valid()) {
        return system_error("eventfd", errno);
    }
    install_end_handlers(client, fault);
    made->thread_ = start_service_thread("diomp-output", [self = made.get()] { self->serve(); });
    return made;
}

output::~output() {
    if (thread_.joinable()) {
        std::uint64_t const one = 1;
        static_cast<void>(!::write(stop_.get(), &one, sizeof one));
        thread_.join();
        flush();
    }
    g_client.store(nullptr);
    if (log_.valid()) {
        set_log_descriptor(STDERR_FILENO);
    }
}

std::array<std::uint64_t, 2> output::flush() {
    std::fflush(nullptr);
    std::lock_guard const guard(mutex_);
    send_pending();
    return sent_;
}

void output::send_pending() {
    g_is_sending.store(true);
    if (!g_is_ending.load()) {
        auto const sent = pipes_.send_to(client_);
        sent_[0] += sent[0];
        sent_[1] += sent[1];
    }
    g_is_sending.store(false);
}

void output::serve() {
    for (;;) {
        pollfd entries[] = {{pipes_.read[0].get(), POLLIN, 0},
                            {pipes_.read[1].get(), POLLIN, 0},
                            {stop_.get(), POLLIN, 0}};
        if (::poll(entries, 3, -1) < 0 && errno != EINTR) {
            return;
        }
        if (entries[2].revents != 0) {
            return;
        }
        if (g_is_ending.load()) {
            return; // the pipes stay readable
        }
        std::lock_guard const guard(mutex_);
        send_pending();
    }
}

} // namespace diomp::offload::service
