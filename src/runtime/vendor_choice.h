// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which groups of endpoints run their collectives in NCCL or RCCL, and how they come to it: the
// members tell each other what devices and which library they have, decide alike, and get the id of
// their communicators from the first of them.
//
// All endpoints must be different devices of one vendor, and every member must have the same
// release of its library. Groups of ranks do not use one: which device a rank brings may change
// from call to call.
#pragma once

#include "base/settings.h"
#include "collective/collective.h"
#include "collective/vendor/vendor_group.h"
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
        ccl_choice wanted = ccl_choice::automatic; ///< the same on all ranks
        std::string nccl_library;
        std::string rccl_library;
    };

    vendor_choice(collective::collectives &collectives, offload::devices &devices, options chosen)
        : collectives_(collectives), devices_(devices), options_(std::move(chosen)) {}

    /// Whether this rank may have to do with a library in calls on the group: it brings GPUs, and
    /// the user has not forbidden it. The same answer every time.
    bool concerns(const group::group &members);
    /// The group's communicators; nullptr: the native algorithms do it. Collective over the group
    /// the first time. With the turn. OMPX_ERR_UNSUPPORTED: a library is demanded and cannot be.
    result<collective::vendor::vendor_group *> find(group::group &members);
    /// Before the group ends.
    void forget(const group::group &members);

private:
    struct decision {
        std::shared_ptr<collective::vendor::vendor_library> library;
        std::unique_ptr<collective::vendor::vendor_group> communicators;
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
    result<collective::vendor::vendor_group *> find_or_decide(group::group &members);
    result<decision> decide(group::group &members);
    result<std::unique_ptr<collective::vendor::vendor_group>>
    connect(group::group &members, const std::vector<own_endpoint> &own,
            std::shared_ptr<collective::vendor::vendor_library> library);

    collective::collectives &collectives_;
    offload::devices &devices_;
    options const options_;
    std::atomic<std::uint64_t> version_{1}; ///< counted up when a group is forgotten
    std::mutex mutex_;                      ///< leaf lock over the rest
    std::map<const group::group *, knowledge> known_;
    std::map<offload::vendor, std::shared_ptr<collective::vendor::vendor_library>> libraries_;
};

} // namespace diomp::runtime
