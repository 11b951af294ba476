// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// diomp-deviced: lends this host's devices to OpenMP programs on other hosts.
#include "attached.h"
#include "base/log.h"
#include "base/secret_variable.h"
#include "base/service_thread.h"
#include "base/signal_dispositions.h"
#include "base/sizes.h"
#include "base/standard_descriptors.h"
#include "base/tool_main.h"
#include "command_line.h"
#include "config/settings.h"
#include "devices.h"
#include "offload/remote/control.h"
#include "offload/remote/token.h"
#include "offload/service/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <utility>

namespace {

namespace remote = diomp::offload::remote;
namespace service = diomp::offload::service;
using diomp::deviced::command_line;

int print_error(const diomp::error &why) {
    std::fprintf(stderr, "diomp-deviced: %s%s\n", why.message().c_str(),
                 why.remedy().empty() ? "" : (" [remedy: " + why.remedy() + "]").c_str());
    return 1;
}

constexpr std::array<int, 3> termination_signals{SIGTERM, SIGINT, SIGHUP};

/// A descriptor that is readable when a termination signal is pending. Signals that were ignored at
/// start-up stay ignored.
diomp::unique_fd termination_events(const diomp::original_signals &original) {
    sigset_t wanted;
    sigemptyset(&wanted);
    for (int const each : termination_signals) {
        if (!original.ignores(each)) {
            sigaddset(&wanted, each);
        }
    }
    ::sigprocmask(SIG_BLOCK, &wanted, nullptr);
    return diomp::unique_fd(::signalfd(-1, &wanted, SFD_CLOEXEC));
}

/// The signal to receive when the parent ends: one that this process does not ignore.
int parent_death_signal(const diomp::original_signals &original) {
    auto const *const found = std::ranges::find_if(
        termination_signals, [&original](int signal) { return !original.ignores(signal); });
    return found != termination_signals.end() ? *found : SIGKILL;
}

diomp::result<std::vector<service::lent_device>> find_devices(const std::string &text,
                                                              std::size_t memory_bytes) {
    for (char const *const plugin : {"host", "cuda", "amdgpu"}) {
        if (text == plugin) {
            return diomp::deviced::plugin_devices(text, memory_bytes);
        }
    }
    int count = 0;
    auto const [end, code] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (code != std::errc{} || end != text.data() + text.size() || count < 1 || count > 4096) {
        return diomp::error(OMPX_ERR_ARG, "--devices " + text,
                            "give a number from 1 to 4096, or one of host, cuda, amdgpu");
    }
    return diomp::deviced::cpu_devices(count, memory_bytes);
}

struct listening_socket {
    std::string address;
    int port = 0;
    diomp::unique_fd listener;
};

diomp::result<listening_socket> open_listener(const command_line &chosen) {
    listening_socket made;
    made.address = chosen.address == "ssh" ? diomp::deviced::ssh_server_address() : chosen.address;
    if (made.address.empty()) {
        return diomp::error(OMPX_ERR_ARG,
                            "--listen ssh: the address that the ssh client connected to is "
                            "unknown (SSH_CONNECTION is not set)",
                            "name the host by a name that other hosts can resolve");
    }
    auto listener = remote::listen_at(made.address, chosen.port);
    DIOMP_TRY(listener);
    made.listener = listener.take();
    auto port = remote::port_of(made.listener.get());
    DIOMP_TRY(port);
    made.port = port.value();
    return made;
}

void print_address(const command_line &chosen, const listening_socket &listening,
                   std::size_t devices) {
    if (chosen.attached) {
        bool const brackets = listening.address.find(':') != std::string::npos;
        fmt::print("diomp-deviced lends {} at {}{}{}:{}\n", devices, brackets ? "[" : "",
                   listening.address, brackets ? "]" : "", listening.port);
    } else if (chosen.prints_port) {
        fmt::print("{}\n", listening.port);
    }
    std::fflush(stdout);
}

/// Erases `text`, which came from diomp-run or the environment.
diomp::result<diomp::secure::secret> make_token(std::string &text) {
    auto token = remote::read_token({.text = text.c_str(),
                                     .file = std::getenv("DIOMP_TOKEN_FILE"),
                                     .credentials = std::getenv("CREDENTIALS_DIRECTORY")});
    diomp::secure::erase(text);
    return token;
}

diomp::status check_confinement(service::confinement wanted) {
    if (wanted == service::confinement::off) {
        return {};
    }
    std::string all;
    for (auto const &each : service::missing_for_confinement()) {
        diomp::log(diomp::log_level::warn, "sessions are confined in part: {}", each);
        all += (all.empty() ? "" : "; ") + each;
    }
    if (wanted == service::confinement::required && !all.empty()) {
        return diomp::error(OMPX_ERR_UNSUPPORTED, "--confine required: " + all,
                            "use --confine available, or a kernel and a build that have it");
    }
    return {};
}

diomp::status run(const command_line &chosen) {
    // First, before the environment is copied. Regions of clients must not read the token.
    std::string token_text = diomp::take_secret_variable("DIOMP_TOKEN");
    diomp::ignore_signals(chosen.ignored_signals);
    auto const original = diomp::original_signals::of_this_process();
    std::signal(SIGCHLD, SIG_DFL); // if ignored, the ends of sessions would not be reported
    diomp::unique_fd input;
    if (chosen.attached) {
        auto taken = diomp::deviced::receive_settings();
        DIOMP_TRY(taken);
        input = std::move(taken.value().input);
        if (!taken.value().token.empty()) {
            diomp::secure::erase(token_text);
            token_text = std::move(taken.value().token);
        }
        // A closed output pipe must end neither the service nor its sessions.
        std::signal(SIGPIPE, SIG_IGN);
    }
    std::vector<std::string> unknown;
    auto settings = diomp::read_settings(unknown);
    DIOMP_TRY(settings);
    diomp::set_log(settings.value().runtime.log, "[service] ");
    service::server_options options = chosen.server;
    auto token = make_token(token_text);
    DIOMP_TRY(token);
    ::unsetenv("DIOMP_REMOTE_DEVICES");
    std::size_t memory_bytes = 0;
    if (!chosen.memory.empty()) {
        auto size = diomp::parse_size(chosen.memory);
        DIOMP_TRY(size);
        memory_bytes = size.value();
        if (memory_bytes > diomp::offload::service::max_memory_bytes()) {
            return diomp::error(
                OMPX_ERR_ARG,
                fmt::format("--memory {}: the memory of a device is in the address space of its "
                            "clients, which has {} for it",
                            chosen.memory,
                            diomp::format_size(diomp::offload::service::max_memory_bytes())),
                "pass the memory that one client may use");
        }
    }
    if (chosen.ends_with_parent || chosen.attached) {
        ::prctl(PR_SET_PDEATHSIG, parent_death_signal(original));
    }
    diomp::unique_fd const termination = termination_events(original);
    auto stop = diomp::deviced::combine_fds(termination.get(), input.get());
    DIOMP_TRY(stop);
    auto listening = open_listener(chosen);
    DIOMP_TRY(listening);
    auto devices = find_devices(chosen.devices, memory_bytes);
    DIOMP_TRY(devices);
    DIOMP_TRY(check_confinement(options.rights));
    options.devices = devices.take();
    options.network_device_memory = settings.value().transport.network_device_memory;
    print_address(chosen, listening.value(), options.devices.size());
    service::server server(std::move(listening.value().listener), token.take(), std::move(options));
    diomp::status served = server.run(stop.value().get());
    if (chosen.attached) { // diomp-run interprets the number
        fmt::print("diomp-deviced has had {} sessions\n", server.num_sessions());
        std::fflush(stdout);
    }
    return served;
}

} // namespace

int main(int argc, char **argv) {
    diomp::fill_standard_descriptors();
    return diomp::run_tool("diomp-deviced", [argc, argv] {
        auto const served = run(diomp::deviced::parse_command_line(argc, argv));
        return served ? 0 : print_error(served.failure());
    });
}
