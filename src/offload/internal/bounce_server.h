// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers with another rank's accelerator, for memory that cannot be opened here (another node,
// or no device IPC), go through host memory, and the owner takes part. For a put, the requester
// copies a chunk into a buffer in its own host segment and sends its address to the owner, whose
// bounce thread fetches the chunk and copies it to the device. A get runs the other way round.
// Several chunks are in flight at a time, so that device copies overlap with the network. With each
// chunk of a box, the owner gets a list of the runs' destinations.
#pragma once

#include "base/result.h"
#include "messaging/request.h"
#include "offload/internal/segment_table.h"
#include "offload/internal/service_queue.h"
#include "offload/stream_copies.h"
#include "rma/box.h"
#include "rma/path.h"
#include "transport/types.h"

#include <cstdint>
#include <optional>

namespace diomp::messaging {
class call_service;
class engine;
} // namespace diomp::messaging

namespace diomp::rma {
class transfers;
}

namespace diomp::offload {

class exposed_variables;

struct bounce_request {
    messaging::request_header header;
    std::uint64_t address = 0; ///< device address, as the owner sees it
    std::uint64_t staging = 0; ///< chunk in the requester's slot, as a global address
    std::uint32_t nbytes = 0;
    std::uint32_t num_runs = 0; ///< 0: contiguous; otherwise a list of runs precedes the data
    std::int32_t device = 0;
    rma::direction dir = rma::direction::put;
};

struct bounce_reply {
    std::int32_t failure = 0;
};

/// An entry of the list that precedes the data in a chunk.
struct listed_run {
    std::uint64_t offset = 0; ///< offset from the beginning of the array on the device
    std::uint64_t nbytes = 0;
};

/// Moves this rank's device memory as other ranks request. Create before
/// engine.start(); destroy after the engine has stopped.
class bounce_server {
public:
    bounce_server(const segment_table &own, const exposed_variables &exposed,
                  memory::address_space &space, messaging::engine &engine,
                  messaging::call_service &calls, rma::transfers &transfers, stream_copies &copies);

    [[nodiscard]] transport::handler_id request_handler() const { return request_handler_; }

private:
    struct copy_job {
        world_rank requester;
        bounce_request args;
    };
    /// A job whose device copy is in flight.
    struct inflight_copy {
        copy_job what;
        const accelerator &on;
        pinned_pool::pinned_pair buffers;
        device::ticket copy;
    };
    /// The address that a request names, and the bytes from there to the end of its allocation or
    /// variable.
    struct target_range {
        std::byte *address = nullptr;
        std::uint64_t nbytes_left = 0;
        const accelerator *on = nullptr;
    };

    void on_request(const transport::message &incoming);
    void serve(); ///< runs in the bounce thread
    [[nodiscard]] std::optional<target_range> find(const bounce_request &args) const;
    /// Starts a request. nullopt: it is complete.
    result<std::optional<inflight_copy>> execute(const copy_job &what);
    status execute_runs(const copy_job &what, const target_range &array);
    void send_reply(const copy_job &what, status outcome);

    const segment_table &own_;
    const exposed_variables &exposed_;
    memory::address_space &space_;
    messaging::call_service &calls_;
    rma::transfers &transfers_;
    stream_copies &copies_;
    transport::handler_id request_handler_;
    service_queue<copy_job> jobs_; ///< last: its thread uses the members above
};

} // namespace diomp::offload
