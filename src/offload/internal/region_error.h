// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Errors of calls in target regions: from what the device has stored to a message.
#pragma once

#include "base/result.h"
#include "diomp/device_endpoint.h"

#include <string>

namespace diomp::offload {

/// A call in a region that has failed.
struct region_error {
    const char *function = "";
    std::string arguments;
    error why;
};

/// Describes a failed call. `at` is what the device has stored about it, in a job of `num_ranks`.
region_error describe_region_error(const diomp_device_error &at, int device, int num_ranks);

/// Describes a request to the proxy (diomp/device_ring.h) that has failed. An address of local
/// memory is shown as 0 if the data was in the request.
region_error describe_request_error(const diomp_request &what, int device, const error &why);

} // namespace diomp::offload
