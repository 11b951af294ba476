// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which processors each rank may use.
//
// Glossary: cpu: what the system schedules on (a hardware thread). core: the cpus that share one.
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
/// The reader of this machine (sysfs).
std::string read_siblings(int cpu);

/// The cpus that this process may use, in order.
cpu_list allowed_cpus();
/// Groups the allowed cpus by core. Neighbouring numbers stay neighbours.
std::vector<cpu_list> group_by_core(const cpu_list &allowed, const siblings_reader &siblings);
/// "0-3,8" -> 0 1 2 3 8. Malformed parts are skipped.
cpu_list parse_cpu_list(const std::string &text);
/// The other way round.
std::string format_cpu_list(const cpu_list &cpus);

/// cpus of each rank, [rank]; an empty list means unbound. With c cores, rank i of n gets cores
/// floor(i c / n) up to floor((i + 1) c / n). More ranks than cores: unbound, or an error if
/// binding was asked for.
result<std::vector<cpu_list>> place_ranks(int ranks, binding wanted,
                                          const std::vector<cpu_list> &cores);

} // namespace diomp::run
