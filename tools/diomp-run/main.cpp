// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// diomp-run: starts a program on several ranks, of this machine or of several.
#include "agent.h"
#include "head.h"
#include "host_list.h"
#include "job.h"
#include "options.h"

#include <cstdio>
#include <string_view>
#include <variant>

int main(int argc, char **argv) {
    using namespace diomp::run;
    if (argc == 2 && std::string_view(argv[1]) == "--agent") {
        return run_agent();
    }
    auto parsed = parse_command_line(argc, argv);
    if (const int *const status = std::get_if<int>(&parsed)) {
        return *status;
    }
    auto &options = std::get<run_options>(parsed);
    if (options.hosts.empty()) {
        return job(std::move(options)).run();
    }
    auto shares = place_on_hosts(options.hosts, options.ranks, options.oversubscribe);
    if (!shares) {
        std::fprintf(stderr, "diomp-run: %s; %s\n", shares.failure().message().c_str(),
                     shares.failure().remedy().c_str());
        return status_usage;
    }
    const host_share &last = shares.value().back();
    options.ranks = last.first_rank + last.ranks;
    return head(std::move(options), shares.take()).run();
}
