// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "offload/internal/bounce_request.h"
#include "offload/internal/segment_table.h"
#include "offload/internal/service_queue.h"
#include "offload/stream_copies.h"

#include <cstdint>
#include <optional>

namespace diomp::offload {

class variables;

/// Moves this rank's device memory as other ranks request, see bounce_request.h. Create before
/// engine.start(); destroy after the engine has stopped.
class bounce_server {
public:
    bounce_server(const segment_table &own, const variables &exposed, memory::address_space &space,
                  messaging::engine &engine, messaging::call_service &calls,
                  rma::transfers &transfers, stream_copies &copies);

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
        pinned_pairs::lease buffers;
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
    const variables &exposed_;
    memory::address_space &space_;
    messaging::call_service &calls_;
    rma::transfers &transfers_;
    stream_copies &copies_;
    transport::handler_id request_handler_;
    service_queue<copy_job> jobs_; ///< last: its thread uses the members above
};

} // namespace diomp::offload
