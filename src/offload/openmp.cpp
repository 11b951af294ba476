// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/openmp.h"

#include <fmt/core.h>

namespace diomp::offload {

status openmp_devices::check(int device, int num, const char *argument) {
    if (device < -1 || device > num) {
        return error(OMPX_ERR_ARG,
                     fmt::format("{} is {}, but this process has {} device{}", argument, device,
                                 num, num == 1 ? "" : "s"),
                     num == 0 ? "pass omp_get_initial_device() (0) for the host"
                              : fmt::format("pass 0 to {}, or omp_get_initial_device() ({}) for "
                                            "the host",
                                            num - 1, num));
    }
    return {};
}

std::optional<error> openmp_devices::remote_device_error(int device) const {
    if (!is_remote(device)) {
        return std::nullopt;
    }
    return error(
        OMPX_ERR_UNSUPPORTED,
        fmt::format("device {} is a remote device whose memory is not in the address space "
                    "of the ranks",
                    device),
        "start the job with remote devices, also for rank 0 (diomp-run --remote-devices); or "
        "exchange the data through host memory (target update); see \"Address space\" in "
        "docs/remote.md");
}

} // namespace diomp::offload
