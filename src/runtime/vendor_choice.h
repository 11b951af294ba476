// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which groups of endpoints run their collectives in NCCL or RCCL, and how they come to it: the
// members tell each other what devices and which library they have, decide alike, and get the id of
// their communicators from the first of them. By the same facts they decide whether native calls
// go from device to device.
//
// For a library all endpoints must be different devices of one vendor, and every member must have
// the same release of it. Groups of ranks do not use one: which device a rank brings may change
// from call to call.
#pragma once

#include "base/settings.h"
#include "collective/collective.h"
#include "collective/vendor/vendor_group.h"
#include "group/registry.h"
#include "offload/offload.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace diomp::runtime {

/// Any thread; the caller holds the group's turn where it says so.
class vendor_choice {
public:
    struct options {
        ccl_choice wanted = ccl_choice::automatic;    ///< the same on all ranks
        std::optional<std::size_t> direct_from_bytes; ///< of native calls: ways; none: chosen
        std::string nccl_library;
        std::string rccl_library;
    };

    vendor_choice(collective::collectives &collectives, offload::devices &devices,
                  group::group_registry &groups, options chosen)
        : collectives_(collectives), devices_(devices), groups_(groups),
          options_(std::move(chosen)) {}

    /// Whether this rank may have to do with a library in calls on the group: it brings GPUs, and
    /// the user has not forbidden it. The same answer every time.
    bool concerns(const group::group &members);
    /// How a group's calls can be made.
    struct ways {
        static constexpr std::size_t never = SIZE_MAX;

        collective::vendor::vendor_group *communicators = nullptr; ///< null: not by a library
        /// Native calls on blocks of so many bytes or more may go from device to device; of a group
        /// over several nodes inside those, by its parts.
        std::size_t direct_from_bytes = never;
        std::size_t reduce_from_bytes = never; ///< the same for reductions

        /// Every call is a native one in memory that the processor loads.
        [[nodiscard]] bool is_by_host() const {
            return communicators == nullptr && direct_from_bytes == never;
        }
    };
    /// Collective over the group the first time. With the turn. OMPX_ERR_UNSUPPORTED: a library is
    /// demanded and cannot be.
    result<ways> find(group::group &members);
    /// Counted up when an answer may change.
    [[nodiscard]] std::uint64_t version() const { return version_.load(std::memory_order_acquire); }
    /// Some device does not reach another: no call of the group goes from device to device any
    /// more. By all members.
    void give_up_direct(const group::group &members);
    /// Before the group ends.
    void forget(const group::group &members);

private:
    struct decision {
        std::shared_ptr<collective::vendor::vendor_library> library;
        std::unique_ptr<collective::vendor::vendor_group> communicators;
        std::size_t direct_from_bytes = ways::never;
        std::size_t reduce_from_bytes = ways::never;

        [[nodiscard]] ways found() const {
            return {communicators.get(), direct_from_bytes, reduce_from_bytes};
        }
    };
    /// Of a group, as far as somebody has asked.
    struct knowledge {
        std::optional<bool> concerned;
        std::optional<decision> made;
    };
    struct own_endpoint {
        const offload::accelerator *on = nullptr; ///< null: the processor loads its memory
        std::size_t index = 0;
    };

    std::shared_ptr<collective::vendor::vendor_library> load(offload::vendor of);
    std::vector<own_endpoint> look_at_own(const group::group &members);
    /// What this thread has asked about the group before.
    struct answers;
    answers &answers_about(const group::group &members) const;
    result<ways> find_or_decide(group::group &members);
    result<decision> decide(group::group &members);
    struct endpoint_facts;
    /// Of the members' endpoints, [rank][place].
    result<std::vector<endpoint_facts>>
    exchange(group::group &members, const std::vector<own_endpoint> &own, decision &made);
    /// Why native calls do not go from device to device, "": they do. Divides a group over several
    /// nodes.
    std::string direct_obstacle(group::group &members, const std::vector<endpoint_facts> &facts);
    /// From which size on they do.
    static void choose_sizes(const group::group &members, const std::vector<endpoint_facts> &facts,
                             decision &made);
    /// Why the group has no communicators, "": it can.
    std::string library_obstacle(const group::group &members,
                                 const std::vector<endpoint_facts> &facts) const;
    result<std::unique_ptr<collective::vendor::vendor_group>>
    connect(group::group &members, const std::vector<own_endpoint> &own,
            std::shared_ptr<collective::vendor::vendor_library> library);

    collective::collectives &collectives_;
    offload::devices &devices_;
    group::group_registry &groups_;
    options const options_;
    std::atomic<std::uint64_t> version_{1}; ///< counted up when a group is forgotten
    std::mutex mutex_;                      ///< leaf lock over the rest
    std::map<const group::group *, knowledge> known_;
    std::map<offload::vendor, std::shared_ptr<collective::vendor::vendor_library>> libraries_;
};

} // namespace diomp::runtime
