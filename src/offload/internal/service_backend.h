// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A backend for devices of services: their copies are messages to the service, which are complete
// on return. Nothing can be shared or opened, and no device reaches another one's memory.
//
// The process reserves the addresses of memory that the backend has allocated, so that neither its
// own memory nor that of another service's device has them. Other memory gets addresses of this
// process.
#pragma once

#include "device/device.h"
#include "offload/service_devices.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>

namespace diomp::offload {

class service_backend final : public device::backend {
public:
    /// `all` outlives the backend and what it returns.
    explicit service_backend(service_devices &all);
    ~service_backend() override;

    [[nodiscard]] const char *name() const override { return "service"; }
    [[nodiscard]] int num_devices() const override;
    result<device::properties> describe(device::device_id device) override;
    result<device::device_uuid> uuid_of(device::device_id device) override;
    result<std::unique_ptr<device::memory>>
    reserve_at(device::device_id device, std::size_t max_bytes, std::uint64_t preferred) override;
    result<std::unique_ptr<device::peer_memory>>
    open_shared(device::device_id device, const device::shared_handle &handle) override;
    result<bool> can_access(device::device_id device, device::device_id other) override;
    result<std::unique_ptr<device::queue>> make_queue(device::device_id device) override;
    /// Memory of the process: messages need no pinned memory.
    result<device::pinned_memory> allocate_pinned(std::size_t nbytes) override;
    result<device::pinned_memory> pin(void *base, std::size_t nbytes) override;
    /// For memory of the device from elsewhere: returns the address by which copies use it, for the
    /// same memory the same one. It stays registered when it is freed. Errors: OMPX_ERR_NOMEM.
    result<std::byte *> register_memory(device::device_id device, std::uint64_t address,
                                        std::size_t nbytes);
    [[nodiscard]] std::optional<device::device_id> owner_of(const void *address) override;

    /// Which addresses are whose memory. Thread-safe.
    class address_table {
    public:
        /// Memory of a device, as the device sees it.
        struct location {
            device::device_id of;
            std::uint64_t address;
        };
        void add(std::uintptr_t base, std::size_t nbytes, location what);
        void remove(std::uintptr_t base);
        [[nodiscard]] std::optional<location> find(const void *address) const;

    private:
        struct range {
            std::size_t nbytes;
            location what; ///< at its beginning
        };
        mutable std::mutex mutex_;               ///< leaf lock; guards the next member
        std::map<std::uintptr_t, range> ranges_; ///< [base]
    };

private:
    service_devices &devices_;
    std::shared_ptr<address_table> addresses_; ///< also of the reservations and queues
    std::mutex mutex_;                         ///< guards the next member
    /// Memory from elsewhere: device, its first page there, bytes of whole pages.
    using registered_pages = std::tuple<int, std::uint64_t, std::size_t>;
    std::map<registered_pages, std::byte *> registered_; ///< where it is here
};

} // namespace diomp::offload
