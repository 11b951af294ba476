// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory of a device, as its client knows it. The allocator of the slot runs in the client, since a
// session has only one client: an allocation is a lookup in a heap and needs no message.
//
// The session keeps the pages of freed memory for the next allocations until they exceed both the
// memory in use and `max_idle_bytes`. They are then returned to the device's host
// (queue::release_pages).
#pragma once

#include "base/function_ref.h"
#include "base/result.h"
#include "memory/heap.h"
#include "offload/remote/protocol.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace diomp::offload::remote {

/// Allocator of a device's slot. Any thread; nothing blocks.
class device_memory {
public:
    static constexpr std::uint64_t max_idle_bytes = std::uint64_t{256} << 20;
    /// Smaller free ranges are not returned to the host.
    static constexpr std::uint64_t min_returned_bytes = std::uint64_t{1} << 20;
    /// Maximum number of ranges in one release.
    static constexpr std::size_t max_ranges = 64;

    /// Number of stage buffers of the maximum size that fit into the slot.
    static constexpr std::uint64_t num_stage_buffers = 8;

    struct range {
        std::uint64_t address = 0;
        std::uint64_t nbytes = 0;
    };

    /// Must be called once, before any other function. The label is used in messages.
    void set_up(std::uint64_t base, std::uint64_t nbytes, std::string label);

    /// Errors: OMPX_ERR_NOMEM.
    result<std::uint64_t> allocate(std::size_t nbytes);
    /// Frees an allocation. False: no allocation begins at this address.
    bool release(std::uint64_t address);
    [[nodiscard]] bool has(std::uint64_t address) const { return address - base_ < nbytes_; }
    /// Maximum size of a stage buffer in the slot.
    [[nodiscard]] std::uint64_t max_stage_bytes() const {
        return std::max<std::uint64_t>(nbytes_ / num_stage_buffers, 1);
    }
    /// OMPX_ERR_RANGE unless the range lies in allocated memory.
    status check(std::uint64_t address, std::size_t nbytes) const;

    /// Whether so many pages are idle that they should be returned to the host.
    [[nodiscard]] bool has_excess_pages() const;
    /// Calls `post_release` with the idle ranges and with the lock held, so none of them can be
    /// allocated before the release has been posted. Returning true marks them as released.
    void release_idle(function_ref<bool(std::span<const range>)> post_release);

private:
    std::uint64_t base_ = 0;
    std::uint64_t nbytes_ = 0;
    std::string label_;
    mutable std::mutex mutex_; ///< leaf lock; protects the rest
    std::optional<memory::heap> heap_;
    std::uint64_t touched_bytes_ = 0;  ///< upper bound since the last release
    std::uint64_t touched_extent_ = 0; ///< of the heap, since the last release
};

/// Memory of a device outside its slot: its own allocations, and symbols of images. Any thread;
/// nothing blocks.
class own_memory {
public:
    /// Declares that the network can read and write allocations and variables. Call before the
    /// first use.
    void set_network_reachable(bool is_reachable) { is_network_reachable_ = is_reachable; }

    void add_allocation(std::uint64_t address, std::size_t nbytes);
    void remove_allocation(std::uint64_t address);
    /// Records the memory of an image's symbols and returns their addresses.
    std::vector<std::uint64_t> add_symbols(const std::vector<symbol> &symbols,
                                           const std::vector<location> &locations);

    /// Whether the range lies in an allocation or a symbol.
    [[nodiscard]] bool has(std::uint64_t address, std::size_t nbytes) const;
    /// Whether the range lies in an allocation or a variable that the network can read and write.
    [[nodiscard]] bool is_zero_copy(std::uint64_t address, std::size_t nbytes) const;

private:
    using range_map = std::map<std::uint64_t, std::size_t>; ///< [address] bytes
    static void add(range_map &ranges, std::uint64_t address, std::size_t nbytes);
    static bool contains(const range_map &ranges, std::uint64_t address, std::size_t nbytes);

    bool is_network_reachable_ = false;
    mutable std::mutex mutex_; ///< leaf lock; protects the rest
    range_map allocations_;
    range_map symbols_;
    range_map variables_; ///< subset of symbols_
};

} // namespace diomp::offload::remote
