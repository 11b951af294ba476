// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sync/internal/barrier_area.h"

#include <fmt/core.h>

namespace diomp::sync {

barrier_areas::barrier_areas(std::span<std::byte *const> areas, std::span<const world_rank> members,
                             std::size_t self)
    : members_(members.begin(), members.end()), self_(self) {
    areas_.reserve(areas.size());
    for (std::byte *const each : areas) {
        areas_.push_back(reinterpret_cast<barrier_area *>(each));
    }
}

error barrier_areas::mismatch(std::size_t one, std::size_t other, std::uint64_t epoch) const {
    return mismatch_error(members_[one], areas_[one]->flag_slot_of(epoch).call, members_[other],
                          areas_[other]->flag_slot_of(epoch).call);
}

std::string barrier_areas::describe_missing(std::uint64_t epoch) const {
    std::string missing;
    int count = 0;
    for (std::size_t member = 0; member < size(); ++member) {
        if (!areas_[member]->has_arrived(epoch)) {
            missing += fmt::format("{}{}", count == 0 ? "" : ", ", members_[member].value());
            ++count;
        }
    }
    // If no member is missing, the last one has arrived after the timeout.
    std::string const awaited = count > 0   ? (count > 1 ? "ranks " : "rank ") + missing
                                : is_flat() ? "ranks that arrived late"
                                            : "rank 0 to publish that all ranks have arrived";
    return fmt::format("waiting for {} in {}", awaited,
                       describe(areas_[self_]->flag_slot_of(epoch).call));
}

} // namespace diomp::sync
