// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// AMD's devices, through HIP's runtime. It has run against a stand-in for the runtime only:
// docs/devices.md.
#pragma once

#include "device/device.h"
#include "device/hip/kernels.h"
#include "device/hip/library.h"

#include <memory>
#include <vector>

namespace diomp::device::hip {

class hip_backend final : public backend {
public:
    hip_backend(std::shared_ptr<const library> runtime, int num_devices);

    [[nodiscard]] const char *name() const override { return "hip"; }
    [[nodiscard]] int num_devices() const override { return num_devices_; }
    result<properties> describe(device_id device) override;
    result<device_uuid> uuid_of(device_id device) override;
    result<std::unique_ptr<memory>> reserve_at(device_id device, std::size_t max_bytes,
                                               std::uint64_t preferred) override;
    result<std::unique_ptr<peer_memory>> open_shared(device_id device,
                                                     const shared_handle &handle) override;
    result<bool> can_access(device_id device, device_id other) override;
    result<std::unique_ptr<queue>> make_queue(device_id device) override;
    bool can_reduce(device_id device, const reduction &how) override;
    result<std::unique_ptr<current_scope>> make_current(device_id device) override;
    result<pinned_memory> allocate_pinned(std::size_t nbytes) override;
    result<pinned_memory> pin(void *base, std::size_t nbytes) override;
    [[nodiscard]] std::optional<device_id> owner_of(const void *address) override;

private:
    std::shared_ptr<const library> runtime_;
    int const num_devices_;
    std::vector<std::shared_ptr<device_kernels>> kernels_; ///< [device]
};

} // namespace diomp::device::hip
