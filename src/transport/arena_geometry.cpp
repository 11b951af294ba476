// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/arena_geometry.h"

#include "base/sizes.h"
#include "base/version.h"
#include "launch/launch.h"
#include "launch/placement.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <unistd.h>

namespace diomp::transport {
namespace {

/// Slots begin at multiples of this, so an offset aligned to less gives an address aligned to less.
constexpr std::size_t slot_granule = arena::max_alignment;

std::size_t physical_memory_bytes() {
    return static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) *
           static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// Sizes that were not set: the node's memory, or a share of the maximum slot.
void choose_auto_sizes(arena_geometry &mine, const arena_options &options) {
    std::size_t const max_slot_bytes =
        arena::max_span() / static_cast<std::size_t>(mine.num_slots) / slot_granule * slot_granule;
    auto const remaining_bytes = [max_slot_bytes](std::size_t taken) {
        return max_slot_bytes -
               std::min(max_slot_bytes,
                        arena_geometry::round_up(std::min(taken, max_slot_bytes), slot_granule));
    };
    if (options.usable_bytes == 0) {
        std::size_t const budget_bytes = options.choose_device_bytes
                                             ? max_slot_bytes / 2
                                             : remaining_bytes(options.device_bytes);
        mine.usable_bytes = std::min<std::size_t>(physical_memory_bytes(),
                                                  budget_bytes / slot_granule * slot_granule);
    }
    if (options.choose_device_bytes) {
        // Neither tiny nor more than the program's own choice leaves.
        std::size_t const host_bytes =
            arena_geometry::round_up(std::min(mine.usable_bytes, max_slot_bytes), slot_granule);
        mine.device_bytes = std::min(remaining_bytes(mine.usable_bytes),
                                     std::max(host_bytes, options.device_bytes));
    }
}

/// Sums of sizes must not overflow, a segment must not be empty, and the slots must fit.
status check_sizes(const arena_geometry &mine) {
    if (mine.usable_bytes > arena::max_span() || mine.device_bytes > arena::max_span() ||
        mine.usable_bytes == 0) {
        return error(OMPX_ERR_NOMEM,
                     fmt::format("segments of {} with {} for devices do not fit into "
                                 "the address arena of {}",
                                 format_size(mine.usable_bytes), format_size(mine.device_bytes),
                                 format_size(arena::max_span())),
                     "set DIOMP_SEGMENT_SIZE or DIOMP_DEVICE_SEGMENT_SIZE to a smaller value");
    }
    if (mine.slot_bytes() > arena::max_span() / static_cast<std::size_t>(mine.num_slots)) {
        return error(OMPX_ERR_NOMEM,
                     fmt::format("{} ranks on a node times {} per segment exceed the address arena "
                                 "of {}",
                                 mine.num_slots, format_size(mine.slot_bytes()),
                                 format_size(arena::max_span())),
                     "set DIOMP_SEGMENT_SIZE or DIOMP_DEVICE_SEGMENT_SIZE to a smaller value");
    }
    return {};
}

/// Layouts of messages and of shared memory differ between releases. The version is in the first
/// value that a rank reads of another one, and must stay there: later values may differ too.
status check_version(const launch::job_info &job, const std::string &of_rank_0) {
    if (of_rank_0 == library_version()) {
        return {};
    }
    return version_mismatch(fmt::format("rank {} on {}", job.rank.value(), job.host),
                            library_version(), of_rank_0);
}

/// Rank 0 learns from each node which ranks it has, and publishes it. Collective.
status publish_placement(launch::launcher &launcher, int &num_slots) {
    DIOMP_TRY(launch::publish_node(launcher, library_version()));
    DIOMP_TRY(launcher.fence());
    if (launcher.info().rank != world_rank{0}) {
        return {};
    }
    auto collected = launch::collect_placement(launcher, library_version());
    DIOMP_TRY(collected);
    num_slots = collected.value().max_per_node();
    return launch::publish_placement(launcher, collected.value());
}

/// The sizes with so many slots.
arena_geometry choose_geometry(const arena_options &options, int num_slots) {
    arena_geometry made{options.base == 0 ? arena::default_base() : options.base,
                        options.usable_bytes, options.device_bytes, num_slots,
                        options.has_redzones ? 1 : 0};
    choose_auto_sizes(made, options);
    made.usable_bytes = arena_geometry::round_up(made.usable_bytes, arena_geometry::page_bytes);
    return made;
}

/// Every rank of the job has a slot of its own where that makes no segment smaller: then an address
/// alone names a location.
arena_geometry choose_geometry(const arena_options &options, int num_slots, int num_ranks) {
    arena_geometry const shared = choose_geometry(options, num_slots);
    arena_geometry const own = choose_geometry(options, num_ranks);
    bool const is_as_large =
        own.usable_bytes == shared.usable_bytes && own.device_bytes == shared.device_bytes;
    return is_as_large && check_sizes(own).ok() ? own : shared;
}

} // namespace

std::size_t arena_geometry::device_offset() const { return round_up(usable_bytes, slot_granule); }

std::size_t arena_geometry::slot_bytes() const {
    return device_offset() + round_up(device_bytes, slot_granule);
}

bool has_slots_by_node(const launch::job_info &job, const arena_options &options) {
    return job.local_size < job.size && !options.one_slot_per_rank;
}

result<arena_geometry> agree_geometry(launch::launcher &launcher, const arena_options &options) {
    auto const &job = launcher.info();
    int num_slots = job.size;
    if (has_slots_by_node(job, options)) {
        DIOMP_TRY(publish_placement(launcher, num_slots));
    }
    if (job.rank == world_rank{0}) {
        arena_geometry const mine = choose_geometry(options, num_slots, job.size);
        if (job.size == 1) {
            DIOMP_TRY(check_sizes(mine));
            return mine;
        }
        DIOMP_TRY(
            launcher.put("window", fmt::format("{} {} {} {} {} {}", library_version(), mine.base,
                                               mine.usable_bytes, mine.device_bytes, mine.num_slots,
                                               mine.has_redzones)));
    }
    DIOMP_TRY(launcher.fence());
    auto text = launcher.get(world_rank{0}, "window");
    DIOMP_TRY(text);
    std::string const version = text.value().substr(0, text.value().find(' '));
    DIOMP_TRY(check_version(job, version));
    arena_geometry agreed;
    if (std::sscanf(text.value().c_str() + version.size(), "%lu %zu %zu %d %d", &agreed.base,
                    &agreed.usable_bytes, &agreed.device_bytes, &agreed.num_slots,
                    &agreed.has_redzones) != 5 ||
        agreed.num_slots < job.local_size) {
        return error(OMPX_ERR_SYSTEM, "rank 0 published a malformed arena geometry");
    }
    DIOMP_TRY(check_sizes(agreed));
    return agreed;
}

} // namespace diomp::transport
