// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Binding of ranks to processors.
//
// Glossary: cpu: a hardware thread, the unit that the system schedules on. core: the cpus that
// share a processor core.
#pragma once

#include "base/result.h"
#include "options.h"

#include <functional>
#include <string>
#include <vector>

namespace diomp::run {

using cpu_list = std::vector<int>;

/// Reads a cpu's "siblings" list, such as "0,4" or "0-1"; empty if unknown.
using siblings_reader = std::function<std::string(int cpu)>;
/// Reads the siblings of a cpu of this machine from sysfs.
std::string read_siblings(int cpu);

/// Returns the cpus that this process may use, in ascending order.
cpu_list allowed_cpus();
/// Groups the allowed cpus by core, in the order of each core's first cpu.
std::vector<cpu_list> group_by_core(const cpu_list &allowed, const siblings_reader &siblings);
/// Parses "0-3,8" as 0 1 2 3 8. Malformed items are skipped.
cpu_list parse_cpu_list(const std::string &text);
/// Formats 0 1 2 3 8 as "0-3,8".
std::string format_cpu_list(const cpu_list &cpus);

/// Returns the cpus of each rank, [rank]; an empty list means unbound. With c cores, rank i of n
/// gets the cores from floor(i c / n) to floor((i + 1) c / n) - 1. With more ranks than cores,
/// ranks stay unbound; this is an error for binding::core.
result<std::vector<cpu_list>> assign_cores(int ranks, binding wanted,
                                           const std::vector<cpu_list> &cores);

} // namespace diomp::run
