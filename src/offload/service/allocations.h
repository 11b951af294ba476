// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Table of a client's allocations in a device's own memory. The addresses that the client passes
// for network transfers are validated here.
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
    /// Frees memory of the device. Called by the thread that drops the last reference to it.
    using free_function = std::function<void(std::uint64_t address)>;
    explicit allocations(free_function free_memory) : free_memory_(std::move(free_memory)) {}

    void add(std::uint64_t address, std::size_t nbytes);
    /// Removes an allocation; its memory is freed when the last retain() of it ends. False: no
    /// allocation begins at this address.
    bool release(std::uint64_t address);
    /// Keeps the allocation that contains this range alive as long as the result. nullptr: there is
    /// none.
    [[nodiscard]] std::shared_ptr<void> retain(std::uint64_t address, std::size_t nbytes) const;

private:
    struct block {
        std::size_t nbytes;
        std::shared_ptr<void> lifetime; ///< its deleter frees the memory
    };

    free_function free_memory_;
    mutable std::mutex mutex_;              ///< leaf lock
    std::map<std::uint64_t, block> blocks_; ///< [first address]
};

} // namespace diomp::offload::service
