// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory of a device outside its slot: its own allocations, and symbols of images.
#pragma once

#include "offload/remote/protocol.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace diomp::offload::remote {

/// Any thread; nothing blocks.
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
