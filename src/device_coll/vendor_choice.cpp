// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device_coll/internal/vendor_choice.h"

#include "base/log.h"
#include "base/per_thread.h"
#include "base/sizes.h"
#include "config/settings.h"
#include "device_coll/vendor/vendor_group.h"
#include "group/group.h"
#include "group/registry.h"
#include "offload/device_segments.h"
#include "offload/offload.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

namespace diomp::device_coll {
namespace {

namespace vendor = device_coll::vendor;
using sync::operation;

/// The libraries treat ranks with different values of NCCL_HOSTID as ranks on different hosts, even
/// if they share a GPU. 0: not set.
std::uint64_t nccl_host_id() {
    const char *const set = std::getenv("NCCL_HOSTID");
    return set == nullptr ? 0 : std::hash<std::string_view>()(set);
}

/// For smaller calls, the path through host memory is faster than kernels of several processes
/// time-sliced on a GPU, and than a call split into phases within and between nodes.
constexpr std::size_t large_from_bytes = std::size_t{32} << 10;

/// Releases that differ in their last number only have the same protocol.
int release_of(int version) { return version / 100; }

} // namespace

/// Sent by a member for each of its endpoints.
struct vendor_choice::endpoint_facts {
    std::uint32_t made_by = 0; ///< an offload::vendor
    std::int32_t version = 0;  ///< of the library; 0: not found on this member
    std::array<std::byte, 16> uuid{};
    std::uint64_t nccl_host_id = 0;
    std::uint32_t is_time_sliced = 0;         ///< the GPU time-slices kernels of several processes
    std::uint32_t is_remote = 0;              ///< a device of another host
    std::uint64_t direct_from_bytes = chosen; ///< the user's setting

    static constexpr std::uint64_t chosen = UINT64_MAX;
};

namespace {

/// Calls look(rank, device, facts) for every endpoint until it returns a reason; "" if none does.
template <typename Facts, typename Look>
std::string first_obstacle(const group::group &members, const std::vector<Facts> &facts,
                           Look &&look) {
    group::endpoint_list const &all = members.endpoints();
    for (std::size_t member = 0; member < members.size(); ++member) {
        for (std::size_t i = 0; i < all.of(member).size(); ++i) {
            std::string why = look(members.members()[member].value(), all[all.of(member)[i]].device,
                                   facts[member * all.max_per_member() + i]);
            if (!why.empty()) {
                return why;
            }
        }
    }
    return {};
}

/// Why the endpoints are not all devices of one vendor.
template <typename Facts>
std::string device_obstacle(const group::group &members, const std::vector<Facts> &facts) {
    return first_obstacle(
        members, facts, [&](int rank, int device, const Facts &each) -> std::string {
            if (each.made_by == 0) {
                return fmt::format("device {} of rank {} is not a GPU", device, rank);
            }
            return each.made_by != facts.front().made_by ? "the devices are of several vendors"
                                                         : "";
        });
}

/// The largest number of endpoints on one node.
std::size_t max_endpoints_per_node(group::group &members) {
    group::endpoint_list const &all = members.endpoints();
    if (members.internode() == nullptr) {
        return all.size();
    }
    group::node_layout const &layout = members.layout();
    std::vector<std::size_t> on_node(layout.num_nodes());
    for (std::size_t index = 0; index < all.size(); ++index) {
        ++on_node[layout.node(all[index].member)];
    }
    return std::ranges::max(on_node);
}

} // namespace

/// Per thread, for its last group: the lock and the lookup would slow small calls down.
struct vendor_choice::thread_cache {
    const vendor_choice *by = nullptr;
    std::uint64_t version = 0;
    const group::group *about = nullptr;
    std::optional<bool> may_use_library;
    std::optional<paths> found;
};

struct vendor_choice::decision {
    std::shared_ptr<vendor::vendor_library> library;
    std::unique_ptr<vendor::vendor_group> communicators;
    std::size_t direct_from_bytes = paths::never;
    std::size_t reduce_from_bytes = paths::never;
    bool has_remote = false;

