// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Exchange of the blocks of a group that is created from a list: each member sends its offset to
// all others in an active message and waits for theirs: n (n - 1) messages of 48 bytes. Messages
// carry a hash of the set of members and a key, so many groups may be created at once; messages for
// one set match in the order in which they were sent.
#pragma once

#include "group/internal/group_factory.h"

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace diomp::group {

/// A member's message about its block.
struct block_offer {
    std::uint64_t set_hash = 0;
    std::uint64_t list_hash = 0;
    std::uint64_t offset_plus_one = 0; ///< 0: no space
    std::uint64_t id = 0;              ///< proposed group id; that of the first member is used
};

/// One per rank. Thread-safe.
class offer_exchange {
public:
    /// Create before engine.start().
    offer_exchange(messaging::engine &engine, world_rank self);

    /// Collective over the members: their offers, in the order of the list. `call` describes it in
    /// errors. After a timeout the next exchange of the set repeats the own offer.
    result<std::vector<block_offer>> run(const parsed_endpoints &wanted, const std::string &call,
                                         group_factory &groups);

private:
    block_offer make_offer(const parsed_endpoints &wanted, group_factory &groups);
    /// The oldest offers of the members, if those of all have arrived.
    std::optional<std::vector<block_offer>> take_offers(std::span<const world_rank> members,
                                                        const block_offer &own);
    std::string describe_missing(std::span<const world_rank> members, std::uint64_t set_hash,
                                 const std::string &call);

    messaging::engine &engine_;
    world_rank self_;
    transport::handler_id handler_;
    std::mutex mutex_; ///< leaf lock; protects the members below
    /// [hash of the set][sender], in the order of arrival.
    std::map<std::uint64_t, std::map<world_rank, std::deque<block_offer>>> offers_;
    /// Own offers of creations that timed out, by the hash of the set.
    std::map<std::uint64_t, block_offer> unfinished_;
};

/// "0, 1, 2, ..."
std::string list_ranks(std::span<const world_rank> members);

} // namespace diomp::group
