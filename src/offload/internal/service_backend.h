// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A backend for GPUs of device services: their copies are messages to the service, which are
// complete on return. Nothing can be shared or opened, and no device reaches another one's memory.
//
// The process reserves the addresses of a device's memory, so that neither its own memory nor that
// of another service's device has them.
#pragma once

#include "device/device.h"
#include "offload/service_gpus.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace diomp::offload {

class service_backend final : public device::backend {
public:
    /// `gpus` outlives the backend and what it returns.
    explicit service_backend(service_gpus &gpus);
    ~service_backend() override;

    [[nodiscard]] const char *name() const override { return "service"; }
    [[nodiscard]] int num_devices() const override;
    result<device::properties> describe(device::device_id device) override;
    result<device::device_uuid> uuid_of(device::device_id device) override;
    result<std::unique_ptr<device::memory>> reserve(device::device_id device,
                                                    std::size_t max_bytes) override;
    result<std::unique_ptr<device::peer_memory>>
    open_shared(device::device_id device, const device::shared_handle &handle) override;
    result<bool> can_access(device::device_id device, device::device_id other) override;
    result<std::unique_ptr<device::queue>> make_queue(device::device_id device) override;
    /// Memory of the process: messages need no pinned memory.
    result<device::pinned_memory> allocate_pinned(std::size_t nbytes) override;
    result<device::pinned_memory> pin(void *base, std::size_t nbytes) override;
    /// For memory of the device from elsewhere, before copies use it: reserves its pages. It stays
    /// registered when it is freed. Errors: OMPX_ERR_UNSUPPORTED.
    status register_memory(device::device_id device, const void *address, std::size_t nbytes);
    [[nodiscard]] std::optional<device::device_id> owner_of(const void *address) override;

    /// Which addresses are whose memory. Thread-safe.
    class address_table {
    public:
        void add(std::uintptr_t base, std::size_t nbytes, device::device_id of);
        void remove(std::uintptr_t base);
        [[nodiscard]] std::optional<device::device_id> owner_of(const void *address) const;

    private:
        struct range {
            std::size_t nbytes;
            device::device_id of;
        };
        mutable std::mutex mutex_;               ///< leaf lock; guards the next member
        std::map<std::uintptr_t, range> ranges_; ///< [base]
    };

private:
    service_gpus &gpus_;
    std::shared_ptr<address_table> addresses_; ///< also of the reservations and queues
    std::mutex mutex_;                         ///< guards the next member
    std::vector<std::uintptr_t> registered_pages_;
};

} // namespace diomp::offload
