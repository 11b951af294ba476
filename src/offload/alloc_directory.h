// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A directory of other ranks' device allocations, in the manner of a directory-based cache: the
// first use of an allocation asks its owner, and the reply is cached. An owner that frees memory
// with sharers (ranks that have asked about it) first invalidates their entries: ranks that map its
// slot compare a generation counter there at each use of an entry; other ranks get a message, which
// they acknowledge. A cached entry therefore never describes memory that has been reused, unless a
// program frees memory while other ranks still access it.
#pragma once

#include "base/result.h"
#include "offload/internal/identity.h"
#include "offload/internal/segment_table.h"
#include "transport/types.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>
#include <tuple>
#include <vector>

namespace diomp::messaging {
class call_service;
class engine;
} // namespace diomp::messaging

namespace diomp::memory {
struct published_state;
}

namespace diomp::offload {

class remote_memory;

/// What holds the memory of a device.
enum class memory_holder : std::uint8_t {
    processor, ///< processors of the owner's node load and store it
    accelerator,
    remote_device, ///< of the owner, see remote_memory
};

/// An allocation of another rank.
struct remote_allocation {
    std::uint64_t base = 0; ///< as the owner sees it
    std::uint64_t nbytes = 0;
    std::uint64_t offset = 0; ///< offset in the device's segment
    identity what;
    std::int32_t device = 0; ///< of the owner
    memory_holder held_by = memory_holder::processor;
    /// Memory kind, if the owner's network can access it; otherwise host.
    transport::memory_kind by_network = transport::memory_kind::host;
    /// Index of its device among the owner's remote ones, if that is a GPU whose session makes
    /// calls on the segment; otherwise -1.
    std::int8_t session_index = -1;
    std::uint8_t begins_at_key = 0; ///< it is what the key names; otherwise it overlaps that
};

/// Thread-safe. Create before engine.start().
class alloc_directory {
public:
    alloc_directory(const segment_table &own, const memory::segment &host,
                    messaging::engine &engine, messaging::call_service &calls, world_rank self);

    /// Returns OpenMP's numbers of the devices that this rank drives. Called from any thread,
    /// including handlers; must not block on other ranks.
    using device_list = std::vector<int> (*)();
    /// Call before the first lookup of memory of remote devices.
    void set_remote_memory(remote_memory *memory) { remote_ = memory; }
    /// Call before the first lookup. Without this call the list is empty.
    void set_own_devices(device_list list) { own_devices_.store(list, std::memory_order_release); }
    [[nodiscard]] std::vector<int> own_devices() const {
        device_list const list = own_devices_.load(std::memory_order_acquire);
        return list == nullptr ? std::vector<int>() : list();
    }

    /// Index of an own device among the devices that this rank drives; -1: not driven by it.
    [[nodiscard]] std::int32_t device_index_of(int device) const;
    /// Resolves another rank's device number and the index of its device among those that it drives
    /// (-1: none) to an own device: the device of that number if it has been used here, otherwise
    /// the device at that index.
    [[nodiscard]] int resolve_device(int device, std::int32_t device_index) const;
    /// The own device at an index among those that this rank drives; -1: none.
    [[nodiscard]] int device_at_index(std::int32_t device_index) const;

    struct lookup_result {
        std::optional<remote_allocation> what; ///< nullopt: no allocation there
        bool device_in_use = false;            ///< the owner has a segment on that device
        bool was_cached = false;               ///< answered from the cache
        std::uint64_t generation = 0;          ///< for cache()
        std::uint64_t invalidations = 0;       ///< for cache()
    };
    /// Finds an allocation of `owner`. `device` is the owner's device number. With `is_own_number`
    /// it is also the number of this rank's i-th device: if the owner has not used that number, its
    /// own i-th device is meant, so ranks that drive different GPUs of a node can each pass their
    /// own number. On first use, waits for the owner's progress thread. With `nbytes`, returns any
    /// allocation in that range, so that an error message can name it.
    result<lookup_result> find(world_rank owner, int device, allocation_key key,
                               std::size_t nbytes = 0, bool is_own_number = false);

    /// Caches a result that the caller has verified. No effect if it came from the cache.
    void cache(world_rank owner, int device, allocation_key key, const lookup_result &found);
    /// Drops cached counterparts of own allocations with this key, on any device.
    void drop_cached(allocation_key key);

    /// Invalidates all ranks' entries for an allocation before it is freed. Waits for the sharers
    /// on other nodes only.
    status invalidate(int device, std::uint64_t offset, const sharer_set &sharers);

    /// The generation counter of a rank whose slot is mapped here, otherwise nullptr.
    [[nodiscard]] const std::atomic<std::uint64_t> *generation_of(world_rank owner) const;
    /// A counter that changes after a rank whose slot is mapped here has committed device memory;
    /// otherwise nullptr.
    [[nodiscard]] const std::atomic<std::uint64_t> *commits_of(world_rank owner) const;
    /// Call after this rank has committed device memory.
    void publish_commit();

private:
    [[nodiscard]] memory::published_state *state_of(world_rank owner) const;

    struct lookup_request;
    struct lookup_reply;
    struct invalidation_request;
    struct invalidation_ack {};
    using cache_key = std::tuple<int, int, allocation_key>; ///< rank, device, ...
    struct cached_entry {
        remote_allocation what;
        std::uint64_t generation = 0;
    };
    /// Limit of cached entries; the cache is cleared when it is reached.
    static constexpr std::size_t max_cached = 16384;

    void on_lookup(const transport::message &incoming);
    [[nodiscard]] result<lookup_reply> ask(world_rank owner, const lookup_request &request);
    [[nodiscard]] transport::memory_kind kind_for_network(const device_segment &of) const;
    void on_invalidation(const transport::message &incoming);
    std::optional<remote_allocation> find_cached(const cache_key &wanted) const;

    const segment_table &own_;
    const memory::segment &host_;
    std::atomic<device_list> own_devices_{nullptr};
    remote_memory *remote_ = nullptr;
    messaging::engine &engine_;
    messaging::call_service &calls_;
    world_rank self_;
    transport::handler_id lookup_handler_;
    transport::handler_id invalidation_handler_;
    mutable std::shared_mutex mutex_; ///< leaf lock; guards the members below
    std::map<cache_key, cached_entry> cache_;
    std::uint64_t num_invalidations_ = 0; ///< invalidations received
};

} // namespace diomp::offload
