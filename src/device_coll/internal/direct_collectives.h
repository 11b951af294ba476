// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Native collectives of devices that can access each other's memory, in one process or, by device
// IPC, in several processes of a node: copied from device to device, reduced on the devices.
//
// A call has three rounds. In the first, the members exchange the offsets of their buffers in their
// segments. Each member then makes these buffers accessible to its own devices and reports in the
// second round whether that succeeded; nothing is written before. The third round ends the call;
// calls with several phases have one at the end of each phase.
#pragma once

#include "base/result.h"
#include "coll/collective.h"
#include "offload/accelerators.h"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace diomp::group {
class group;
}

namespace diomp::offload {
class devices;
}

namespace diomp::device_coll {

struct buffer_info;
class call_info;
class device_scratch;

/// Any thread; the caller holds the group's call lock.
class direct_collectives {
public:
    explicit direct_collectives(offload::devices &devices);
    ~direct_collectives();

    /// Buffers of one own endpoint, on its device.
    struct buffers {
        offload::device_ptr dst;
        offload::device_ptr src;
        coll::buffer_use use;
        std::shared_ptr<const coll::block_lists> blocks; ///< of v variants
    };
    enum class outcome {
        done,
        not_applicable, ///< unsuitable buffer or device, or a small or erroneous call
        unreachable,    ///< a device cannot access another one's memory, permanently
    };
    /// Collective over a group whose endpoints are accelerators on one node, at most
    /// device::queue::max_sources. Blocks. `args` has been checked and has_device_plan() holds. An
    /// alltoallv whose blocks are all smaller than `from_bytes` is small; for other calls the
    /// caller checks this. All members get the same outcome. If it is not `done`, nothing has been
    /// written and the members use another path. Errors: members made different calls; a device of
    /// any member failed, and the contents of the buffers are undefined.
    result<outcome> run(group::group &members, const coll::request &args,
                        std::span<const buffers> own, std::size_t from_bytes);

    /// The first two rounds of run(): `done` if run() would succeed unless a device fails.
    result<outcome> probe(group::group &members, const coll::request &args,
                          std::span<const buffers> own);
    /// Whether run() can use the buffers and the device of own endpoint number `own_index`. Local;
    /// any group.
    bool is_eligible(const group::group &members, const coll::request &args, std::size_t own_index,
                     const buffers &own) const;

private:
    buffer_info describe(const group::group &members, const coll::request &args,
                         std::size_t own_index, const buffers &own) const;
    /// The first round.
    result<call_info> exchange_info(group::group &members, const coll::request &args,
                                    std::span<const buffers> own) const;
    struct own_plan; ///< the work of one own endpoint
    struct prepared; ///< the plans, or the outcome if there are none
    result<prepared> prepare(group::group &members, const coll::request &args,
                             std::span<const buffers> own, std::size_t from_bytes);
    /// The plan of own endpoint number `own_index`; `args` has its block lists.
    result<own_plan> plan(const group::group &members, const coll::request &args,
                          const call_info &info, std::size_t own_index);
    result<std::vector<own_plan>> plan_own(const group::group &members, const coll::request &args,
                                           std::span<const buffers> own, const call_info &info);
    /// Runs one phase on all own devices at once and waits for them.
    status run_on_own_devices(const group::group &members, const coll::request &args,
                              const std::vector<own_plan> &plans, std::size_t phase);
    /// Runs one phase and then the round that ends it.
    status run_phase(group::group &members, const coll::request &args,
                     const std::vector<own_plan> &plans, std::size_t phase);

    offload::devices &devices_;
    std::unique_ptr<device_scratch> const scratch_;
};

} // namespace diomp::device_coll
