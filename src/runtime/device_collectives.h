// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives on device memory: from what the program says, pointers and device numbers of one or
// several endpoints, to a collective over memory that somebody can reduce and move.
//
// Memory that the processor loads (host devices) is used where it is. Memory of accelerators goes
// to the vendor's library, where the group can have one and the library has the call; else from
// device to device, where the call is large and all reach each other; else by way of host memory.
#pragma once

#include "collective/collective.h"
#include "offload/offload.h"
#include "runtime/direct_collectives.h"
#include "runtime/endpoint_calls.h"
#include "runtime/node_collectives.h"
#include "runtime/vendor_choice.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace diomp::runtime {

/// Any thread.
class device_collectives {
public:
    /// All must outlive it.
    device_collectives(collective::collectives &collectives, offload::devices &devices,
                       conduit::engine &engine, group::group_registry &groups,
                       vendor_choice::options chosen)
        : collectives_(collectives), devices_(devices), engine_(engine),
          vendors_(collectives, devices, groups, std::move(chosen)), direct_(devices),
          by_nodes_(collectives, devices, direct_) {}

    /// Blocks. `asked` has device or mapped addresses. `device` is one of the caller's endpoints in
    /// the group or OMPX_GROUP_DEVICES; in a group of ranks any device.
    status run(group::group &members, const collective::request &asked, int device);
    /// Returns at once.
    result<ompx_event *> start(group::group &members, const collective::request &asked, int device);
    /// Before the group ends: calls that wait for other endpoints of this rank fail.
    void forget(const group::group &members);
    /// Waits for what has been started. Before the groups end.
    void finish() { static_cast<void>(vendor_calls_.enter()); }

private:
    /// A buffer as the processor sees it.
    struct view {
        offload::end there;
        std::byte *here = nullptr;
        std::unique_ptr<std::byte[]> copy; ///< of an accelerator's memory
        std::size_t nbytes = 0;
    };
    /// The buffers of one endpoint in a call.
    struct views {
        view src;
        view dst;
        collective::buffer_use use;
    };
    /// A checked call of all of the caller's endpoints.
    struct whole_call {
        collective::request asked;
        std::vector<views> own; ///< in the group's order
        std::vector<std::shared_ptr<const collective::block_lists>> blocks;
    };

    /// Buffers of all of the caller's endpoints, if the processor can load all of them; none if it
    /// cannot. `into` has room for most_fast endpoints.
    static constexpr std::size_t most_fast = 8;
    result<std::span<const collective::endpoint_buffers>>
    find_loadable(const group::group &members, const collective::request &asked, int device,
                  std::span<collective::endpoint_buffers> into);

    /// The last call of which this thread has found all buffers loadable: the same again searches
    /// for nothing.
    struct found_call {
        const device_collectives *by = nullptr;
        const group::group *of = nullptr;
        std::uint64_t version = 0; ///< of the vendors' choices
        std::uint64_t epoch = 0;   ///< of device memory
        int device = 0;
        void *dst = nullptr; ///< as the program gave it
        const void *src = nullptr;
        /// With the first endpoint's buffers: a request that has just been stored is not to be
        /// copied (docs/collectives.md).
        collective::request asked;
        std::array<collective::endpoint_buffers, most_fast> buffers;
        std::span<const collective::endpoint_buffers> own;
    };
    static found_call &last_found();
    [[nodiscard]] bool is_found(const found_call &last, const group::group &members,
                                const collective::request &asked, int device) const;
    /// The other calls.
    status run_unknown(group::group &members, const collective::request &asked, int device);

    result<view> find(const void *pointer, int device, std::size_t nbytes);
    /// The buffers of own endpoint number `place`, whose device is `device`.
    result<views> find_buffers(const group::group &members, const collective::request &asked,
                               std::size_t place, int device);
    result<whole_call> find_all(const group::group &members, const collective::request &asked,
                                int device);
    status load(view &of, bool is_read);
    status run_in_turn(group::group &members, whole_call &call);
    status run_in_turn(group::group &members, whole_call &call, const vendor_choice::ways &by);
    /// From device to device. false: nothing has been done, on any member.
    result<bool> run_directly(group::group &members, const whole_call &call,
                              std::size_t from_bytes);
    /// By way of host memory.
    status run_natively(group::group &members, whole_call &call);
    status run_by_vendor(group::group &members, const whole_call &call,
                         collective::vendor::vendor_group &communicators);

    /// The place among the caller's endpoints; nullopt: the call is for all of them.
    static result<std::optional<std::size_t>> place_of(const group::group &members, int device);
    endpoint_calls &calls_of(const group::group &members);
    result<ompx_event *> start_part(group::group &members, const collective::request &asked,
                                    std::size_t place, bool blocks);
    /// The order of calls that may be a vendor's, if this one may; with the group's turn it may
    /// run.
    std::optional<group::call_queue::turn> order_of(const group::group &members);
    /// Runs `call` in its turn on a thread of the group or of all vendor calls.
    void submit(group::group &members, std::function<void()> call);
    status run_set(group::group &members, endpoint_calls::set &parts);

    collective::collectives &collectives_;
    offload::devices &devices_;
    conduit::engine &engine_;
    vendor_choice vendors_;
    direct_collectives direct_;
    node_collectives by_nodes_;
    /// Calls that may go to a vendor's library, of all groups: its calls on one device must come in
    /// the same order everywhere, and that of the program is the only one all ranks have. Its turn
    /// is taken before a group's.
    group::call_queue vendor_calls_;
    std::mutex mutex_; ///< leaf lock over calls_
    std::map<const group::group *, std::unique_ptr<endpoint_calls>> calls_;
};

} // namespace diomp::runtime
