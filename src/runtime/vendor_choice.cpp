// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/vendor_choice.h"

#include "base/log.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <utility>

namespace diomp::runtime {
namespace {

namespace vendor = collective::vendor;
using sync::operation;

/// What a member tells of one of its endpoints.
struct endpoint_facts {
    std::uint32_t made_by = 0; ///< an offload::vendor
    std::int32_t version = 0;  ///< of the library; 0: this member has none
    std::array<std::byte, 16> uuid{};
};

/// Releases that differ in their last number only speak the same protocol.
int release_of(int version) { return version / 100; }

/// Why the members cannot use a library together, "" if they can.
std::string obstacle(const group::group &members, const std::vector<endpoint_facts> &facts,
                     std::size_t facts_per_member) {
    std::set<std::array<std::byte, 16>> devices;
    const endpoint_facts &first = facts.front();
    for (std::size_t member = 0; member < members.size(); ++member) {
        int const rank = members.members()[member].value();
        for (std::size_t i = 0; i < members.endpoints().of(member).size(); ++i) {
            const endpoint_facts &each = facts[member * facts_per_member + i];
            int const device = members.endpoints()[members.endpoints().of(member)[i]].device;
            if (each.made_by == 0) {
                return fmt::format("device {} of rank {} is no GPU", device, rank);
            }
            if (each.made_by != first.made_by) {
                return "the devices are of several vendors";
            }
            if (each.version == 0) {
                return fmt::format("rank {} has no library", rank);
            }
            if (release_of(each.version) != release_of(first.version)) {
                return fmt::format("rank {} has another release of the library than rank {}", rank,
                                   members.members().front().value());
            }
            if (!devices.insert(each.uuid).second) {
                return fmt::format("device {} of rank {} is in the group twice", device, rank);
            }
        }
    }
    return {};
}

} // namespace

/// Small calls would feel the lock and the search, so each thread remembers its last group.
struct vendor_choice::answers {
    const vendor_choice *by = nullptr;
    std::uint64_t version = 0;
    const group::group *about = nullptr;
    std::optional<bool> concerned;
    std::optional<vendor::vendor_group *> communicators;
};

vendor_choice::answers &vendor_choice::answers_about(const group::group &members) const {
    // Apart: what lies in the thread's own block is scarce in a library that programs may load.
    thread_local std::unique_ptr<answers> t_last;
    if (t_last == nullptr) {
        t_last = std::make_unique<answers>();
    }
    std::uint64_t const version = version_.load(std::memory_order_acquire);
    if (t_last->by != this || t_last->version != version || t_last->about != &members) {
        *t_last = {this, version, &members, {}, {}};
    }
    return *t_last;
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

std::vector<vendor_choice::own_endpoint> vendor_choice::look_at_own(const group::group &members) {
    std::vector<own_endpoint> own;
    for (std::uint32_t const index : members.endpoints().of(members.self().index())) {
        own_endpoint &each = own.emplace_back();
        each.index = index;
        each.on = devices_.accelerator_of(members.endpoints()[index].device);
    }
    return own;
}

bool vendor_choice::concerns(const group::group &members) {
    if (options_.wanted == ccl_choice::native || members.endpoints().empty()) {
        return false;
    }
    std::optional<bool> &last = answers_about(members).concerned;
    if (!last) {
        std::unique_lock guard(mutex_);
        std::optional<bool> &known = known_[&members].concerned;
        if (!known) {
            guard.unlock(); // devices may have to be started
            bool const has_gpu = std::ranges::any_of(
                look_at_own(members), [](const own_endpoint &each) { return each.on != nullptr; });
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
    std::array<std::byte, sizeof(vendor::unique_id) + 1> told{};
    std::optional<error> failure;
    if (members.self().index() == 0) {
        auto made = library->make_unique_id();
        if (made) {
            told.front() = std::byte{1};
            std::memcpy(told.data() + 1, &made.value(), sizeof(vendor::unique_id));
        } else {
            failure = made.take_failure();
        }
    }
    DIOMP_TRY(collectives_.run_among_ranks(
        members, {.what = operation::bcast, .dst = told.data(), .amount = told.size(), .root = 0}));
    if (failure) {
        return std::move(*failure);
    }
    if (told.front() == std::byte{0}) {
        return error(OMPX_ERR_SYSTEM, fmt::format("rank {} could not make an id for the group",
                                                  members.members().front().value()));
    }
    vendor::vendor_group::options chosen;
    chosen.library = std::move(library);
    std::memcpy(&chosen.id, told.data() + 1, sizeof(chosen.id));
    chosen.num_endpoints = static_cast<int>(members.count());
    for (const own_endpoint &each : own) {
        chosen.own.push_back({each.on->backend, each.on->id, static_cast<int>(each.index)});
    }
    return vendor::vendor_group::create(std::move(chosen));
}

result<vendor_choice::decision> vendor_choice::decide(group::group &members) {
    std::size_t const most = members.endpoints().most_per_member();
    std::vector<own_endpoint> const own = look_at_own(members);
    std::vector<endpoint_facts> told(most);
    decision made;
    for (std::size_t i = 0; i < own.size(); ++i) {
        if (own[i].on == nullptr) {
            continue;
        }
        made.library = load(own[i].on->made_by);
        told[i].made_by = static_cast<std::uint32_t>(own[i].on->made_by);
        told[i].version = made.library == nullptr ? 0 : made.library->version();
        auto const uuid = own[i].on->backend->uuid_of(own[i].on->id);
        if (uuid) {
            told[i].uuid = uuid.value();
        }
    }
    std::vector<endpoint_facts> all(most * members.size());
    DIOMP_TRY(collectives_.run_among_ranks(members, {.what = operation::allgather,
                                                     .dst = all.data(),
                                                     .src = told.data(),
                                                     .amount = most * sizeof(endpoint_facts)}));
    std::string why_not = obstacle(members, all, most);
    auto const demanded = options_.wanted == ccl_choice::nccl   ? offload::vendor::cuda
                          : options_.wanted == ccl_choice::rccl ? offload::vendor::hip
                                                                : offload::vendor::none;
    if (why_not.empty() && demanded != offload::vendor::none &&
        all.front().made_by != static_cast<std::uint32_t>(demanded)) {
        why_not = "the devices are another vendor's";
    }
    if (!why_not.empty()) {
        if (demanded != offload::vendor::none) {
            return error(OMPX_ERR_UNSUPPORTED,
                         fmt::format("DIOMP_CCL demands a vendor's library: {}", why_not),
                         "set DIOMP_CCL to auto, or install the library on every node and name it "
                         "by DIOMP_NCCL_LIBRARY or DIOMP_RCCL_LIBRARY");
        }
        log(log_level::info, "collectives of a group of {} endpoints: native, since {}",
            members.count(), why_not);
        return decision{};
    }
    log(log_level::info, "collectives of a group of {} endpoints: {} {}", members.count(),
        made.library->name(), made.library->version_text());
    auto connected = connect(members, own, made.library);
    DIOMP_TRY(connected);
    made.communicators = connected.take();
    return made;
}

result<vendor::vendor_group *> vendor_choice::find(group::group &members) {
    if (options_.wanted == ccl_choice::native || members.endpoints().empty()) {
        return static_cast<vendor::vendor_group *>(nullptr);
    }
    if (auto const last = answers_about(members).communicators) {
        return *last;
    }
    auto found = find_or_decide(members);
    DIOMP_TRY(found);
    answers_about(members).communicators = found.value();
    return found;
}

result<vendor::vendor_group *> vendor_choice::find_or_decide(group::group &members) {
    {
        std::lock_guard const guard(mutex_);
        if (auto const &known = known_[&members].made) {
            return known->communicators.get();
        }
    }
    auto made = decide(members);
    DIOMP_TRY(made);
    std::lock_guard const guard(mutex_);
    return known_[&members].made.emplace(made.take()).communicators.get();
}

void vendor_choice::forget(const group::group &members) {
    version_.fetch_add(1, std::memory_order_acq_rel);
    std::lock_guard const guard(mutex_);
    known_.erase(&members);
}

} // namespace diomp::runtime
