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

} // namespace diomp::offload
