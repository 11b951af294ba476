// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A session: the body of the process that a service starts for one device of one client.
#pragma once

#include "base/result.h"
#include "offload/remote/control.h"
#include "offload/service/activity_table.h"
#include "offload/service/image_store.h"
#include "offload/service/output.h"

#include <cstddef>
#include <string>

namespace diomp::offload::service {

struct session_options {
    image_store *images = nullptr;
    std::string kind = "cpu";     ///< device_description::kind
    int device = 0;               ///< of LLVM's plugin
    std::size_t memory_bytes = 0; ///< of the slot
    double timeout_s = 120;       ///< of each step of the start, at least: clients have 60 s
    double min_kernel_time_s = 0;
    std::string network_device_memory = "auto"; ///< DIOMP_NETWORK_DEVICE_MEMORY
    bool may_share_memory = true;               ///< with other sessions of its world
    /// In memory shared with the service.
    activity_table *activities = nullptr;
    /// The service also keeps the read ends, and sends the remaining output of a crashed session.
    output_pipes *pipes = nullptr;
};

/// Serves an accepted client until it sends frame::stop or disconnects. The output of the process
/// goes to the client meanwhile. Blocks; ends the process with _Exit, so that no kernel keeps
/// running without a client. Returns an error if the world could not be created, after sending it
/// to the client.
status serve(remote::control_connection &client, const session_options &options);

} // namespace diomp::offload::service
