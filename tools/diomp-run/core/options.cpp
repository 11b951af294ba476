// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "options.h"

#include "base/command_line.h"
#include "base/read_file.h"
#include "diomp.h"
#include "multihost/allocation.h"
#include "multihost/remote_shell.h"
#include "own_process.h"
#include "report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>

namespace diomp::run {
namespace {

constexpr std::size_t max_host_file_bytes = std::size_t{64} << 20;

/// Prints the usage line: CLI11's has no program and arguments after the options.
class formatter : public CLI::Formatter {
public:
    std::string make_usage(const CLI::App * /*app*/, std::string /*name*/) const override {
        return "Usage: diomp-run -n N [options] [--] program [arguments]\n\n";
    }
};

/// Handles -x NAME=VALUE and -x NAME.
void add_variable(run_options &options, const std::string &text) {
    auto const equals = text.find('=');
    std::string name = text.substr(0, equals);
    if (name.empty()) {
        throw CLI::ValidationError("-x", "'" + text + "' has no name; use NAME or NAME=VALUE");
    }
    if (name.starts_with("DIOMP_LAUNCH_")) {
        throw CLI::ValidationError("-x", name + " is set by diomp-run itself");
    }
    if (equals == std::string::npos) {
        if (std::getenv(name.c_str()) == nullptr) {
            throw CLI::ValidationError("-x", name + " is not set here; use NAME=VALUE");
        }
        options.environment.emplace_back(std::move(name), std::nullopt);
    } else {
        options.environment.emplace_back(std::move(name), text.substr(equals + 1));
    }
}

/// Returns the parsed hosts, or throws an error that CLI11 reports for `option`.
template <typename Host>
std::vector<Host> require_hosts(const char *option, result<std::vector<Host>> parsed) {
    if (!parsed) {
        throw CLI::ValidationError(option, parsed.failure().message());
    }
    return parsed.take();
}

void add_host_options(CLI::App &app, host_options &hosts) {
    auto *const list = app.add_option_function<std::string>(
                              "--hosts,--host",
                              [&hosts](const std::string &text) {
                                  hosts.list = require_hosts("--hosts", parse_hosts(text));
                              },
                              "Run on these hosts, started by a remote shell. Without slots the "
                              "ranks are spread evenly; with slots each host is filled in turn. "
                              "Default: the hosts that Slurm or PBS has allocated")
                           ->type_name("HOST[:SLOTS],...");
    app.add_option_function<std::string>(
           "--hostfile",
           [&hosts](const std::string &path) {
               auto const content = read_file(path, max_host_file_bytes);
               if (!content) {
                   throw CLI::ValidationError("--hostfile", content.failure().message());
               }
               hosts.list = require_hosts("--hostfile", parse_host_file(content.value(), path));
           },
           "The same from a file: a host per line, as HOST, HOST:SLOTS or HOST slots=SLOTS")
        ->type_name("FILE")
        ->excludes(list);
    app.add_flag("--oversubscribe", hosts.oversubscribe, "Allow more ranks than slots");
    app.add_option("--rsh", hosts.remote_shell,
                   fmt::format("Remote shell: gets HOST and a command. Default: DIOMP_RSH, or {}",
                               default_remote_shell))
        ->type_name("COMMAND");
    app.add_option("--agent-program", hosts.agent_program,
                   "Path of diomp-run on the hosts. Default: the same as here")
        ->type_name("PATH");
    app.add_option("--head-address", hosts.head_address,
                   "Address, name or interface of this host to which the others connect. Default: "
                   "all are tried")
        ->type_name("ADDRESS");
}

void add_options(CLI::App &app, run_options &options) {
    app.add_option("-n,--np", options.ranks,
                   "Number of ranks. Default: the slots of --hosts, --hostfile or the batch system")
        ->check(CLI::Range(1, 100000))
        ->type_name("N");
    std::map<std::string, binding> const words{{"core", binding::core}, {"none", binding::none}};
    app.add_option(
           "--bind-to", options.bind,
           "core: the cores are divided among the ranks; none: the system schedules ranks freely. "
           "Default: core if there is a core for each rank, else none")
        ->transform(CLI::Transformer(words))
        ->type_name("core|none");
    app.add_option("--devices-per-rank", options.devices_per_rank,
                   "Devices that each rank drives, chosen among the node's by rank and distance; "
                   "the first is its default device. Default: DIOMP_DEVICES_PER_RANK, or 1")
        ->check(CLI::Range(1, 1024))
        ->type_name("N");
    app.add_option_function<std::string>(
           "--remote-devices",
           [&options](const std::string &text) {
               options.device_hosts = require_hosts("--remote-devices", parse_device_hosts(text));
           },
           "Lend the program devices of these hosts: diomp-run starts a service on each, by the "
           "remote shell unless it is this machine. Ranks get blocks of the devices")
        ->type_name("HOST[:N],...");
    app.add_flag("--tag-output", options.tag_output, "Start each line of output with its [rank]");
    app.add_option("--output-dir", options.output_dir,
                   "Write each rank's output to files rank-N.out and rank-N.err in this directory")
        ->check(not_empty())
        ->type_name("DIR");
    app.add_option_function<std::vector<std::string>>(
           "-x",
           [&options](const std::vector<std::string> &settings) {
               for (const std::string &setting : settings) {
                   add_variable(options, setting);
               }
           },
           "Set an environment variable for the ranks (they inherit all others; on other hosts "
           "only "
           "DIOMP_*, LD_LIBRARY_PATH and those named here)")
        ->expected(1)
        ->allow_extra_args(false)
        ->take_all()
        ->type_name("NAME[=VALUE]");
    app.add_option("--timeout", options.timeout_s, "End the job after this time, with status 124")
        ->check(number_range(0.0, 1e9))
        ->type_name("SECONDS");
    add_host_options(app, options.hosts);
    app.add_flag("-q,--quiet", options.quiet, "Do not say why a job failed");
    app.add_flag("-v,--verbose", options.verbose, "Say which rank runs where");
    app.set_version_flag("--version", fmt::format("diomp-run {}.{}.{}", DIOMP_VERSION_MAJOR,
                                                  DIOMP_VERSION_MINOR, DIOMP_VERSION_PATCH));
    // From the first word that is not an option, all words belong to the program.
    app.prefix_command();
    app.footer("Exit status: 0 if every rank exits with 0; otherwise that of the first rank that "
               "fails,\n128 + signal if it was killed, 124 after --timeout.");
}

/// Returns the words after argv[0] in reverse order, as CLI11 expects them. Replaces -np N, as in
/// mpirun, which CLI11 would read as -n p. Words after the options are the program's and stay.
std::vector<std::string> words_in_reverse(const CLI::App &app, int argc, const char *const *argv) {
    std::vector<std::string> words(argv + 1, argv + argc);
    for (std::size_t i = 0; i < words.size() && words[i].starts_with("-") && words[i] != "--";
         ++i) {
        if (words[i] == "-np") {
            words[i] = "--np";
        }
        // An option with its value in the same word is not found.
        const CLI::Option *const known = app.get_option_no_throw(words[i]);
        i += known != nullptr && known->get_items_expected_max() > 0 ? 1 : 0;
    }
    std::ranges::reverse(words);
    return words;
}

/// Checks the words after the options; returns the error, or "". All words after "--" are the
/// program's.
std::string find_usage_error(const std::vector<std::string> &command) {
    bool const is_marked = !command.empty() && command.front() == "--";
    if (command.size() == (is_marked ? 1 : 0)) {
        return "no program given";
    }
    const std::string &program = command[is_marked ? 1 : 0];
    if (program.starts_with("-") && program.size() > 1) {
        return "unknown option " + program;
    }
    auto const next =
        std::ranges::adjacent_find(command, [](const auto &word, const auto &following) {
            return word == ":" && (following == "-n" || following == "-np" || following == "--np");
        });
    if (!is_marked && next != command.end()) {
        return fmt::format(
            "all ranks run one program, {}: do not start a second one with \"{} {}\", "
            "but let ranks choose their part by their number (after -- all words "
            "are the program's)",
            program, *next, *std::next(next));
    }
    return {};
}

/// Takes the hosts of the batch system's job, unless the command line names hosts. An allocation of
/// this machine alone only gives the number of ranks; without agents there is less to start.
status use_allocation(run_options &options) {
    if (!options.hosts.list.empty() || !options.device_hosts.empty()) {
        return {};
    }
    auto found = find_allocation();
    DIOMP_TRY(found);
    if (!found.value()) {
        return {};
    }
    const allocation &given = *found.value();
    if (is_only_here(given)) {
        options.ranks = options.ranks == 0 ? given.hosts.front().slots : options.ranks;
        return {};
    }
    options.hosts.list = given.hosts;
    options.hosts.default_shell = given.remote_shell;
    return {};
}

std::string choose_remote_shell(const host_options &hosts) {
    const char *const chosen = std::getenv("DIOMP_RSH");
    if (!hosts.remote_shell.empty()) {
        return hosts.remote_shell;
    }
    if (chosen != nullptr && *chosen != '\0') {
        return chosen;
    }
    return hosts.default_shell.empty() ? default_remote_shell : hosts.default_shell;
}

} // namespace

std::string host_options::program() const {
    return agent_program.empty() ? own_program() : agent_program;
}

std::variant<run_options, int> parse_command_line(int argc, const char *const *argv) {
    run_options options;
    CLI::App app("Runs a program on several ranks, on this machine or on several hosts.",
                 "diomp-run");
    app.formatter(std::make_shared<formatter>());
    add_options(app, options);
    if (auto const status =
            diomp::parse_command_line(app, status_usage, words_in_reverse(app, argc, argv))) {
        return *status;
    }
    if (auto const taken = use_allocation(options); !taken) {
        std::fprintf(stderr, "diomp-run: %s\n", describe(taken.failure()).c_str());
        return status_usage;
    }
    if (options.ranks == 0 && options.hosts.list.empty() && !options.device_hosts.empty()) {
        options.ranks = 1; // for a program that does not use ranks
    }
    if (options.ranks == 0 && options.hosts.list.empty()) {
        std::fputs("diomp-run: how many ranks? Give -n N\nTry 'diomp-run --help'.\n", stderr);
        return status_usage;
    }
    options.hosts.remote_shell = choose_remote_shell(options.hosts);
    if (options.devices_per_rank > 0) {
        // As a setting it reaches the other hosts; after the settings of -x.
        options.environment.emplace_back("DIOMP_DEVICES_PER_RANK",
                                         std::to_string(options.devices_per_rank));
    }
    options.command = app.remaining();
    std::string const usage_error = find_usage_error(options.command);
    if (!usage_error.empty()) {
        std::fprintf(stderr, "diomp-run: %s\nTry 'diomp-run --help'.\n", usage_error.c_str());
        return status_usage;
    }
    if (options.command.front() == "--") {
        options.command.erase(options.command.begin());
    }
    return options;
}

} // namespace diomp::run
