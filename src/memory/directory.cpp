// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "memory/directory.h"

#include <fmt/core.h>

#include <mutex>

namespace diomp::memory {
namespace {

std::optional<address_range> containing(const std::map<std::uint64_t, std::uint64_t> &ranges,
                                        std::uint64_t address) {
    auto found = ranges.upper_bound(address);
    if (found == ranges.begin()) {
        return std::nullopt;
    }
    --found;
    // The end itself counts, so that a range that starts inside and ends past it is reported as
    // such.
    if (address - found->first > found->second) {
        return std::nullopt;
    }
    return address_range{found->first, found->second, OMPX_MEM_REGISTERED};
}

} // namespace

directory::directory(const segment &own, conduit::engine &engine, conduit::call_service &calls,
                     world_rank self)
    : own_(own), engine_(engine), calls_(calls), self_(self),
      handler_(
          engine.add_handler([this](const conduit::message &incoming) { on_question(incoming); })) {
}

published_state *directory::published_by(world_rank peer) const {
    return reinterpret_cast<published_state *>(engine_.transport().direct_base(peer));
}

status directory::add(std::uint64_t base, std::uint64_t nbytes) {
    std::lock_guard const guard(mutex_);
    auto const next = registered_.lower_bound(base);
    auto const clash = [&](const std::pair<const std::uint64_t, std::uint64_t> &other) {
        return error(OMPX_ERR_ADDRESS,
                     fmt::format("the range overlaps {:#x} + {} bytes, which is registered already",
                                 other.first, other.second),
                     "unregister that range first");
    };
    if (next != registered_.end() && next->first - base < nbytes) {
        return clash(*next);
    }
    if (next != registered_.begin()) {
        auto const previous = std::prev(next);
        if (base - previous->first < previous->second) {
            return clash(*previous);
        }
    }
    registered_.emplace_hint(next, base, nbytes);
    return {};
}

status directory::remove(std::uint64_t base) {
    std::lock_guard const guard(mutex_);
    if (registered_.erase(base) == 0) {
        return error(OMPX_ERR_ADDRESS, "no registered range starts there",
                     "pass the address that was given to ompx_register, once");
    }
    published_by(self_)->registration_generation.fetch_add(1, std::memory_order_release);
    return {};
}

std::optional<address_range> directory::find_own(std::uint64_t address) const {
    std::shared_lock const guard(mutex_);
    return containing(registered_, address);
}

std::optional<address_range> directory::kept_answer(world_rank peer, std::uint64_t address,
                                                    std::size_t nbytes) const {
    published_state const *const published = published_by(peer);
    // Read before the answer: if the range goes away after that, so does the owner's memory anyway.
    std::uint64_t const current =
        published == nullptr ? 0
                             : published->registration_generation.load(std::memory_order_acquire);
    std::shared_lock const guard(mutex_);
    auto const cached = cache_.find(peer);
    if (cached == cache_.end() || (published != nullptr && cached->second.generation != current)) {
        return std::nullopt;
    }
    auto const known = containing(cached->second.ranges, address);
    if (!known || address >= known->base + known->nbytes) {
        return std::nullopt;
    }
    if (published == nullptr && (nbytes == 0 || nbytes > known->base + known->nbytes - address)) {
        return std::nullopt;
    }
    return known;
}

void directory::keep(world_rank peer, const answer &fresh) {
    std::lock_guard const guard(mutex_);
    if (num_kept_ >= max_kept) {
        cache_.clear();
        num_kept_ = 0;
    }
    peer_cache &cached = cache_[peer];
    auto &ranges = cached.ranges;
    if (cached.generation != fresh.generation) {
        num_kept_ -= ranges.size();
        ranges.clear();
        cached.generation = fresh.generation;
    }
    if (ranges.insert_or_assign(fresh.range.base, fresh.range.nbytes).second) {
        ++num_kept_;
    }
}

void directory::forget(world_rank peer) {
    std::lock_guard const guard(mutex_);
    if (auto const cached = cache_.find(peer); cached != cache_.end()) {
        num_kept_ -= cached->second.ranges.size();
        cache_.erase(cached);
    }
}

result<std::optional<address_range>>
directory::find_registered(world_rank peer, std::uint64_t address, std::size_t nbytes) {
    if (peer == self_) {
        return find_own(address);
    }
    if (auto const known = kept_answer(peer, address, nbytes)) {
        return known;
    }
    auto fresh = ask(peer, address, subject::registered);
    DIOMP_TRY(fresh);
    if (fresh.value().range.kind == OMPX_MEM_NONE) {
        return std::optional<address_range>{};
    }
    keep(peer, fresh.value());
    return std::optional(fresh.value().range);
}

result<std::optional<address_range>> directory::find_allocation(world_rank peer,
                                                                std::uint64_t address) {
    auto fresh = ask(peer, address, subject::allocation);
    DIOMP_TRY(fresh);
    return fresh.value().range.kind == OMPX_MEM_NONE ? std::optional<address_range>{}
                                                     : std::optional(fresh.value().range);
}

result<directory::answer> directory::ask(world_rank peer, std::uint64_t address, subject about) {
    return calls_.call<answer>(peer, handler_, question{{}, address, about}, [peer] {
        return fmt::format("waiting for rank {} to say what it has at an address", peer.value());
    });
}

void directory::on_question(const conduit::message &incoming) {
    question asked;
    std::memcpy(&asked, incoming.payload.data(), sizeof(asked));
    answer told;
    // Read the generation first: if a range goes away after that, the asker's copy is void at its
    // next look.
    told.generation = published_by(self_)->registration_generation.load(std::memory_order_acquire);
    if (asked.about == subject::registered) {
        told.range = find_own(asked.address).value_or(address_range{});
    } else {
        auto const start = reinterpret_cast<std::uint64_t>(own_.base());
        if (auto const found = own_.find(asked.address - start)) {
            told.range = {start + found->offset, found->nbytes, found->kind};
        }
    }
    calls_.reply(incoming.source, asked.header.id, told);
}

} // namespace diomp::memory
