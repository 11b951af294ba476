// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "options.h"

#include "base/read_file.h"
#include "diomp.h"
#include "remote_shell.h"

#include <CLI/CLI.hpp>
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

/// CLI11 knows nothing of the program and its arguments, which follow the options.
class formatter : public CLI::Formatter {
public:
    std::string make_usage(const CLI::App * /*app*/, std::string /*name*/) const override {
        return "Usage: diomp-run -n N [options] [--] program [arguments]\n\n";
    }
};

/// -x NAME=VALUE or -x NAME.
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

/// Throws what CLI11 reports as misuse of `option`.
template <typename Host>
std::vector<Host> accept_hosts(const char *option, result<std::vector<Host>> parsed) {
    if (!parsed) {
        throw CLI::ValidationError(option, parsed.failure().message());
    }
    return parsed.take();
}

void declare_hosts(CLI::App &app, run_options &options) {
    auto *const list = app.add_option_function<std::string>(
                              "--hosts,--host",
                              [&options](const std::string &text) {
                                  options.hosts = accept_hosts("--hosts", parse_hosts(text));
                              },
                              "Run on these hosts, started by a remote shell. Without slots the "
                              "ranks are spread evenly; with slots each host is filled in turn")
                           ->type_name("HOST[:SLOTS],...");
    app.add_option_function<std::string>(
           "--hostfile",
           [&options](const std::string &path) {
               auto const content = read_file(path, max_host_file_bytes);
               if (!content) {
                   throw CLI::ValidationError("--hostfile", content.failure().message());
               }
               options.hosts = accept_hosts("--hostfile", parse_host_file(content.value(), path));
           },
           "The same from a file: a host per line, as HOST, HOST:SLOTS or HOST slots=SLOTS")
        ->type_name("FILE")
        ->excludes(list);
    app.add_flag("--oversubscribe", options.oversubscribe, "Allow more ranks than slots");
    app.add_option("--rsh", options.remote_shell,
                   fmt::format("Remote shell: gets HOST and a command. Default: DIOMP_RSH, or {}",
                               default_remote_shell))
        ->type_name("COMMAND");
    app.add_option("--agent-program", options.agent_program,
                   "Path of diomp-run on the hosts. Default: the same as here")
        ->type_name("PATH");
    app.add_option("--head-address", options.head_address,
                   "Address, name or interface of this host to which the others connect. Default: "
                   "all are tried")
        ->type_name("ADDRESS");
}

void declare(CLI::App &app, run_options &options) {
    app.add_option("-n,--np", options.ranks, "Number of ranks")
        ->check(CLI::Range(1, 100000))
        ->type_name("N");
    std::map<std::string, binding> const words{{"core", binding::core}, {"none", binding::none}};
    app.add_option("--bind-to", options.bind,
                   "core: each rank gets its share of the cores; none: the system places ranks. "
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
               options.device_hosts = accept_hosts("--remote-devices", parse_device_hosts(text));
           },
           "Lend the program devices of these hosts: diomp-run starts a service on each, by the "
           "remote shell unless it is this machine. Ranks get blocks of the devices")
        ->type_name("HOST[:N],...");
    app.add_flag("--tag-output", options.tag_output, "Start each line of output with its [rank]");
    app.add_option("--output-dir", options.output_dir,
                   "Write each rank's output to files rank-N.out and rank-N.err in this directory")
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
        ->check(CLI::Range(0.0, 1e9))
        ->type_name("SECONDS");
    declare_hosts(app, options);
    app.add_flag("-q,--quiet", options.quiet, "Do not say why a job failed");
    app.add_flag("-v,--verbose", options.verbose, "Say which rank runs where");
    app.set_version_flag("--version", fmt::format("diomp-run {}.{}.{}", DIOMP_VERSION_MAJOR,
                                                  DIOMP_VERSION_MINOR, DIOMP_VERSION_PATCH));
    // Everything from the first word that is no option belongs to the program.
    app.prefix_command();
    app.footer("Exit status: 0 if every rank exits with 0; otherwise that of the first rank that "
               "fails,\n128 + signal if it was killed, 124 after --timeout.");
}

/// The words behind argv[0] in reverse, as CLI11 takes them. Who comes from mpirun writes -np N,
/// which would be a number of ranks called "p". What follows the options is the program's own.
std::vector<std::string> words_in_reverse(const CLI::App &app, int argc, const char *const *argv) {
    std::vector<std::string> words(argv + 1, argv + argc);
    for (std::size_t i = 0; i < words.size() && words[i].starts_with("-") && words[i] != "--";
         ++i) {
        if (words[i] == "-np") {
            words[i] = "--np";
        }
        // With a value behind it in the same word it is not found.
        const CLI::Option *const known = app.get_option_no_throw(words[i]);
        i += known != nullptr && known->get_items_expected_max() > 0 ? 1 : 0;
    }
    std::ranges::reverse(words);
    return words;
}

/// What is wrong with the words behind the options; "" if nothing is. After "--" all are the
/// program's own.
std::string objection_to(const std::vector<std::string> &command) {
    bool const is_marked = !command.empty() && command.front() == "--";
    if (command.size() == (is_marked ? 1 : 0)) {
        return "no program given";
    }
    const std::string &program = command[is_marked ? 1 : 0];
    if (program.starts_with("-") && program.size() > 1) {
        return "unknown option " + program;
    }
    auto const next = std::ranges::adjacent_find(command, [](const auto &word, const auto &behind) {
        return word == ":" && (behind == "-n" || behind == "-np" || behind == "--np");
    });
    if (!is_marked && next != command.end()) {
        return fmt::format("all ranks run one program, {}: start no second one with \"{} {}\", "
                           "but let ranks choose their part by their number (after -- all words "
                           "are the program's)",
                           program, *next, *std::next(next));
    }
    return {};
}

} // namespace

std::variant<run_options, int> parse_command_line(int argc, const char *const *argv) {
    run_options options;
    CLI::App app("Runs a program on several ranks, of this machine or of several.", "diomp-run");
    app.formatter(std::make_shared<formatter>());
    declare(app, options);
    try {
        app.parse(words_in_reverse(app, argc, argv));
    } catch (const CLI::Success &request) {
        return app.exit(request);
    } catch (const CLI::ParseError &misuse) {
        std::fprintf(stderr, "diomp-run: %s\nTry 'diomp-run --help'.\n", misuse.what());
        return status_usage;
    }
    if (options.ranks == 0 && options.hosts.empty() && !options.device_hosts.empty()) {
        options.ranks = 1; // a program that knows nothing of ranks
    }
    if (options.ranks == 0 && options.hosts.empty()) {
        std::fputs("diomp-run: how many ranks? Give -n N\nTry 'diomp-run --help'.\n", stderr);
        return status_usage;
    }
    if (options.remote_shell.empty()) {
        const char *const chosen = std::getenv("DIOMP_RSH");
        options.remote_shell = chosen != nullptr && *chosen != '\0' ? chosen : default_remote_shell;
    }
    if (options.devices_per_rank > 0) {
        // A setting like others, so that it reaches other hosts the same way; behind those of -x.
        options.environment.emplace_back("DIOMP_DEVICES_PER_RANK",
                                         std::to_string(options.devices_per_rank));
    }
    options.command = app.remaining();
    std::string const objection = objection_to(options.command);
    if (!objection.empty()) {
        std::fprintf(stderr, "diomp-run: %s\nTry 'diomp-run --help'.\n", objection.c_str());
        return status_usage;
    }
    if (options.command.front() == "--") {
        options.command.erase(options.command.begin());
    }
    return options;
}

} // namespace diomp::run
