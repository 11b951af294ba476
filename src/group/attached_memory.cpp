// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/attached_memory.h"

#include "messaging/engine.h"
#include "transport/conduit.h"

#include <algorithm>

namespace diomp::group {
namespace {

std::uint64_t address_of(const void *at) { return reinterpret_cast<std::uintptr_t>(at); }

} // namespace

bool attached_memory::is_permitted(std::span<std::byte *const> probes) {
    if (state_ == state::untested) {
        std::byte own{};
        bool permitted = write(self_, &own, &own, 1).ok(); // a filter may forbid writes alone
        for (std::size_t member = 0; permitted && member < probes.size(); ++member) {
            std::byte byte{};
            permitted = member == self_ || read(member, probes[member], &byte, 1).ok();
        }
        state_ = permitted ? state::permitted : state::forbidden;
    }
    return state_ == state::permitted;
}

bool attached_memory::can_export(const void *buffer, std::size_t nbytes) {
    bool const is_known = std::ranges::any_of(exported_, [&](const exported_range &each) {
        return each.begin == buffer && each.nbytes == nbytes;
    });
    if (is_known || nbytes == 0) {
        return true;
    }
    auto const *const first = static_cast<const std::byte *>(buffer);
    std::byte byte{};
    if (!read(self_, first, &byte, 1) || !read(self_, first + nbytes - 1, &byte, 1)) {
        return false;
    }
    exported_[next_exported_++ % exported_.size()] = {buffer, nbytes};
    return true;
}

status attached_memory::read(std::size_t member, const std::byte *from, std::byte *to,
                             std::size_t nbytes) {
    return engine_.transport().direct_private_memory().read_private(members_[member],
                                                                    address_of(from), to, nbytes);
}

status attached_memory::write(std::size_t member, std::byte *to, const std::byte *from,
                              std::size_t nbytes) {
    return engine_.transport().direct_private_memory().write_private(members_[member],
                                                                     address_of(to), from, nbytes);
}

/// A trial has 16 calls, as many as some programs make of a size in all. From 1 MiB on, the copies
/// to and from stage buffers usually cost more than system calls, so it begins with these.
agreed_autotuner attached_memory::new_tuner(std::uint32_t key) {
    std::uint32_t const width = key & ((1U << width_bits) - 1);
    return agreed_autotuner(width > 20 ? 1 : 0);
}

agreed_autotuner &attached_memory::tuner(std::uint32_t key) {
    auto found =
        std::ranges::find(tuners_, key, &std::pair<std::uint32_t, agreed_autotuner>::first);
    if (found == tuners_.end()) {
        found = tuners_.insert(tuners_.end(), {key, new_tuner(key)});
    }
    return found->second;
}

} // namespace diomp::group
