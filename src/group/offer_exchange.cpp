// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/internal/offer_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace diomp::group {
namespace {

/// The finaliser of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
/// generators): every bit of the input changes half of the output.
std::uint64_t mix(std::uint64_t value) {
    value += 0x9e3779b97f4a7c15ull;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
    value = (value ^ value >> 27) * 0x94d049bb133111ebull;
    return value ^ value >> 31;
}

std::uint64_t hash_list(std::span<const world_rank> members) {
    std::uint64_t hash = mix(members.size());
    for (world_rank const each : members) {
        hash = mix(hash ^ static_cast<std::uint64_t>(each.value()));
    }
    return hash;
}

/// Hash of the list, which must be equal on all members.
std::uint64_t hash_endpoints(const parsed_endpoints &description) {
    std::uint64_t hash = hash_list(description.members);
    for (const endpoint &each : description.endpoints) {
        hash =
            mix(hash ^ std::uint64_t{each.member} << 32 ^ static_cast<std::uint32_t>(each.device));
    }
    return hash;
}

} // namespace

std::string list_ranks(std::span<const world_rank> members) {
    constexpr std::size_t max_listed = 16; // enough to identify the call in a message
    std::vector<int> numbers;
    for (world_rank const each : members.first(std::min(members.size(), max_listed))) {
        numbers.push_back(each.value());
    }
    return fmt::format("{}{}", fmt::join(numbers, ", "),
                       members.size() > max_listed ? ", ..." : "");
}

offer_exchange::offer_exchange(messaging::engine &engine, world_rank self)
    : engine_(engine), self_(self),
      handler_(engine.add_handler([this](const transport::message &incoming) {
          block_offer arrived;
          std::memcpy(&arrived, incoming.payload.data(), sizeof(arrived));
          std::lock_guard const guard(mutex_);
          offers_[arrived.set_hash][incoming.source].push_back(arrived);
      })) {}

block_offer offer_exchange::make_offer(const parsed_endpoints &wanted, group_factory &groups) {
    std::vector<world_rank> sorted = wanted.members;
    std::ranges::sort(sorted);
    block_offer own{hash_list(sorted) ^ mix(wanted.key), hash_endpoints(wanted), 0, 0};
    {
        std::lock_guard const guard(mutex_);
        if (auto const left = unfinished_.find(own.set_hash); left != unfinished_.end()) {
            return left->second;
        }
    }
    own.id = groups.next_id();
    if (auto const offset = groups.allocate_block()) {
        own.offset_plus_one = *offset + 1;
    }
    for (world_rank const each : wanted.members) {
        if (each != self_) {
            engine_.send(each, handler_, own);
        }
    }
    return own;
}

std::optional<std::vector<block_offer>>
offer_exchange::take_offers(std::span<const world_rank> members, const block_offer &own) {
    std::lock_guard const guard(mutex_);
    if (members.size() == 1) {
        return std::vector{own};
    }
    auto const found = offers_.find(own.set_hash);
    // Every sender in the map has at least one offer.
    if (found == offers_.end() || found->second.size() + 1 < members.size()) {
        return std::nullopt;
    }
    auto &arrived = found->second;
    std::vector<block_offer> taken;
    for (world_rank const each : members) {
        if (each == self_) {
            taken.push_back(own);
            continue;
        }
        auto &queue = arrived[each];
        taken.push_back(queue.front());
        queue.pop_front();
        if (queue.empty()) {
            arrived.erase(each);
        }
    }
    if (arrived.empty()) {
        offers_.erase(found);
    }
    return taken;
}

std::string offer_exchange::describe_missing(std::span<const world_rank> members,
                                             std::uint64_t set_hash, const std::string &call) {
    std::lock_guard const guard(mutex_);
    std::vector<world_rank> missing;
    auto const &arrived = offers_[set_hash];
    std::ranges::copy_if(members, std::back_inserter(missing),
                         [&](world_rank each) { return each != self_ && !arrived.contains(each); });
    return fmt::format("waiting for {} {} in {}", missing.size() == 1 ? "rank" : "ranks",
                       list_ranks(missing), call);
}

result<std::vector<block_offer>> offer_exchange::run(const parsed_endpoints &wanted,
                                                     const std::string &call,
                                                     group_factory &groups) {
    block_offer const own = make_offer(wanted, groups);
    std::optional<std::vector<block_offer>> taken;
    status waited = engine_.wait_for_message(
        [&] {
            if (!taken) {
                taken = take_offers(wanted.members, own);
            }
            return taken.has_value();
        },
        [&] { return describe_missing(wanted.members, own.set_hash, call); });
    std::lock_guard const guard(mutex_);
    if (!taken) {
        unfinished_[own.set_hash] = own;
        return waited.take_failure();
    }
    unfinished_.erase(own.set_hash);
    return std::move(*taken);
}

} // namespace diomp::group
