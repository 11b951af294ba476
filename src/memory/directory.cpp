// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "memory/directory.h"

#include "base/assert.h"
#include "base/mappings.h"
#include "messaging/call.h"
#include "messaging/engine.h"
#include "transport/conduit.h"

#include <fmt/core.h>

#include <cerrno>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

namespace diomp::memory {
namespace {

std::optional<address_range> containing(const std::map<std::uint64_t, std::uint64_t> &ranges,
                                        std::uint64_t address) {
    auto found = ranges.upper_bound(address);
    if (found == ranges.begin()) {
        return std::nullopt;
    }
    --found;
    // The end itself is included, so that a transfer that starts inside and ends past it is
    // reported as such.
    if (address - found->first > found->second) {
        return std::nullopt;
    }
    return address_range{found->first, found->second, OMPX_MEM_REGISTERED, true};
}

/// Whether the process has memory at all addresses of the range: otherwise the first message that
/// reads or writes it would end the process.
bool is_mapped(std::uint64_t base, std::uint64_t nbytes) {
    static auto const page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    std::uint64_t const first = base & ~(page_bytes - 1);
    std::uint64_t end = 0;
    // MS_ASYNC starts no output; the call only looks for gaps between mappings.
    return !__builtin_add_overflow(base, nbytes, &end) &&
           (::msync(reinterpret_cast<void *>(first), end - first, MS_ASYNC) == 0 ||
            errno != ENOMEM);
}

/// What all pages of a range allow now: a message that does more would end the process.
struct page_rights {
    bool is_readable = true;
    bool is_writable = true;
};

page_rights rights_of(std::uint64_t base, std::uint64_t nbytes) {
    page_rights all;
    visit_mappings([&](const memory_mapping &each) {
        if (each.end > base && each.begin < base + nbytes) {
            all.is_readable = all.is_readable && each.is_readable;
            all.is_writable = all.is_writable && each.is_writable;
        }
        return each.begin < base + nbytes;
    });
    return all;
}

} // namespace

directory::directory(const segment &own, messaging::engine &engine, messaging::call_service &calls,
                     world_rank self)
    : own_(own), engine_(engine), calls_(calls), self_(self),
      handler_(engine.add_handler(
          [this](const transport::message &incoming) { on_request(incoming); })) {}

published_state *directory::published_by(world_rank peer) const {
    return reinterpret_cast<published_state *>(engine_.transport().direct_base(peer));
}

status directory::add(std::uint64_t base, std::uint64_t nbytes) {
    if (!is_mapped(base, nbytes)) {
        return error(OMPX_ERR_ADDRESS,
                     "the range has addresses without memory: it was freed, or is larger than the "
                     "allocation",
                     "pass the address and the size in bytes of memory that exists");
    }
    page_rights const rights = rights_of(base, nbytes);
    if (!rights.is_readable) {
        return error(OMPX_ERR_ADDRESS, "the range has memory that this process cannot read",
                     "register memory after its protection allows accesses");
    }
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
    if (!rights.is_writable) {
        read_only_.insert(base);
    }
    return {};
}

status directory::remove(std::uint64_t base) {
    std::lock_guard const guard(mutex_);
    if (registered_.erase(base) == 0) {
        return error(OMPX_ERR_ADDRESS, "no registered range starts there",
                     "pass the address that was given to ompx_register, once");
    }
    read_only_.erase(base);
    published_by(self_)->registration_generation.fetch_add(1, std::memory_order_release);
    return {};
}

std::optional<address_range> directory::find_own(std::uint64_t address) const {
    std::shared_lock const guard(mutex_);
    auto found = containing(registered_, address);
    if (found) {
        found->is_writable = !read_only_.contains(found->base);
    }
    return found;
}

std::optional<address_range> directory::find_cached(world_rank peer, std::uint64_t address,
                                                    std::size_t nbytes) const {
    published_state const *const published = published_by(peer);
    // Read before the cached range: if the owner unregisters it later, its memory is gone anyway.
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

void directory::cache_reply(world_rank peer, const rpc_reply &fresh) {
    std::lock_guard const guard(mutex_);
    if (num_cached_ >= max_cached) {
        cache_.clear();
        num_cached_ = 0;
    }
    peer_cache &cached = cache_[peer];
    auto &ranges = cached.ranges;
    if (cached.generation != fresh.generation) {
        DIOMP_ASSERT(num_cached_ >= ranges.size(), "every cached range is counted");
        num_cached_ -= ranges.size();
        ranges.clear();
        cached.generation = fresh.generation;
    }
    if (ranges.insert_or_assign(fresh.range.base, fresh.range.nbytes).second) {
        ++num_cached_;
    }
}

void directory::invalidate(world_rank peer) {
    std::lock_guard const guard(mutex_);
    if (auto const cached = cache_.find(peer); cached != cache_.end()) {
        DIOMP_ASSERT(num_cached_ >= cached->second.ranges.size(), "every cached range is counted");
        num_cached_ -= cached->second.ranges.size();
        cache_.erase(cached);
    }
}

result<std::optional<address_range>>
directory::find_registered(world_rank peer, std::uint64_t address, std::size_t nbytes) {
    if (peer == self_) {
        return find_own(address);
    }
    if (auto const known = find_cached(peer, address, nbytes)) {
        return known;
    }
    auto fresh = query_owner(peer, address, query_kind::registered);
    DIOMP_TRY(fresh);
    if (fresh.value().range.kind == OMPX_MEM_NONE) {
        return std::optional<address_range>{};
    }
    cache_reply(peer, fresh.value());
    return std::optional(fresh.value().range);
}

result<std::optional<address_range>> directory::find_allocation(world_rank peer,
                                                                std::uint64_t address) {
    auto fresh = query_owner(peer, address, query_kind::allocation);
    DIOMP_TRY(fresh);
    return fresh.value().range.kind == OMPX_MEM_NONE ? std::optional<address_range>{}
                                                     : std::optional(fresh.value().range);
}

result<directory::rpc_reply> directory::query_owner(world_rank peer, std::uint64_t address,
                                                    query_kind query) {
    return calls_.call<rpc_reply>(peer, handler_, rpc_request{{}, address, query}, [peer] {
        return fmt::format("waiting for rank {} to look up an address of its memory", peer.value());
    });
}

void directory::on_request(const transport::message &incoming) {
    rpc_request request;
    std::memcpy(&request, incoming.payload.data(), sizeof(request));
    rpc_reply reply;
    // Reads the generation first: if a range is unregistered after that, the requester's copy is
    // invalid at its next use.
    reply.generation = published_by(self_)->registration_generation.load(std::memory_order_acquire);
    if (request.query == query_kind::registered) {
        reply.range = find_own(request.address).value_or(address_range{});
    } else {
        auto const start = reinterpret_cast<std::uint64_t>(own_.base());
        if (auto const found = own_.find(request.address - start)) {
            reply.range = {start + found->offset, found->nbytes, found->kind, true};
        }
    }
    calls_.reply(incoming.source, request.header.id, reply);
}

} // namespace diomp::memory
