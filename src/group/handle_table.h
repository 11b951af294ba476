// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From handles to groups without a lock, and without trusting the handle.
#pragma once

#include "group/group.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace diomp::group {

/// Any thread. A handle holds a tag, the generation of its place, and the place.
class handle_table {
public:
    static constexpr std::size_t max_groups = std::size_t{1} << 16;

    ~handle_table();

    /// nullopt: max_groups exist.
    std::optional<ompx_group_t> insert(std::unique_ptr<group> added);
    /// nullptr: not a handle, or its group is gone.
    [[nodiscard]] group *find(ompx_group_t handle) const;
    /// Takes the group out; the handle is void from now on.
    std::unique_ptr<group> remove(ompx_group_t handle);
    [[nodiscard]] std::size_t num_groups() const;

private:
    static constexpr std::size_t places_per_chunk = 256;
    struct place {
        std::atomic<group *> held{nullptr};
        std::atomic<std::uint32_t> generation{0};
    };
    using chunk = std::array<place, places_per_chunk>;

    [[nodiscard]] place *place_of(ompx_group_t handle) const;

    std::array<std::atomic<chunk *>, max_groups / places_per_chunk> chunks_{};
    mutable std::mutex mutex_; ///< leaf lock over the rest
    std::vector<std::unique_ptr<chunk>> owned_;
    std::vector<std::uint32_t> free_;
    std::size_t num_places_ = 0;
};

} // namespace diomp::group
