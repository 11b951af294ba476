// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory of remote devices in the address space: what this module needs of their client
// (remote/device_access.h). The clients of a job and the sessions of their devices form one world,
// in which an address of a device's memory is valid on all ranks.
#pragma once

#include "base/result.h"
#include "rma/box.h"
#include "rma/path.h"
#include "transport/types.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace diomp::offload {

class service_devices;

/// A transfer that may continue after its call.
struct transfer_start {
    /// Its event reports errors; otherwise a fence does (remote_memory::poll).
    bool has_event = false;
    /// Set by the call for the event: makes progress; the outcome when it is known. Does not block.
    /// Empty: the transfer was complete on return.
    std::function<std::optional<status>()> poll;
    /// Set by the call: the memory is in use until it is done. Null: complete on return.
    std::shared_ptr<const transport::completion> in_use;
};

/// `index`: of an own device among the remote devices of this rank. Thread-safe.
class remote_memory {
public:
    virtual ~remote_memory() = default;

    struct range {
        std::byte *base = nullptr; ///< not loadable here
        std::size_t nbytes = 0;    ///< equal on all ranks
    };
    /// Reserves the memory for the segment of an own device, once. nullopt: other ranks cannot
    /// access its memory.
    virtual std::optional<range> claim_segment(int index) = 0;
    /// Whether an address is in the memory of a remote processor, of any rank.
    virtual bool has(std::uint64_t address) = 0;
    /// Returns pages of freed memory to the device's host. Blocks: other ranks may use the memory
    /// when it is allocated again.
    virtual void return_pages(int index, range of) = 0;

    /// From now on no region is complete for OpenMP before it is complete on the device. False:
    /// such regions are still under way. Does not block; also called in handlers.
    virtual bool stop_deferring(int index) = 0;

    /// Transfers runs between memory of any device, which the caller has located, and memory of
    /// this process, after the regions of an own device. Blocks until they are complete; with a
    /// `start`, which needs a single run, it need not.
    virtual status move(rma::direction dir, std::uint64_t device_address, std::byte *here,
                        std::span<const rma::run> runs, transfer_start *start) = 0;
    /// Transfers runs between memory of any device and memory of an own device, without passing
    /// through this process. Blocks as move() does.
    virtual status move_between(rma::direction dir, std::uint64_t there, int index,
                                std::uint64_t here, std::span<const rma::run> runs,
                                transfer_start *start) = 0;
    /// Whether no started transfer is in flight; makes progress. Does not block. An error is that
    /// of one without an event, which has not been reported yet; or it is kept for another call.
    enum class errors : bool { reported, kept };
    virtual result<bool> poll(errors which) = 0;

    /// Fails unless all of the range is allocated on an own device (OMPX_ERR_RANGE) that works
    /// (OMPX_ERR_PEER). Does not block.
    virtual status check(int index, range used) = 0;
    /// Whether the devices with this index of all ranks can make collective calls.
    virtual bool has_collectives(int index) = 0;
    /// Whether the session of an own GPU makes calls on the GPU's segment. Also called in handlers.
    virtual bool lends_segment(int index) = 0;
    /// Makes an encoded call (session_transfer.h, device_coll/session_call.h) on an own device,
    /// after its regions. Blocks until the device has made it. Errors: also those of the call.
    virtual status run_call(int index, std::string_view call) = 0;
    /// Sends an encoded group (device_coll/session_call.h) to the session of an own device. Blocks
    /// for a round trip, but not for regions. True: the session had made a group for it.
    virtual bool describe_group(int index, std::string_view group) = 0;

    /// The own devices, for what is not in the world of the services.
    virtual service_devices &devices() = 0;

protected:
    remote_memory() = default;
    remote_memory(const remote_memory &) = default;
    remote_memory &operator=(const remote_memory &) = default;
};

} // namespace diomp::offload
