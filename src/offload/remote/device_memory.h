// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which parts of a device's slot are in use. The client alone gives them out, since the session has
// no other client: an allocation is a look into a heap and no message.
//
// Pages of freed memory stay with the session, so that the next allocation finds them there, until
// they are more than what is in use, and more than `most_idle_bytes`. Then they go back to the
// device's host (queue::return_pages).
#pragma once

#include "base/function_ref.h"
#include "base/result.h"
#include "memory/heap.h"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>

namespace diomp::offload::remote {

/// Any thread; nothing blocks.
class device_memory {
public:
    static constexpr std::uint64_t most_idle_bytes = std::uint64_t{256} << 20;
    /// Smaller parts are not given back.
    static constexpr std::uint64_t least_returned_bytes = std::uint64_t{1} << 20;
    /// At a time.
    static constexpr std::size_t most_parts = 64;

    /// Of the largest size that have room.
    static constexpr std::uint64_t stages = 8;

    struct part {
        std::uint64_t address = 0;
        std::uint64_t nbytes = 0;
    };

    /// Once, before everything else. The label is for messages.
    void set_up(std::uint64_t base, std::uint64_t nbytes, std::string label);

    /// OMPX_ERR_NOMEM.
    result<std::uint64_t> allocate(std::size_t nbytes);
    /// False: nothing begins there.
    bool release(std::uint64_t address);
    [[nodiscard]] bool has(std::uint64_t address) const { return address - base_ < nbytes_; }
    /// Transfers that change over in the slot do so in parts of this size at most.
    [[nodiscard]] std::uint64_t most_staged() const {
        return std::max<std::uint64_t>(nbytes_ / stages, 1);
    }
    /// OMPX_ERR_RANGE unless it lies in memory that is in use.
    status check(std::uint64_t address, std::size_t nbytes) const;

    /// So many pages are idle that the host should have them.
    [[nodiscard]] bool has_surplus() const;
    /// Calls `take` with the idle parts, while nobody can be given them: what it posts comes first.
    /// They count as returned if it says true.
    void return_idle(function_ref<bool(std::span<const part>)> take);

private:
    std::uint64_t base_ = 0;
    std::uint64_t nbytes_ = 0;
    std::string label_;
    mutable std::mutex mutex_; ///< leaf lock over the rest
    std::optional<memory::heap> heap_;
    std::uint64_t touched_bytes_ = 0;  ///< at most, since pages were last returned
    std::uint64_t touched_extent_ = 0; ///< of the heap, likewise
};

} // namespace diomp::offload::remote
