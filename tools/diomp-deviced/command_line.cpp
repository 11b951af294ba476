// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "command_line.h"

#include "base/command_line.h"

#include <cstdlib>
#include <map>
#include <string>

namespace diomp::deviced {

command_line parse_command_line(int argc, char **argv) {
    CLI::App app("Lends this host's devices to OpenMP programs on other hosts. Clients name it in "
                 "DIOMP_REMOTE_DEVICES and must have its token: DIOMP_TOKEN, or DIOMP_TOKEN_FILE, "
                 "a file that only its owner can read; under systemd the credential diomp-token.",
                 "diomp-deviced");
    command_line chosen;
    app.add_option(
           "--listen", chosen.address,
           "Address or name to listen at: '::' for all addresses, 'ssh' for the one that the ssh "
           "client connected to. Every process that has the token can run programs here")
        ->check(not_empty())
        ->capture_default_str()
        ->type_name("ADDRESS");
    app.add_option("--port", chosen.port, "Port; 0: a free one")
        ->check(CLI::Range(0, 65535))
        ->capture_default_str();
    app.add_option(
           "--devices", chosen.devices,
           "N: number of devices that share this host's processors, by NUMA node if there "
           "are several; cuda, amdgpu: the GPUs that LLVM's plugin finds; host: LLVM's host "
           "devices, driven like GPUs")
        ->capture_default_str()
        ->type_name("N|cuda|amdgpu|host");
    app.add_option("--memory", chosen.memory,
                   "Memory of each device for each client, as 4G. Default: an equal share of the "
                   "host's memory")
        ->check(not_empty())
        ->type_name("SIZE");
    app.add_option("--max-sessions", chosen.server.max_sessions,
                   "Maximum number of devices that all clients together may use concurrently; at "
                   "least the number of devices")
        ->check(CLI::Range(1, 65535))
        ->capture_default_str()
        ->type_name("N");
    app.add_option("--greeting-timeout", chosen.server.handshake_timeout_s,
                   "Time limit of a connection for authenticating with the token")
        ->check(number_range(0.01, 3600.0))
        ->capture_default_str()
        ->type_name("SECONDS");
    app.add_option(
           "--least-kernel-time", chosen.server.min_kernel_time_s,
           "For measurements: a shorter kernel sleeps for the rest of this time, so that many "
           "devices on few cores scale like the same number of hosts")
        ->check(number_range(0.0, 3600.0))
        ->type_name("SECONDS");
    static const std::map<std::string, offload::service::confinement> confinements{
        {"off", offload::service::confinement::off},
        {"available", offload::service::confinement::available},
        {"required", offload::service::confinement::required}};
    app.add_option(
           "--confine", chosen.server.rights,
           "Least rights for sessions, by Landlock and seccomp: no files but in a folder of "
           "their own, no tracing or signalling of other processes, no fixed ports, no raw "
           "sockets. available: as far as the kernel has them; required: all, or the "
           "service does not start")
        ->transform(CLI::CheckedTransformer(confinements).description(""))
        ->take_last()
        ->type_name("off|available|required");
    app.add_flag("--once", chosen.server.once, "End when the last session has ended");
    app.add_flag("--end-with-parent", chosen.ends_with_parent,
                 "End when the process that started this one ends");
    app.add_flag("--print-port", chosen.prints_port, "Print the port when the service listens");
    app.add_flag("--attached", chosen.attached,
                 "For diomp-run: settings and token are read from standard input, and the service "
                 "ends when standard input closes");
    // Passed by diomp-run, since a remote shell does not preserve which signals are ignored.
    app.add_option("--ignore-signals", chosen.ignored_signals)->group("");
    app.set_version_flag("--version", "diomp-deviced (DiOMP) " DIOMP_VERSION);
    if (auto const status = diomp::parse_command_line(app, EXIT_FAILURE, argc, argv)) {
        std::exit(*status);
    }
    return chosen;
}

} // namespace diomp::deviced
