// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// diomp-run: starts a program on several ranks, on this machine or on several hosts.
#include "base/secure/secret.h"
#include "base/tool_main.h"
#include "core/options.h"
#include "core/report.h"
#include "multihost/agent.h"
#include "multihost/head.h"
#include "multihost/host_list.h"
#include "single/job.h"

#include <cstdio>
#include <string_view>
#include <variant>

namespace {

int report_usage_error(const diomp::error &why) {
    std::fprintf(stderr, "diomp-run: %s\n", diomp::run::describe(why).c_str());
    return diomp::run::status_usage;
}

/// Adds the token that services and ranks share. Command lines are visible to all users, so it is
/// passed in the environment.
void add_token(diomp::run::run_options &options) {
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
    add_token(options);
    if (options.hosts.list.empty()) {
        auto const fit = check_devices(options.device_hosts, options.ranks);
        return fit ? job(std::move(options)).run() : report_usage_error(fit.failure());
    }
    auto blocks = assign_to_hosts(options.hosts.list, options.ranks, options.hosts.oversubscribe);
    if (!blocks) {
        return report_usage_error(blocks.failure());
    }
    const rank_block &last = blocks.value().back();
    options.ranks = last.first_rank + last.ranks;
    if (auto const fit = check_devices(options.device_hosts, options.ranks); !fit) {
        return report_usage_error(fit.failure());
    }
    return head(std::move(options), blocks.take()).run();
}

} // namespace

int main(int argc, char **argv) {
    return diomp::run_tool("diomp-run", [argc, argv] { return run(argc, argv); });
}
