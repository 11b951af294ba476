// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/own_memory.h"

#include <algorithm>
#include <iterator>

namespace diomp::offload::remote {

void own_memory::add(range_map &ranges, std::uint64_t address, std::size_t nbytes) {
    std::size_t &known = ranges[address]; // symbols may share an address
    known = std::max(known, nbytes);
}

bool own_memory::contains(const range_map &ranges, std::uint64_t address, std::size_t nbytes) {
    auto const next = ranges.upper_bound(address);
    if (next == ranges.begin()) {
        return false;
    }
    auto const &[begin, size] = *std::prev(next);
    std::uint64_t const offset = address - begin;
    return offset < size && nbytes <= size - offset;
}

void own_memory::add_allocation(std::uint64_t address, std::size_t nbytes) {
    std::lock_guard const guard(mutex_);
    allocations_.insert_or_assign(address, nbytes);
}

void own_memory::remove_allocation(std::uint64_t address) {
    std::lock_guard const guard(mutex_);
    allocations_.erase(address);
}

std::vector<std::uint64_t> own_memory::add_symbols(const std::vector<symbol> &symbols,
                                                   const std::vector<location> &locations) {
    std::vector<std::uint64_t> addresses;
    addresses.reserve(symbols.size());
    std::lock_guard const guard(mutex_);
    for (std::size_t i = 0; i < symbols.size(); ++i) {
        location const &found = locations[i];
        addresses.push_back(found.address);
        if (found.address != 0 && symbols[i].nbytes > 0) {
            add(symbols_, found.address, symbols[i].nbytes);
        }
        if (found.is_variable) {
            add(variables_, found.address, symbols[i].nbytes);
        }
    }
    return addresses;
}

bool own_memory::has(std::uint64_t address, std::size_t nbytes) const {
    std::lock_guard const guard(mutex_);
    return contains(allocations_, address, nbytes) || contains(symbols_, address, nbytes);
}

bool own_memory::is_zero_copy(std::uint64_t address, std::size_t nbytes) const {
    if (!is_network_reachable_) {
        return false;
    }
    std::lock_guard const guard(mutex_);
    return contains(allocations_, address, nbytes) || contains(variables_, address, nbytes);
}

} // namespace diomp::offload::remote
