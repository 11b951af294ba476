// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Native collectives of devices that reach each other's memory, in one process or, by device IPC,
// in several of a node: from device to device, reduced on the devices.
//
// A call has three meetings. In the first the members tell where their buffers lie in their
// segments. Then everybody makes them reachable for its own devices, and in the second says whether
// it could: nothing is written before. The third is at the end.
#pragma once

#include "collective/collective.h"
#include "collective/device_plan.h"
#include "offload/offload.h"

#include <cstddef>
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
    };
    enum class outcome {
        done,
        not_so,      ///< some buffer or device does not allow it
        unreachable, ///< some device does not reach another one's memory, nor will it
    };
    /// Collective over a group whose endpoints are accelerators on one node, at most
    /// device::queue::most_sources; `asked` is checked, and has_device_plan. All members get the
    /// same outcome. If it is not `done` nothing has been written, and they make the call in
    /// another way. Errors: members that make different calls; a device that fails, of whichever
    /// member; the buffers have any contents then.
    result<outcome> run(group::group &members, const collective::request &asked,
                        std::span<const buffers> own);

private:
    /// What a member tells of one of its endpoints.
    struct told_buffers {
        std::uint64_t dst = 0; ///< in the segment
        std::uint64_t src = 0;
        std::int32_t device = 0; ///< the owner's number
        std::uint32_t is_fit = 0;
    };

    told_buffers describe(const group::group &members, const collective::request &asked,
                          std::size_t place, const buffers &own) const;
    /// By own endpoint number `place`.
    result<collective::device_plan> plan(const group::group &members,
                                         const collective::request &asked,
                                         const std::vector<told_buffers> &all, std::size_t place);
    result<std::vector<collective::device_plan>> plan_own(const group::group &members,
                                                          const collective::request &asked,
                                                          const std::vector<told_buffers> &all);
    /// On all own devices at once.
    status carry_out(const group::group &members, const collective::request &asked,
                     const std::vector<collective::device_plan> &plans);

    offload::devices &devices_;
};

} // namespace diomp::runtime
