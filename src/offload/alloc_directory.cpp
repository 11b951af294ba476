// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/alloc_directory.h"

#include "memory/layout.h"
#include "messaging/call.h"
#include "messaging/engine.h"
#include "offload/device_segment.h"
#include "offload/internal/segment_memory.h"
#include "offload/remote_memory.h"
#include "transport/conduit.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <sched.h>

namespace diomp::offload {

struct alloc_directory::lookup_request {
    messaging::request_header header;
    allocation_key key;
    std::uint64_t nbytes = 0;
    std::int32_t device = 0;
    std::int32_t device_index = -1; ///< index of the requester's device among those that it drives
};

struct alloc_directory::lookup_reply {
    remote_allocation what;
    std::uint64_t generation = 0;
    std::uint16_t found = 0; ///< 1: yes; is_busy
    std::uint16_t device_in_use = 0;
};

namespace {

memory_holder holder_of(const device_segment &of) {
    if (of.remote_index()) {
        return memory_holder::remote_device;
    }
    return of.memory() != nullptr ? memory_holder::accelerator : memory_holder::processor;
}

/// lookup_reply::found: regions that OpenMP treats as complete still use the device.
constexpr std::uint16_t is_busy = 2;

} // namespace

struct alloc_directory::invalidation_request {
    messaging::request_header header;
    std::uint64_t base = 0; ///< of the allocation, as the owner sees it
};

alloc_directory::alloc_directory(const segment_table &own, const memory::segment &host,
                                 messaging::engine &engine, messaging::call_service &calls,
                                 world_rank self)
    : own_(own), host_(host), engine_(engine), calls_(calls), self_(self),
      lookup_handler_(
          engine.add_handler([this](const transport::message &incoming) { on_lookup(incoming); })),
      invalidation_handler_(engine.add_handler(
          [this](const transport::message &incoming) { on_invalidation(incoming); })) {}

memory::published_state *alloc_directory::state_of(world_rank owner) const {
    return reinterpret_cast<memory::published_state *>(engine_.transport().direct_base(owner));
}

const std::atomic<std::uint64_t> *alloc_directory::generation_of(world_rank owner) const {
    auto *const state = state_of(owner);
    return state == nullptr ? nullptr : &state->device_generation;
}

const std::atomic<std::uint64_t> *alloc_directory::commits_of(world_rank owner) const {
    auto *const state = state_of(owner);
    return state == nullptr ? nullptr : &state->device_commits;
}

void alloc_directory::publish_commit() {
    state_of(self_)->device_commits.fetch_add(1, std::memory_order_acq_rel);
}

std::optional<remote_allocation> alloc_directory::find_cached(const cache_key &wanted) const {
    auto const *const published = generation_of(world_rank{std::get<0>(wanted)});
    // Read before the entry, which may only be older than this value.
    std::uint64_t const current =
        published == nullptr ? 0 : published->load(std::memory_order_acquire);
    std::shared_lock const guard(mutex_);
    auto const found = cache_.find(wanted);
    if (found == cache_.end() || (published != nullptr && found->second.generation != current)) {
        return std::nullopt;
    }
    return found->second.what;
}

result<alloc_directory::lookup_result> alloc_directory::find(world_rank owner, int device,
                                                             allocation_key key, std::size_t nbytes,
                                                             bool is_own_number) {
    if (auto const cached = find_cached({owner.value(), device, key})) {
        return lookup_result{cached, true, true, 0, 0};
    }
    std::uint64_t const invalidations = [this] {
        std::shared_lock const guard(mutex_);
        return num_invalidations_;
    }();
    std::int32_t const device_index = is_own_number ? device_index_of(device) : -1;
    auto replied = ask(owner, lookup_request{{}, key, nbytes, device, device_index});
    DIOMP_TRY(replied);
    lookup_reply const &reply = replied.value();
    if (reply.found == 0) {
        return lookup_result{std::nullopt, reply.device_in_use != 0, false, 0, 0};
    }
    return lookup_result{reply.what, true, false, reply.generation, invalidations};
}

result<alloc_directory::lookup_reply> alloc_directory::ask(world_rank owner,
                                                           const lookup_request &request) {
    for (;;) {
        auto replied =
            calls_.call<lookup_reply>(owner, lookup_handler_, request, [owner, &request] {
                return fmt::format("waiting for rank {} to look up an allocation on device {}",
                                   owner.value(), request.device);
            });
        DIOMP_TRY(replied);
        if (replied.value().found != is_busy) {
            return replied;
        }
        ::sched_yield(); // its regions are short: deferred_work
    }
}

void alloc_directory::cache(world_rank owner, int device, allocation_key key,
                            const lookup_result &found) {
    if (found.was_cached || !found.what) {
        return;
    }
    std::lock_guard const guard(mutex_);
    if (cache_.size() >= max_cached) {
        cache_.clear();
    }
    // An invalidation may have overtaken the reply that it refers to.
    if (num_invalidations_ == found.invalidations) {
        cache_.insert_or_assign(cache_key{owner.value(), device, key},
                                cached_entry{*found.what, found.generation});
    }
}

void alloc_directory::drop_cached(allocation_key key) {
    std::lock_guard const guard(mutex_);
    std::erase_if(cache_, [&](const auto &entry) { return std::get<2>(entry.first) == key; });
}

std::int32_t alloc_directory::device_index_of(int device) const {
    std::vector<int> const driven_devices = own_devices();
    auto const at = std::ranges::find(driven_devices, device);
    return at == driven_devices.end() ? -1 : static_cast<std::int32_t>(at - driven_devices.begin());
}

int alloc_directory::device_at_index(std::int32_t device_index) const {
    std::vector<int> const driven_devices = own_devices();
    auto const index = static_cast<std::size_t>(device_index);
    return device_index >= 0 && index < driven_devices.size() ? driven_devices[index] : -1;
}

int alloc_directory::resolve_device(int device, std::int32_t device_index) const {
    int const by_index = own_.find(device) == nullptr ? device_at_index(device_index) : -1;
    return by_index >= 0 ? by_index : device;
}

transport::memory_kind alloc_directory::kind_for_network(const device_segment &of) const {
    if (of.memory() == nullptr) {
        return transport::memory_kind::host;
    }
    transport::memory_kind const kind = kind_of(of.memory()->on().made_by);
    transport::memory_range const range{kind, reinterpret_cast<std::uintptr_t>(of.base()),
                                        of.size_bytes()};
    return engine_.transport().supports_memory_range(range) ? kind : transport::memory_kind::host;
}

void alloc_directory::on_lookup(const transport::message &incoming) {
    lookup_request request;
    std::memcpy(&request, incoming.payload.data(), sizeof(request));
    lookup_reply reply;
    // Read before the lookup: an allocation that is freed after it increments the counter.
    reply.generation = generation_of(self_)->load(std::memory_order_acquire);
    bool const is_mapped = engine_.transport().direct_base(incoming.source) != nullptr;
    // First the device of that number, then the one at the index: numbers of the requester's own
    // devices can be those of other devices here.
    for (int const device : {request.device, device_at_index(request.device_index)}) {
        device_segment *const segment = own_.find(device);
        if (segment == nullptr || reply.found != 0) {
            continue;
        }
        reply.device_in_use = 1;
        auto found = segment->find_and_share(request.key, 0, incoming.source, is_mapped);
        if (!found && request.nbytes > 0) {
            found = segment->find_and_share(request.key, request.nbytes - 1, incoming.source,
                                            is_mapped);
        }
        if (found) {
            // Regions that OpenMP treats as complete may still use a remote device.
            std::optional<int> const remote = segment->remote_index();
            reply.found = remote && !remote_->stop_deferring(*remote) ? is_busy : 1;
            reply.what = {
                reinterpret_cast<std::uintptr_t>(segment->base()) + found->offset,
                found->nbytes,
                found->offset,
                identify(found->host, host_),
                segment->device(),
                holder_of(*segment),
                kind_for_network(*segment),
                static_cast<std::int8_t>(session_index_of(*segment, remote_).value_or(-1)),
                segment->key_of(*found) == request.key ? std::uint8_t{1} : std::uint8_t{0}};
        }
    }
    calls_.reply(incoming.source, request.header.id, reply);
}

status alloc_directory::invalidate(int device, std::uint64_t offset, const sharer_set &sharers) {
    if (sharers.mapped_ranks) {
        state_of(self_)->device_generation.fetch_add(1, std::memory_order_acq_rel);
    }
    std::uint64_t const base = reinterpret_cast<std::uintptr_t>(own_.find(device)->base()) + offset;
    std::vector<messaging::call_service::pending_call> started;
    started.reserve(sharers.others.size());
    for (world_rank const other : sharers.others) {
        started.push_back(
            calls_.start(other, invalidation_handler_, invalidation_request{{}, base}));
    }
    for (std::size_t i = 0; i < started.size(); ++i) {
        DIOMP_TRY(calls_.finish<invalidation_ack>(started[i], [&] {
            return fmt::format("waiting for rank {} to acknowledge that device memory is freed",
                               sharers.others[i].value());
        }));
    }
    return {};
}

void alloc_directory::on_invalidation(const transport::message &incoming) {
    invalidation_request request;
    std::memcpy(&request, incoming.payload.data(), sizeof(request));
    {
        std::lock_guard const guard(mutex_);
        ++num_invalidations_;
        std::erase_if(cache_, [&](const auto &entry) {
            return std::get<0>(entry.first) == incoming.source.value() &&
                   entry.second.what.base == request.base;
        });
    }
    calls_.reply(incoming.source, request.header.id, invalidation_ack{});
}

} // namespace diomp::offload
