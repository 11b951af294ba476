// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Finds groups by handle without a lock; an invalid handle is detected.
#pragma once

#include "group/group.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace diomp::group {

/// Thread-safe. A handle consists of a tag, the generation of its slot, and the slot's index.
class handle_table {
public:
    static constexpr std::size_t max_groups = std::size_t{1} << 16;

    ~handle_table();

    /// nullopt if max_groups groups exist.
    std::optional<ompx_group_t> insert(std::unique_ptr<group> added);
    /// nullptr if the value is not a handle or the group has been removed.
    [[nodiscard]] group *find(ompx_group_t handle) const;
    /// Removes the group and invalidates the handle.
    std::unique_ptr<group> remove(ompx_group_t handle);
    [[nodiscard]] std::size_t num_groups() const;

private:
    static constexpr std::size_t slots_per_chunk = 256;
    struct slot {
        std::atomic<group *> stored{nullptr};
        std::atomic<std::uint32_t> generation{0};
    };
    using chunk = std::array<slot, slots_per_chunk>;

    [[nodiscard]] slot *slot_of(ompx_group_t handle) const;

    std::array<std::atomic<chunk *>, max_groups / slots_per_chunk> chunks_{};
    mutable std::mutex mutex_; ///< leaf lock; protects the members below
    std::vector<std::unique_ptr<chunk>> owned_;
    std::vector<std::uint32_t> free_;
    std::size_t num_slots_ = 0;
};

} // namespace diomp::group
