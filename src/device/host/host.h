// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The host backend: parts of host memory stand for devices. It is the reference for the other
// backends, and is used where there is no device.
//
// Copies are complete on return, and every device can access every other. Nothing can be shared or
// opened: the caller's ranges are mapped in every process that needs them. The kernel commits pages
// when they are touched; commit only moves the limit that committed_bytes returns.
#pragma once

#include "device/device.h"

#include <atomic>
#include <memory>
#include <span>
#include <vector>

namespace diomp::device::host {

/// A range can have one reservation at a time; a second one fails with OMPX_ERR_NOMEM.
class host_backend final : public backend {
public:
    explicit host_backend(std::span<const host_range> ranges);

    [[nodiscard]] const char *name() const override { return "host"; }
    [[nodiscard]] int num_devices() const override { return static_cast<int>(slots_.size()); }
    result<properties> describe(device_id device) override;
    result<device_uuid> uuid_of(device_id device) override;
    result<std::unique_ptr<memory>> reserve_at(device_id device, std::size_t max_bytes,
                                               std::uint64_t preferred) override;
    result<std::unique_ptr<peer_memory>> open_shared(device_id device,
                                                     const shared_handle &handle) override;
    result<bool> can_access(device_id device, device_id other) override;
    result<std::unique_ptr<queue>> make_queue(device_id device) override;
    result<pinned_memory> allocate_pinned(std::size_t nbytes) override;
    result<pinned_memory> pin(void *base, std::size_t nbytes) override;
    [[nodiscard]] std::optional<device_id> owner_of(const void *address) override;

    /// A range and the state of its reservation, if any.
    struct slot {
        host_range range;
        std::atomic<bool> reserved{false};
        std::atomic<std::size_t> committed_bytes{0};
    };

private:
    std::vector<std::shared_ptr<slot>> slots_; ///< [device]; shared with the reservations
};

} // namespace diomp::device::host
