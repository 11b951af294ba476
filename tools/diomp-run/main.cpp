// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// diomp-run: starts a program on several ranks, of this machine or of several.
#include "agent.h"
#include "base/secure/secret.h"
#include "base/tool_main.h"
#include "head.h"
#include "host_list.h"
#include "job.h"
#include "options.h"
#include "report.h"

#include <cstdio>
#include <string_view>
#include <variant>

namespace {

int refuse(const diomp::error &why) {
    std::fprintf(stderr, "diomp-run: %s\n", diomp::run::describe(why).c_str());
    return diomp::run::status_usage;
}

/// Services and ranks have it in common. Not on a command line, which everybody can see.
void give_token(diomp::run::run_options &options) {
    if (!options.device_hosts.empty()) {
        options.environment.emplace_back("DIOMP_TOKEN", diomp::secure::secret::random().encode());
    }
}

int run(int argc, char **argv) {
    using namespace diomp::run;
    if (argc == 2 && std::string_view(argv[1]) == "--agent") {
        return run_agent();
    }
    auto parsed = parse_command_line(argc, argv);
    if (const int *const status = std::get_if<int>(&parsed)) {
        return *status;
    }
    auto &options = std::get<run_options>(parsed);
    give_token(options);
    if (options.hosts.empty()) {
        auto const fit = check_devices(options.device_hosts, options.ranks);
        return fit ? job(std::move(options)).run() : refuse(fit.failure());
    }
    auto shares = place_on_hosts(options.hosts, options.ranks, options.oversubscribe);
    if (!shares) {
        return refuse(shares.failure());
    }
    const host_share &last = shares.value().back();
    options.ranks = last.first_rank + last.ranks;
    if (auto const fit = check_devices(options.device_hosts, options.ranks); !fit) {
        return refuse(fit.failure());
    }
    return head(std::move(options), shares.take()).run();
}

} // namespace

int main(int argc, char **argv) {
    return diomp::run_tool("diomp-run", [argc, argv] { return run(argc, argv); });
}
