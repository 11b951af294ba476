// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NVIDIA's devices, through the driver API. Which hardware it has run on: docs/devices.md.
#pragma once

#include "device/cuda/context.h"
#include "device/device.h"

#include <memory>
#include <mutex>
#include <vector>

namespace diomp::device::cuda {

class cuda_backend final : public backend {
public:
    cuda_backend(std::shared_ptr<const library> driver, int num_devices)
        : driver_(std::move(driver)), contexts_(static_cast<std::size_t>(num_devices)) {}

    [[nodiscard]] const char *name() const override { return "cuda"; }
    [[nodiscard]] int num_devices() const override { return static_cast<int>(contexts_.size()); }
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
    /// Created on first use and kept: a context takes device memory and a large part of a second.
    result<std::shared_ptr<context>> context_of(device_id device);
    /// A context of a device in use, if any: most ranks use one device only.
    result<std::shared_ptr<context>> any_context();

    std::shared_ptr<const library> driver_;
    std::mutex mutex_; ///< guards contexts_; held while one is created
    std::vector<std::shared_ptr<context>> contexts_; ///< [device]; null: not used yet
};

} // namespace diomp::device::cuda
