// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A device's primary context, which libomptarget's CUDA plugin and CUDA's runtime also use, so
// their addresses are valid here. Retained from the first use of a device until the backend and all
// objects that it returned for the device are destroyed.
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

/// Memory whose address ranges must be opened one by one to each device that reads them. (Memory of
/// cuMemAlloc is opened for the whole context; mapped memory is not.)
class mapped_memory {
public:
    mapped_memory() = default;
    virtual ~mapped_memory() = default;
    mapped_memory(const mapped_memory &) = delete;
    mapped_memory &operator=(const mapped_memory &) = delete;
    /// Opens the mapped memory to a device. Called under the mutex of the context.
    virtual status grant_access(ordinal device) = 0;
};

/// Thread-safe.
class context {
public:
    static result<std::shared_ptr<context>> retain(std::shared_ptr<const library> driver,
                                                   ordinal device);
    ~context();
    context(const context &) = delete;
    context &operator=(const context &) = delete;

    [[nodiscard]] const library &driver() const { return *driver_; }
    [[nodiscard]] ordinal device() const { return device_; }

    /// Makes the context current in the calling thread for a scope.
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

    /// Finds one of the runtime's kernels. The context must be current.
    result<kernel_handle> kernel(const std::string &name);
    /// Finds the kernel of queue::update, which is in a module of its own: it is loaded before
    /// regions run that wait, and takes the driver some milliseconds to compile, all kernels a
    /// second. The context must be current.
    result<kernel_handle> update_kernel();

    /// Enables peer access of `reader` to all memory of this device, including later allocations.
    /// Idempotent.
    status open_to(const context &reader);

    /// Calls `map` with the devices that may read (this one first), and registers the memory for
    /// later readers. The mutex keeps a reader from being added in between.
    status map_for_readers(mapped_memory &owner,
                           function_ref<status(std::span<const ordinal>)> map);
    void remove_mapped(mapped_memory &owner);

private:
    context(std::shared_ptr<const library> driver, ordinal device, context_handle handle)
        : driver_(std::move(driver)), device_(device), handle_(handle),
          kernels_("CUDA device " + std::to_string(device)),
          updates_("CUDA device " + std::to_string(device)), readers_{device} {}

    std::shared_ptr<const library> driver_;
    ordinal device_;
    context_handle handle_;
    kernels::kernel_module kernels_;
    kernels::kernel_module updates_;
    std::mutex mutex_;             ///< guards the members below; the driver is called under it
    std::vector<ordinal> readers_; ///< this device first
    std::vector<mapped_memory *> mapped_; ///< each removes itself before it is destroyed
};

} // namespace diomp::device::cuda
