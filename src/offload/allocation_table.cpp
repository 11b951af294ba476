// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/allocation_table.h"

#include "base/assert.h"

#include <algorithm>
#include <utility>

namespace diomp::offload {

std::optional<std::uint64_t> allocation_table::offset_of_number(std::uint64_t number) const {
    auto const found = numbers_.find(number);
    return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

bool allocation_table::is_mapped_and_used(const device_allocation &request) const {
    auto const begin = reinterpret_cast<std::uintptr_t>(request.host);
    return request.host != nullptr && std::ranges::any_of(used_, [&](std::uint64_t offset) {
               device_allocation const &other = records_.at(offset).what;
               auto const start = reinterpret_cast<std::uintptr_t>(other.host);
               return other.host != nullptr && start < begin + request.nbytes &&
                      begin < start + other.nbytes;
           });
}

void allocation_table::add(const device_allocation &made, std::size_t alignment) {
    allocation_record added;
    added.what = made;
    added.alignment = alignment;
    added.before = state_;
    added.after = state_ = ++last_state_;
    [[maybe_unused]] bool const is_new = records_.emplace(made.offset, std::move(added)).second;
    DIOMP_ASSERT(is_new, "an offset has one allocation");
    if (made.kind == OMPX_MEM_ASYMMETRIC) {
        numbers_.emplace(made.number, made.offset);
    }
}

std::optional<device_allocation> allocation_table::share(std::uint64_t offset, world_rank requester,
                                                         bool is_mapped) {
    allocation_record *const entry = find(offset);
    if (entry == nullptr || entry->is_releasing) {
        return std::nullopt;
    }
    auto &others = entry->sharers.others;
    if (is_mapped) {
        entry->sharers.mapped_ranks = true;
    } else if (std::find(others.begin(), others.end(), requester) == others.end()) {
        others.push_back(requester);
    }
    return entry->what;
}

std::optional<device_allocation> allocation_table::use(std::uint64_t offset) {
    allocation_record *const entry = find(offset);
    if (entry == nullptr || entry->is_releasing) {
        return std::nullopt;
    }
    if (!entry->sharers.is_used) {
        entry->sharers.is_used = true;
        used_.push_back(offset);
    }
    return entry->what;
}

std::optional<sharer_set> allocation_table::begin_release(std::uint64_t offset) {
    allocation_record *const found = find(offset);
    if (found == nullptr || found->is_releasing) {
        return std::nullopt;
    }
    found->is_releasing = true;
    return found->sharers;
}

void allocation_table::erase(const allocation_record &of) {
    state_ = ++last_state_;
    std::uint64_t const offset = of.what.offset;
    if (of.sharers.is_used) {
        std::erase(used_, offset);
    }
    DIOMP_ASSERT(records_.contains(offset), "an allocation is erased once");
    if (of.what.number != 0) {
        numbers_.erase(of.what.number);
    }
    records_.erase(offset);
}

std::optional<std::uint64_t> allocation_table::pop_cached() {
    if (cached_.empty()) {
        return std::nullopt;
    }
    std::uint64_t const offset = cached_.back()->what.offset;
    cached_.pop_back();
    records_.erase(offset);
    return offset;
}

} // namespace diomp::offload
