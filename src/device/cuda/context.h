// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A device's primary context: the one that libomptarget's CUDA plugin and CUDA's runtime use too,
// so that their addresses are ours. Retained from the first use of a device until the backend and
// all that it has handed out for the device are gone.
#pragma once

#include "base/function_ref.h"
#include "device/cuda/library.h"
#include "device/kernels/kernel_module.h"

#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace diomp::device::cuda {

/// Memory that must be opened, address range by address range, to each device that reads it. (What
/// cuMemAlloc gives is opened once for the whole context; mapped memory is not.)
class mapped_memory {
public:
    mapped_memory() = default;
    virtual ~mapped_memory() = default;
    mapped_memory(const mapped_memory &) = delete;
    mapped_memory &operator=(const mapped_memory &) = delete;
    /// Opens what is mapped, under the mutex of the context.
    virtual status admit(ordinal device) = 0;
};

/// Any thread.
class context {
public:
    static result<std::shared_ptr<context>> retain(std::shared_ptr<const library> driver,
                                                   ordinal device);
    ~context();
    context(const context &) = delete;
    context &operator=(const context &) = delete;

    [[nodiscard]] const library &driver() const { return *driver_; }
    [[nodiscard]] ordinal device() const { return device_; }

    /// Makes the context the calling thread's own for a scope.
    class current {
    public:
        static result<current> enter(const context &in);
        ~current();
        current(current &&other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
        current &operator=(current &&) = delete;

    private:
        explicit current(const context &of) : of_(&of) {}
        const context *of_;
    };

    /// One of the runtime's kernels. The context is current.
    result<kernel_handle> kernel(const std::string &name);

    /// Lets `reader` use all memory of this device, now and later. Once is enough; more is
    /// harmless.
    status open_to(const context &reader);

    /// Calls `map` with the devices that may read (this one first), and adds the memory to those
    /// that later readers are shown. The mutex keeps a reader from slipping in between.
    status map_for_readers(mapped_memory &owner,
                           function_ref<status(std::span<const ordinal>)> map);
    void forget(mapped_memory &owner);

private:
    context(std::shared_ptr<const library> driver, ordinal device, context_handle handle)
        : driver_(std::move(driver)), device_(device), handle_(handle),
          kernels_("CUDA device " + std::to_string(device)), readers_{device} {}

    std::shared_ptr<const library> driver_;
    ordinal device_;
    context_handle handle_;
    kernels::kernel_module kernels_;
    std::mutex mutex_;                 ///< over the rest; the driver is called under it
    std::vector<ordinal> readers_;     ///< this device first
    std::vector<mapped_memory *> all_; ///< each forgets itself in time
};

} // namespace diomp::device::cuda
