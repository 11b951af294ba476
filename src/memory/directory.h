// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lookups in the memory of other ranks, which only the owner can answer: registered ranges, and
// (DIOMP_CHECK=allocations) the allocations in its segment.
//
// Replies about registered ranges are cached. For ranks of the same node they are valid until the
// owner unregisters a range: it then changes a generation in its slot, which every use of a cached
// range reads. Memory of a rank that is not mapped here is accessed by its owner only, which checks
// each request again. A stale range is therefore harmless: the refusal drops it (invalidate), and a
// lookup that would make a transfer an error is repeated at the owner.
#pragma once

#include "base/result.h"
#include "memory/segment.h"
#include "messaging/request.h"
#include "transport/types.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <shared_mutex>

namespace diomp::messaging {
class call_service;
class engine;
} // namespace diomp::messaging

namespace diomp::memory {

struct address_range {
    std::uint64_t base = 0;
    std::uint64_t nbytes = 0;
    ompx_mem_kind_t kind = OMPX_MEM_NONE;
    bool is_writable = true; ///< known of own ranges only
};

/// Any thread. Create before engine.start().
class directory {
public:
    /// Limit of cached ranges. When it is exceeded, all are dropped.
    static constexpr std::size_t max_cached = 4096;

    directory(const segment &own, messaging::engine &engine, messaging::call_service &calls,
              world_rank self);

    /// OMPX_ERR_ADDRESS: the range overlaps another one, or has addresses that cannot be read now.
    status add(std::uint64_t base, std::uint64_t nbytes);
    status remove(std::uint64_t base);
    /// The registered range of this rank that contains the address.
    [[nodiscard]] std::optional<address_range> find_own(std::uint64_t address) const;

    /// The registered range of `peer` that contains the address. Sends a request on first use, then
    /// uses the cache. For peers that are not mapped a cached range is used only if it covers
    /// `nbytes` and `nbytes` is not 0. Blocks until the reply arrives.
    result<std::optional<address_range>> find_registered(world_rank peer, std::uint64_t address,
                                                         std::size_t nbytes);
    /// Drops the cached ranges of a peer that is not mapped, after it has refused a transfer.
    void invalidate(world_rank peer);
    /// The allocation of `peer` that contains the address in its segment. Always sends a request.
    result<std::optional<address_range>> find_allocation(world_rank peer, std::uint64_t address);

private:
    enum class query_kind : std::uint64_t { registered, allocation };
    struct rpc_request {
        messaging::request_header header;
        std::uint64_t address = 0;
        query_kind query = query_kind::registered;
    };
    struct rpc_reply {
        address_range range;
        std::uint64_t generation = 0;
    };
    struct peer_cache {
        std::uint64_t generation = 0;
        std::map<std::uint64_t, std::uint64_t> ranges; ///< base -> nbytes
    };

    void on_request(const transport::message &incoming);
    result<rpc_reply> query_owner(world_rank peer, std::uint64_t address, query_kind query);
    /// nullptr: not mapped here.
    [[nodiscard]] published_state *published_by(world_rank peer) const;
    std::optional<address_range> find_cached(world_rank peer, std::uint64_t address,
                                             std::size_t nbytes) const;
    void cache_reply(world_rank peer, const rpc_reply &fresh);

    const segment &own_;
    messaging::engine &engine_;
    messaging::call_service &calls_;
    world_rank self_;
    transport::handler_id handler_;
    mutable std::shared_mutex mutex_;                   ///< leaf lock over those below
    std::map<std::uint64_t, std::uint64_t> registered_; ///< base -> nbytes, disjoint
    std::set<std::uint64_t> read_only_;                 ///< bases of ranges that cannot be written
    std::map<world_rank, peer_cache> cache_;            ///< peers that were queried
    std::size_t num_cached_ = 0;                        ///< ranges of all peers
};

} // namespace diomp::memory
