// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One client's use of one device: the body of the process that a service starts for it.
#pragma once

#include "base/result.h"
#include "offload/remote/control.h"
#include "offload/service/executor.h"
#include "offload/service/image_store.h"
#include "offload/service/output.h"

#include <cstddef>
#include <string>

namespace diomp::offload::service {

struct session_options {
    image_store *images = nullptr;
    std::string kind = "cpu";     ///< as in remote::offer
    int device = 0;               ///< of LLVM's plugin
    std::size_t memory_bytes = 0; ///< of the slot
    double timeout_s = 60;        ///< of start-up
    double least_kernel_time_s = 0;
    std::string network_device_memory = "auto"; ///< DIOMP_NETWORK_DEVICE_MEMORY
    /// Shared with the service.
    activity_board *board = nullptr;
    /// The service has the ends to read from, too: it sends what a session that crashes has left.
    output_pipes *pipes = nullptr;
};

/// Serves a client that has been welcomed, until it says stop or is gone. The process prints to
/// the client meanwhile. Blocks; ends the process rather than to leave a kernel running for nobody.
/// Returns with an error if no world came about, which the client has been told.
status serve(remote::control_link &client, const session_options &options);

} // namespace diomp::offload::service
