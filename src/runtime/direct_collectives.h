// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Native collectives of devices that reach each other's memory, in one process or, by device IPC,
// in several of a node: from device to device, reduced on the devices.
//
// A call has three meetings. In the first the members tell where their buffers lie in their
// segments. Then everybody makes them reachable for its own devices, and in the second says whether
// it could: nothing is written before. The third is at the end; of calls with several phases there
// is one at the end of each.
#pragma once

#include "collective/collective.h"
#include "collective/device_plan.h"
#include "offload/offload.h"
#include "runtime/device_scratch.h"
#include "runtime/told_buffers.h"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace diomp::runtime {

/// Any thread; the caller holds the group's turn.
class direct_collectives {
public:
    explicit direct_collectives(offload::devices &devices) : devices_(devices) {}

    /// Of one own endpoint, on its device.
    struct buffers {
        offload::end dst;
        offload::end src;
        collective::buffer_use use;
        std::shared_ptr<const collective::block_lists> blocks; ///< of v forms
    };
    enum class outcome {
        done,
        not_so,      ///< some buffer or device does not allow it, or the call is small or wrong
        unreachable, ///< some device does not reach another one's memory, nor will it
    };
    /// Collective over a group whose endpoints are accelerators on one node, at most
    /// device::queue::most_sources; `asked` is checked, and has_device_plan. An alltoallv without a
    /// block of `from_bytes` is small; of other calls the caller knows. All members get the same
    /// outcome. If it is not `done` nothing has been written, and they make the call in
    /// another way. Errors: members that make different calls; a device that fails, of whichever
    /// member; the buffers have any contents then.
    result<outcome> run(group::group &members, const collective::request &asked,
                        std::span<const buffers> own, std::size_t from_bytes);

    /// Its first two meetings: whether the outcome would be `done` if no device failed.
    result<outcome> try_out(group::group &members, const collective::request &asked,
                            std::span<const buffers> own);
    /// Whether the buffers and the device of own endpoint number `place` allow it. Any group.
    bool is_fit(const group::group &members, const collective::request &asked, std::size_t place,
                const buffers &own) const {
        return describe(members, asked, place, own).is_fit != 0;
    }

private:
    told_buffers describe(const group::group &members, const collective::request &asked,
                          std::size_t place, const buffers &own) const;
    /// The first meeting.
    result<told_call> tell(group::group &members, const collective::request &asked,
                           std::span<const buffers> own) const;
    /// Of an own endpoint.
    struct own_plan {
        std::vector<collective::device_plan> phases;
        device_scratch::lease aside;
    };
    /// What is to be done, or why not.
    struct prepared {
        outcome what = outcome::not_so;
        std::vector<own_plan> plans; ///< [place]
    };
    result<prepared> prepare(group::group &members, const collective::request &asked,
                             std::span<const buffers> own, std::size_t from_bytes);
    /// By own endpoint number `place`; `asked` has its lists.
    result<own_plan> plan(const group::group &members, const collective::request &asked,
                          const told_call &told, std::size_t place);
    result<std::vector<own_plan>> plan_own(const group::group &members,
                                           const collective::request &asked,
                                           std::span<const buffers> own, const told_call &told);
    /// On all own devices at once.
    status carry_out(const group::group &members, const collective::request &asked,
                     const std::vector<own_plan> &plans, std::size_t phase);
    /// The same, and meets.
    status run_phase(group::group &members, const collective::request &asked,
                     const std::vector<own_plan> &plans, std::size_t phase);

    offload::devices &devices_;
    device_scratch scratch_;
};

} // namespace diomp::runtime
