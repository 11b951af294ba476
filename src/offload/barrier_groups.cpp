// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/barrier_groups.h"

#include "diomp/device_endpoint.h"
#include "messaging/call.h"
#include "offload/alloc_directory.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

namespace diomp::offload {

/// Asks a member for the slot of a group's words, and for its device that
/// corresponds to one of the requester.
struct barrier_groups::slot_request {
    messaging::request_header header;
    std::uint64_t group_id = 0;
    std::int32_t device = 0;
    std::int32_t device_index = -1; ///< among those that the requester drives
};

struct barrier_groups::slot_reply {
    std::uint64_t slot = 0; ///< 0: all are in use
    std::int32_t device = -1;
};

namespace {

error no_slot(world_rank rank) {
    return {
        OMPX_ERR_UNSUPPORTED,
        fmt::format("regions on GPUs have called the barriers of {} groups of rank {}, and there "
                    "is no room for another one",
                    DIOMP_BARRIER_GROUPS - 1, rank.value()),
        "free groups that are not needed any more, or call the group's barrier on the host"};
}

} // namespace

barrier_groups::barrier_groups(const alloc_directory &directory, messaging::engine &engine,
                               messaging::call_service &calls)
    : directory_(directory), calls_(calls),
      handler_(engine.add_handler(
          [this](const transport::message &incoming) { on_request(incoming); })) {}

void barrier_groups::on_request(const transport::message &incoming) {
    slot_request request;
    std::memcpy(&request, incoming.payload.data(), sizeof(request));
    calls_.reply(incoming.source, request.header.id,
                 slot_reply{slot_of(request.group_id),
                            directory_.resolve_device(request.device, request.device_index)});
}

barrier_groups::group_words *barrier_groups::find_or_add(std::uint64_t group_id) {
    auto const found = groups_.find(group_id);
    if (found != groups_.end()) {
        return &found->second;
    }
    std::uint64_t slot = num_slots_;
    if (num_slots_ < DIOMP_BARRIER_GROUPS) {
        ++num_slots_;
    } else if (!free_slots_.empty()) {
        slot = free_slots_.front();
        free_slots_.pop_front();
    } else {
        return nullptr;
    }
    return &(groups_[group_id] = {slot, {}});
}

std::uint64_t barrier_groups::slot_of(std::uint64_t group_id) {
    std::lock_guard const guard(mutex_);
    group_words const *const known = find_or_add(group_id);
    return known == nullptr ? 0 : known->slot;
}

void barrier_groups::forget(std::uint64_t id) {
    std::lock_guard const guard(mutex_);
    auto const found = groups_.find(id);
    if (found == groups_.end()) {
        return;
    }
    free_slots_.push_back(found->second.slot + (std::uint64_t{1} << DIOMP_BARRIER_BITS));
    for (auto const &[device, handle] : found->second.handles) {
        freed_[device].push_back(handle);
        freed_devices_.fetch_or(std::uint64_t{1} << device, std::memory_order_release);
    }
    groups_.erase(found);
}

std::vector<ompx_group_t> barrier_groups::take_freed(int device) {
    std::lock_guard const guard(mutex_);
    freed_devices_.fetch_and(~(std::uint64_t{1} << device), std::memory_order_relaxed);
    return std::exchange(freed_[device], {});
}

status barrier_groups::check_devices(const group_members &of, int device) {
    if (of.has_several_of_a_rank) {
        return error(OMPX_ERR_UNSUPPORTED,
                     "the group has several devices of a rank, and a barrier in regions on GPUs "
                     "waits for one device of each",
                     "call the barrier of a group of ranks, or the group's barrier on the host");
    }
    for (std::size_t member = 0; member < of.devices.size(); ++member) {
        if (of.devices[member] < 0) {
            return error(
                OMPX_ERR_UNSUPPORTED,
                fmt::format("the group's member {} is the host of rank {}, which calls no barriers "
                            "in regions on GPUs",
                            member, of.ranks[member].value()),
                "call the barrier of a group of ranks, or the group's barrier on the host");
        }
    }
    if (!of.devices.empty() && of.devices[of.self] != device) {
        return error(OMPX_ERR_UNSUPPORTED,
                     fmt::format("this rank's device in the group is {}, and the region runs on {}",
                                 of.devices[of.self], device),
                     "call the barrier in a region on the device of the group");
    }
    return {};
}

result<std::uint64_t> barrier_groups::slot_at(const group_members &of, std::size_t member,
                                              int device) {
    world_rank const rank = of.ranks[member];
    auto replied = calls_.call<slot_reply>(
        rank, handler_, slot_request{{}, of.id, device, directory_.device_index_of(device)},
        [rank] {
            return fmt::format("waiting for rank {} to prepare a group's barrier in regions",
                               rank.value());
        });
    DIOMP_TRY(replied);
    if (replied.value().slot == 0) {
        return no_slot(rank);
    }
    if (!of.devices.empty()) {
        int const wanted = of.devices[member];
        if (wanted != replied.value().device) {
            return error(OMPX_ERR_UNSUPPORTED,
                         fmt::format("the group has device {} of rank {}, but device {} there "
                                     "corresponds to device {} here",
                                     wanted, rank.value(), replied.value().device, device),
                         "let the group have corresponding devices of all ranks");
        }
    }
    return replied.value().slot;
}

status barrier_groups::describe_round(ompx_group_t handle, int device, std::uint64_t round,
                                      std::span<std::uint64_t> words) {
    if (!find_) {
        return error(OMPX_ERR_UNSUPPORTED, "there are no groups of ranks here");
    }
    auto found = find_(handle);
    DIOMP_TRY(found);
    group_members const &of = found.value();
    DIOMP_TRY(check_devices(of, device));
    std::uint64_t const size = of.ranks.size();
    std::uint64_t const self = of.self;
    if (round >= DIOMP_BARRIER_WORDS) {
        return error(OMPX_ERR_ARG, fmt::format("a barrier has no round {}", round));
    }
    std::uint64_t const distance = (std::uint64_t{1} << round) % size;
    words[DIOMP_GROUP_SIZE] = size;
    {
        std::lock_guard const guard(mutex_);
        group_words *const known = find_or_add(of.id);
        if (known == nullptr) {
            return no_slot(of.ranks[self]);
        }
        words[DIOMP_GROUP_SLOT] = known->slot;
        std::pair const asks(device, handle);
        if (std::ranges::find(known->handles, asks) == known->handles.end()) {
            known->handles.push_back(asks);
        }
    }
    std::uint64_t const to = (self + distance) % size;
    words[DIOMP_GROUP_TO] = static_cast<std::uint64_t>(of.ranks[to].value());
    words[DIOMP_GROUP_FROM] =
        static_cast<std::uint64_t>(of.ranks[(self + size - distance) % size].value());
    words[DIOMP_GROUP_TO_SLOT] = words[DIOMP_GROUP_SLOT];
    if (to != self) {
        auto slot = slot_at(of, to, device);
        DIOMP_TRY(slot);
        words[DIOMP_GROUP_TO_SLOT] = slot.value();
    }
    return {};
}

} // namespace diomp::offload
