// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What an owner alone knows about its memory, and how other ranks ask: registered ranges, and
// (DIOMP_CHECK=allocations) the allocations in its segment.
//
// Answers about registered ranges are kept. For ranks of the same node until the owner unregisters
// something: it then changes a generation in its slot, which every use of an answer reads. Memory
// of a rank that is not mapped here is reached with its owner's help alone, and the owner checks
// each request again; so a stale answer does no harm: the refusal drops it (forget), and an answer
// that would make a transfer an error is asked for afresh.
#pragma once

#include "conduit/call.h"
#include "memory/segment.h"

#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>

namespace diomp::memory {

struct address_range {
    std::uint64_t base = 0;
    std::uint64_t nbytes = 0;
    ompx_mem_kind_t kind = OMPX_MEM_NONE;
};

/// Any thread. Create before engine.start().
class directory {
public:
    /// Answers that are kept. When there are more, all are dropped.
    static constexpr std::size_t max_kept = 4096;

    directory(const segment &own, conduit::engine &engine, conduit::call_service &calls,
              world_rank self);

    status add(std::uint64_t base, std::uint64_t nbytes);
    status remove(std::uint64_t base);
    /// The own registered range that contains the address.
    [[nodiscard]] std::optional<address_range> find_own(std::uint64_t address) const;

    /// The registered range of `peer` that contains the address; a message on first use, then
    /// kept. For peers that are not mapped a kept answer counts only if it covers `nbytes` and
    /// these are not 0.
    result<std::optional<address_range>> find_registered(world_rank peer, std::uint64_t address,
                                                         std::size_t nbytes);
    /// Drops what is kept about a peer that is not mapped: it has refused a transfer.
    void forget(world_rank peer);
    /// The allocation of `peer` that contains the address in its segment; always a message.
    result<std::optional<address_range>> find_allocation(world_rank peer, std::uint64_t address);

private:
    enum class subject : std::uint64_t { registered, allocation };
    struct question {
        conduit::request_header header;
        std::uint64_t address = 0;
        subject about = subject::registered;
    };
    struct answer {
        address_range range;
        std::uint64_t generation = 0;
    };
    struct peer_cache {
        std::uint64_t generation = 0;
        std::map<std::uint64_t, std::uint64_t> ranges; ///< base -> nbytes
    };

    void on_question(const conduit::message &incoming);
    result<answer> ask(world_rank peer, std::uint64_t address, subject about);
    /// nullptr: not mapped here.
    [[nodiscard]] published_state *published_by(world_rank peer) const;
    std::optional<address_range> kept_answer(world_rank peer, std::uint64_t address,
                                             std::size_t nbytes) const;
    void keep(world_rank peer, const answer &fresh);

    const segment &own_;
    conduit::engine &engine_;
    conduit::call_service &calls_;
    world_rank self_;
    conduit::handler_id handler_;
    mutable std::shared_mutex mutex_;                   ///< leaf lock over the two below
    std::map<std::uint64_t, std::uint64_t> registered_; ///< base -> nbytes, disjoint
    std::map<world_rank, peer_cache> cache_;            ///< peers that were asked
    std::size_t num_kept_ = 0;                          ///< ranges in all of them
};

} // namespace diomp::memory
