// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The host backend: parts of host memory stand for devices. It is what the other backends are
// compared with, and what runs where there is no device.
//
// Copies are complete on return, every device reaches every other. Nothing can be shared or opened:
// the caller's ranges are mapped in every process that has a use for them. Pages are committed by
// the kernel when they are touched; grow only moves the border that committed_bytes tells.
#pragma once

#include "device/device.h"

#include <atomic>
#include <memory>
#include <span>
#include <vector>

namespace diomp::device::host {

/// A range can be reserved once at a time; a second reservation is OMPX_ERR_NOMEM.
class host_backend final : public backend {
public:
    explicit host_backend(std::span<const host_range> ranges);

    [[nodiscard]] const char *name() const override { return "host"; }
    [[nodiscard]] int num_devices() const override { return static_cast<int>(slots_.size()); }
    result<properties> describe(device_id device) override;
    result<device_uuid> uuid_of(device_id device) override;
    result<std::unique_ptr<memory>> reserve(device_id device, std::size_t max_bytes) override;
    result<std::unique_ptr<peer_memory>> open_shared(device_id device,
                                                     const shared_handle &handle) override;
    result<bool> can_reach(device_id device, device_id other) override;
    result<std::unique_ptr<queue>> make_queue(device_id device) override;
    result<pinned_memory> allocate_pinned(std::size_t nbytes) override;
    result<pinned_memory> pin(void *base, std::size_t nbytes) override;
    [[nodiscard]] std::optional<device_id> owner_of(const void *address) override;

    /// A range, and what its reservation (if there is one) says of it.
    struct slot {
        host_range range;
        std::atomic<bool> reserved{false};
        std::atomic<std::size_t> committed_bytes{0};
    };

private:
    std::vector<std::shared_ptr<slot>> slots_; ///< [device]; reservations hold theirs as well
};

} // namespace diomp::device::host
