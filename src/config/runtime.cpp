// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "config/internal/rows.h"

namespace diomp::config {
namespace {

constexpr std::array<std::pair<const char *, error_policy>, 2> error_words{
    {{"abort", error_policy::abort}, {"return", error_policy::return_status}}};
constexpr std::array<std::pair<const char *, stats_mode>, 3> stats_words{
    {{"off", stats_mode::off},
     {"summary", stats_mode::summary},
     {"callsites", stats_mode::callsites}}};

} // namespace

std::span<const setting_row> runtime_rows() {
    static constexpr auto rows = std::to_array<setting_row>({
        {"DIOMP_ERRORS", "abort|return", "abort",
         "Effect of an error in a call: end the job, or return the code to the caller.",
         value<word<error_words>>([](auto &s) -> auto & { return s.runtime.errors; })},
        {"DIOMP_STACKS", "on|off", "on",
         "Print the call stacks of all threads of all ranks to standard error before a job ends "
         "because of a timeout (DIOMP_TIMEOUT, diomp-run --timeout). Uses a real-time signal that "
         "has no handler at that moment.",
         value<on_off>([](auto &s) -> auto & { return s.runtime.stacks; })},
        {"DIOMP_LOG", "off|error|warn|info|debug, COMPONENT:LEVEL, time,...", "warn",
         "Level of the runtime's messages on standard error, also by component: "
         "tcp:debug,coll:info. Components are the modules and folders of the source, as "
         "transport, tcp, ucx, messaging, group, coll, device_coll, offload, remote, launch. With "
         "time, as in debug,time, a message begins with the time (UTC, microseconds). In jobs of "
         "several ranks [rank@host] follows.",
         value<component_levels>([](auto &s) -> auto & { return s.runtime.log; })},
        {"DIOMP_STATS", "off|summary|callsites", "off",
         "Table of transfers, bytes and waiting times at exit; callsites: also by call site in "
         "the program.",
         value<word<stats_words>>([](auto &s) -> auto & { return s.runtime.stats; })},
        {"DIOMP_STATS_FILE", "path", "",
         "File for the table of DIOMP_STATS instead of standard error; %r is replaced by the "
         "rank.",
         value<any_text>([](auto &s) -> auto & { return s.runtime.stats_file; })},
        {"DIOMP_TRACE", "path", "",
         "File for the times of all calls and transfers, for Perfetto; %r is replaced by the "
         "rank, without %r the rank is inserted before the extension. diomp-trace puts the files "
         "of all ranks into one; scripts/trace-overlap.py sums up the overlapped communication.",
         value<any_text>([](auto &s) -> auto & { return s.runtime.trace_file; })},
    });
    return rows;
}

} // namespace diomp::config
