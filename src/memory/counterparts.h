// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ranges of private memory that all ranks have registered together: an own address in one of them
// names the same offset of another rank's range.
#pragma once

#include "base/ids.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>
#include <vector>

namespace diomp::memory {

/// Any thread.
class counterpart_table {
public:
    struct range {
        std::uint64_t nbytes = 0;
        std::uint64_t number = 0;            ///< equal on all ranks
        std::vector<std::uint64_t> bases;    ///< [rank] in its own address space
        std::optional<std::uint64_t> offset; ///< in every segment: static data that was moved there
    };

    void add(std::uint64_t base, std::uint64_t nbytes, std::vector<std::uint64_t> bases,
             std::optional<std::uint64_t> offset);
    void remove(std::uint64_t base);
    /// The number of the range that starts at `base`.
    [[nodiscard]] std::optional<std::uint64_t> number_of(std::uint64_t base) const;

    /// A position in a range, named equally on all ranks.
    struct shared_position {
        std::uint64_t number = 0; ///< of the range
        std::uint64_t offset = 0;
        std::uint64_t nbytes = 0; ///< up to the end of the range
    };
    /// nullopt if the own address is in no range.
    [[nodiscard]] std::optional<shared_position> position_of(std::uint64_t address) const;

    /// A location at `peer`, in its address space, and the bytes up to the end of its range.
    struct counterpart {
        std::uint64_t address = 0;
        std::uint64_t nbytes = 0;
        std::optional<std::uint64_t> offset; ///< in its segment
    };
    /// nullopt if the own address is in no range. The end of a range counts as part of it.
    [[nodiscard]] std::optional<counterpart> find(world_rank peer, std::uint64_t address) const {
        if (!has_some_.load(std::memory_order_acquire)) [[likely]] {
            return std::nullopt;
        }
        return find_in_ranges(peer, address);
    }
    /// For an address of the peer in static data that was moved to its segment.
    [[nodiscard]] std::optional<counterpart> find_moved(world_rank peer,
                                                        std::uint64_t address) const;

    /// Own static data in the segment.
    struct moved_range {
        std::uint64_t base = 0;
        std::uint64_t nbytes = 0;
        std::uint64_t offset = 0;
    };
    /// The longest such range.
    [[nodiscard]] std::optional<moved_range> longest_moved() const;

private:
    using range_map = std::map<std::uint64_t, range>; ///< key: own base

    [[nodiscard]] std::optional<counterpart> find_in_ranges(world_rank peer,
                                                            std::uint64_t address) const;
    /// The range that holds the address, or ends there. The caller locks.
    [[nodiscard]] range_map::const_iterator find_range(std::uint64_t address) const;

    std::atomic<bool> has_some_{false};
    mutable std::shared_mutex mutex_; ///< leaf lock over the rest
    range_map ranges_;
    std::uint64_t next_number_ = 1;
};

} // namespace diomp::memory
