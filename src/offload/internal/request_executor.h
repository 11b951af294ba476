// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Executes the requests of a GPU (diomp/device_ring.h) by the calls that the rank itself makes.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "diomp/device_endpoint.h"
#include "diomp/types.h"
#include "offload/request_observer.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace diomp::device {
struct word_update;
}

namespace diomp::messaging {
class call_service;
class engine;
} // namespace diomp::messaging

namespace diomp::rma {
class transfers;
}

namespace diomp::offload {

class alloc_directory;
class barrier_groups;
class mover;
class segment_table;
class word_updates;
struct group_members;
struct accelerator;
struct region_error;
struct remote_word;

/// The first words of the reply to a request.
struct reply_values {
    std::array<std::uint64_t, 6> words{};
};

/// A device whose regions make requests.
struct requesting_device {
    int device = -1;                 ///< OpenMP's number
    std::uint64_t base = 0;          ///< of its segment
    std::uint64_t segment_bytes = 0; ///< addresses outside are global host memory
    int numa_node = -1;              ///< nearest to the device; -1: unknown
};

/// Thread-safe.
class request_executor {
public:
    /// Create before engine.start(); destroy after the engine has stopped.
    request_executor(offload::mover &mover, rma::transfers &transfers, const segment_table &own,
                     const alloc_directory &directory, messaging::engine &engine,
                     messaging::call_service &calls, int num_ranks, request_observer on_request);
    ~request_executor();
    request_executor(const request_executor &) = delete;
    request_executor &operator=(const request_executor &) = delete;

    /// Call before the first region.
    void set_groups(std::function<result<group_members>(ompx_group_t)> find);
    [[nodiscard]] barrier_groups &groups() { return *groups_; }
    /// Call before the first region of a device that may make requests; see
    /// mover::prepare_for_regions.
    status prepare(const accelerator &on);
    /// Blocks as the call does that was requested: a put until its source may be reused. Fence:
    /// completes all operations of this rank.
    status execute(const diomp_request &what, const requesting_device &by, reply_values &reply);
    /// Waits until the updates of words of GPUs are complete that requests without a reply have
    /// started.
    status finish();
    /// The first failure of such an update for the device's requests since the last call.
    std::optional<region_error> take_error(int device);

private:
    using device = requesting_device;

    status run(const diomp_request &what, const requesting_device &by, reply_values &reply);

    /// OpenMP's number for a remote address: the requesting device, or -1 for host memory.
    [[nodiscard]] static int memory_of(std::uint64_t address, const device &by) {
        return address - by.base < by.segment_bytes ? by.device : -1;
    }
    /// Puts from an address of the device `local_device`; -1: this process's memory.
    status put(world_rank to, std::uint64_t remote, const void *local, int local_device,
               std::uint64_t nbytes, const device &by);
    status get(world_rank from, std::uint64_t remote, void *local, int local_device,
               std::uint64_t nbytes, const device &by);
    status put_signal(const diomp_request &what, const device &by);
    status signal(world_rank to, const diomp_request &what, const device &by);
    status fetch(world_rank at, const diomp_request &what, const device &by, reply_values &reply);
    status compare_swap(world_rank at, const diomp_request &what, const device &by,
                        reply_values &reply);
    /// Executes an update where the word is: by the owner's GPU, or by a processor if the rank's
    /// device is in host memory.
    status update(world_rank at, const diomp_request &what, const device &by,
                  const diomp::device::word_update &how, reply_values &reply);
    status start(const diomp_request &what, const device &by, const remote_word &word);

    struct late_failures;

    offload::mover &mover_;
    rma::transfers &transfers_;
    std::unique_ptr<word_updates> updates_;
    std::unique_ptr<barrier_groups> groups_;
    int num_ranks_;
    request_observer on_request_;
    std::unique_ptr<late_failures> late_;
};

} // namespace diomp::offload