    [[nodiscard]] paths found() const {
        return {communicators.get(), direct_from_bytes, reduce_from_bytes, has_remote};
    }
};

struct vendor_choice::group_state {
    std::optional<bool> may_use_library;
    std::optional<decision> made;
};

vendor_choice::vendor_choice(coll::collectives &collectives, offload::devices &devices,
                             group::group_registry &groups, options chosen)
    : collectives_(collectives), devices_(devices), groups_(groups), options_(std::move(chosen)) {}

vendor_choice::~vendor_choice() = default;

vendor_choice::group_state &vendor_choice::state_of(const group::group &members) {
    std::unique_ptr<group_state> &known = known_[&members];
    if (known == nullptr) {
        known = std::make_unique<group_state>();
    }
    return *known;
}

vendor_choice::thread_cache &vendor_choice::thread_cache_of(const group::group &members) const {
    thread_cache &last = per_thread<thread_cache>::get();
    std::uint64_t const version = version_.load(std::memory_order_acquire);
    if (last.by != this || last.version != version || last.about != &members) {
        last = {this, version, &members, {}, {}};
    }
    return last;
}

std::shared_ptr<vendor::vendor_library> vendor_choice::load(offload::vendor of) {
    std::lock_guard const guard(mutex_);
    auto const known = libraries_.find(of);
    if (known != libraries_.end()) {
        return known->second;
    }
    bool const is_cuda = of == offload::vendor::cuda;
    auto loaded = vendor::vendor_library::load(
        is_cuda ? vendor::library_kind::nccl : vendor::library_kind::rccl,
        is_cuda ? options_.nccl_library : options_.rccl_library);
    if (!loaded) {
        log(log_level::info, "{}", loaded.failure().message());
    }
    return libraries_[of] = loaded ? loaded.take() : nullptr;
}

std::vector<vendor_choice::own_endpoint>
vendor_choice::find_own_endpoints(const group::group &members) {
    std::vector<own_endpoint> own;
    for (std::uint32_t const index : members.endpoints().of(members.self().index())) {
        own_endpoint &each = own.emplace_back();
        each.index = index;
        offload::accelerator const *const on =
            devices_.segments().accelerator_of(members.endpoints()[index].device);
        each.on = on != nullptr && on->made_by == offload::vendor::service ? nullptr : on;
    }
    return own;
}

bool vendor_choice::may_use_library(const group::group &members) {
    if (options_.wanted == ccl_choice::native || members.endpoints().empty()) {
        return false;
    }
    std::optional<bool> &last = thread_cache_of(members).may_use_library;
    if (!last) {
        std::unique_lock guard(mutex_);
        std::optional<bool> &known = state_of(members).may_use_library;
        if (!known) {
            guard.unlock(); // devices may have to be started
            bool const has_gpu =
                std::ranges::any_of(find_own_endpoints(members),
                                    [](const own_endpoint &each) { return each.on != nullptr; });
            guard.lock();
            known = has_gpu;
        }
        last = known;
    }
    return *last;
}

result<std::unique_ptr<vendor::vendor_group>>
vendor_choice::connect(group::group &members, const std::vector<own_endpoint> &own,
                       std::shared_ptr<vendor::vendor_library> library) {
    // The first byte says whether there is one: all must learn of a failure.
    std::array<std::byte, sizeof(vendor::unique_id) + 1> sent{};
    std::optional<error> failure;
    if (members.self().index() == 0) {
        auto made = library->make_unique_id();
        if (made) {
            sent.front() = std::byte{1};
            std::memcpy(sent.data() + 1, &made.value(), sizeof(vendor::unique_id));
        } else {
            failure = made.take_failure();
        }
    }
    DIOMP_TRY(collectives_.run_among_ranks(
        members, {.what = operation::bcast, .dst = sent.data(), .amount = sent.size(), .root = 0}));
    if (failure) {
        return std::move(*failure);
    }
    if (sent.front() == std::byte{0}) {
        return error(OMPX_ERR_SYSTEM, fmt::format("rank {} could not make an id for the group",
                                                  members.members().front().value()));
    }
    vendor::vendor_group::options chosen;
    chosen.library = std::move(library);
    std::memcpy(&chosen.id, sent.data() + 1, sizeof(chosen.id));
    chosen.num_endpoints = static_cast<int>(members.count());
    for (const own_endpoint &each : own) {
        chosen.own.push_back({each.on->backend, each.on->id, static_cast<int>(each.index)});
    }
    return vendor::vendor_group::create(std::move(chosen));
}

std::string vendor_choice::direct_obstacle(group::group &members,
                                           const std::vector<endpoint_facts> &facts) {
    std::size_t const max_count = max_endpoints_per_node(members);
    if (members.internode() != nullptr && max_count == 1) {
        return "its ranks are on several nodes, with one device on each";
    }
    if (max_count > device::queue::max_sources) {
        return fmt::format("it has more than {} endpoints{}", device::queue::max_sources,
                           members.internode() == nullptr ? "" : " on a node");
    }
    std::string why = device_obstacle(members, facts);
    if (why.empty() && members.internode() != nullptr) {
        if (status const divided = groups_.make_subgroups(members); !divided) {
            why = divided.failure().message();
        }
    }
    return why;
}

std::string vendor_choice::library_obstacle(const group::group &members,
                                            const std::vector<endpoint_facts> &facts) const {
    if (options_.wanted == ccl_choice::native) {
        return "DIOMP_CCL says so";
    }
    if (std::string why = device_obstacle(members, facts); !why.empty()) {
        return why;
    }
    std::set<std::pair<std::uint64_t, std::array<std::byte, 16>>> devices;
    std::string const why = first_obstacle(
        members, facts, [&](int rank, int device, const endpoint_facts &each) -> std::string {
            if (each.version == 0) {
                return fmt::format("rank {} has no library", rank);
            }
            if (release_of(each.version) != release_of(facts.front().version)) {
                return fmt::format("rank {} has another release of the library than rank {}", rank,
                                   members.members().front().value());
            }
            return devices.emplace(each.nccl_host_id, each.uuid).second
                       ? ""
                       : fmt::format("device {} of rank {} is in the group twice", device, rank);
        });
    bool const is_other_vendor =
        (options_.wanted == ccl_choice::nccl || options_.wanted == ccl_choice::rccl) &&
        facts.front().made_by != static_cast<std::uint32_t>(options_.wanted == ccl_choice::nccl
                                                                ? offload::vendor::cuda
                                                                : offload::vendor::hip);
    return why.empty() && is_other_vendor ? "the devices are another vendor's" : why;
}

result<std::vector<vendor_choice::endpoint_facts>>
vendor_choice::exchange(group::group &members, const std::vector<own_endpoint> &own,
                        decision &made) {
    std::size_t const max_count = members.endpoints().max_per_member();
    std::vector<endpoint_facts> sent(max_count);
    for (std::size_t i = 0; i < own.size(); ++i) {
        sent[i].direct_from_bytes = options_.direct_from_bytes.value_or(endpoint_facts::chosen);
        sent[i].is_remote =
            devices_.segments().is_remote(members.endpoints()[own[i].index].device) ? 1 : 0;
        if (own[i].on == nullptr) {
            continue;
        }
        if (options_.wanted != ccl_choice::native) {
            made.library = load(own[i].on->made_by);
        }
        sent[i].nccl_host_id = nccl_host_id();
        sent[i].made_by = static_cast<std::uint32_t>(own[i].on->made_by);
        sent[i].version = made.library == nullptr ? 0 : made.library->version();
        if (auto const about = own[i].on->backend->describe(own[i].on->id)) {
            sent[i].uuid = about.value().uuid;
            sent[i].is_time_sliced = about.value().is_shared_by_service ? 0 : 1;
        }
    }
    std::vector<endpoint_facts> all(max_count * members.size());
    DIOMP_TRY(
        collectives_.run_among_ranks(members, {.what = operation::allgather,
                                               .dst = all.data(),
                                               .src = sent.data(),
                                               .amount = max_count * sizeof(endpoint_facts)}));
    return all;
}

void vendor_choice::choose_sizes(const group::group &members,
                                 const std::vector<endpoint_facts> &facts, decision &made) {
    std::set<std::array<std::byte, 16>> devices;
    std::optional<std::uint64_t> set_by_users;
    bool is_shared = false;
    first_obstacle(members, facts, [&](int, int, const endpoint_facts &each) {
        is_shared = (!devices.insert(each.uuid).second && each.is_time_sliced != 0) || is_shared;
        if (each.direct_from_bytes != endpoint_facts::chosen) {
            set_by_users = std::max(set_by_users.value_or(0), each.direct_from_bytes);
        }
        return std::string();
    });
    bool const spans_nodes = members.spans_nodes();
    made.direct_from_bytes = set_by_users.value_or(spans_nodes ? large_from_bytes : 0);
    made.reduce_from_bytes = set_by_users.value_or(spans_nodes || is_shared ? large_from_bytes : 0);
}

result<vendor_choice::decision> vendor_choice::decide(group::group &members) {
    std::vector<own_endpoint> const own = find_own_endpoints(members);
    decision made;
    auto facts = exchange(members, own, made);
    DIOMP_TRY(facts);
    made.has_remote = std::ranges::any_of(
        facts.value(), [](const endpoint_facts &each) { return each.is_remote != 0; });
    std::string const why_native = library_obstacle(members, facts.value());
    if (!why_native.empty() &&
        (options_.wanted == ccl_choice::nccl || options_.wanted == ccl_choice::rccl)) {
        return error(OMPX_ERR_UNSUPPORTED,
                     fmt::format("DIOMP_CCL demands a vendor's library: {}", why_native),
                     "set DIOMP_CCL to auto, or install the library on every node and name it "
                     "by DIOMP_NCCL_LIBRARY or DIOMP_RCCL_LIBRARY");
    }
    std::string const why_by_host = direct_obstacle(members, facts.value());
    if (why_by_host.empty()) {
        choose_sizes(members, facts.value(), made);
    }
    if (why_native.empty()) {
        log(log_level::info, "collectives of a group of {} endpoints: {} {}", members.count(),
            made.library->name(), made.library->version_text());
        auto connected = connect(members, own, made.library);
        DIOMP_TRY(connected);
        made.communicators = connected.take();
        return made;
    }
    made.library = nullptr;
    log(log_level::info, "collectives of a group of {} endpoints: native, since {}{}",
        members.count(), why_native,
        why_by_host.empty()
            ? fmt::format(
                  "; from device to device from {} up{}", format_size(made.direct_from_bytes),
                  made.reduce_from_bytes == made.direct_from_bytes
                      ? ""
                      : fmt::format(", reductions from {}", format_size(made.reduce_from_bytes)))
        : why_by_host == why_native
            ? ""
            : fmt::format("; not from device to device, since {}", why_by_host));
    return made;
}

result<vendor_choice::paths> vendor_choice::find(group::group &members) {
    if (members.endpoints().empty()) {
        paths by_host;
        by_host.has_remote = devices_.segments().remote() != nullptr;
        return by_host;
    }
    if (auto const last = thread_cache_of(members).found) {
        return *last;
    }
    auto found = find_or_decide(members);
    DIOMP_TRY(found);
    thread_cache_of(members).found = found.value();
    return found;
}

result<vendor_choice::paths> vendor_choice::find_or_decide(group::group &members) {
    {
        std::lock_guard const guard(mutex_);
        if (auto const &known = state_of(members).made) {
            return known->found();
        }
    }
    auto made = decide(members);
    DIOMP_TRY(made);
    std::lock_guard const guard(mutex_);
    return state_of(members).made.emplace(made.take()).found();
}

void vendor_choice::disable_device_to_device(const group::group &members) {
    std::lock_guard const guard(mutex_);
    if (auto &known = state_of(members).made) {
        known->direct_from_bytes = known->reduce_from_bytes = paths::never;
    }
    version_.fetch_add(1, std::memory_order_acq_rel);
}

void vendor_choice::forget(const group::group &members) {
    version_.fetch_add(1, std::memory_order_acq_rel);
    std::lock_guard const guard(mutex_);
    known_.erase(&members);
}

} // namespace diomp::device_coll
