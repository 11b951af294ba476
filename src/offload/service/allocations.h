// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a client has asked of a device's own memory: the network works there by addresses that the
// client names, which are looked up here.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

namespace diomp::offload::service {

/// Any thread.
class allocations {
public:
    /// Gives memory back to the device. Called when nobody holds it any more, by whoever was last.
    using giver = std::function<void(std::uint64_t address)>;
    explicit allocations(giver give_back) : give_back_(std::move(give_back)) {}

    void add(std::uint64_t address, std::size_t nbytes);
    /// From now on it is no allocation. False: none begins there.
    bool release(std::uint64_t address);
    /// The allocation with this range stays as long as the result lives. nullptr: there is none.
    [[nodiscard]] std::shared_ptr<void> hold(std::uint64_t address, std::size_t nbytes) const;

private:
    struct block {
        std::size_t nbytes;
        std::shared_ptr<void> life; ///< its end gives the memory back
    };

    giver give_back_;
    mutable std::mutex mutex_;              ///< leaf lock
    std::map<std::uint64_t, block> blocks_; ///< [first address]
};

} // namespace diomp::offload::service
