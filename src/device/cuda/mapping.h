// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Owners of resources of CUDA's virtual memory management. Their destructors need the context to be
// current.
#pragma once

#include "device/cuda/context.h"

#include <memory>
#include <span>
#include <utility>

namespace diomp::device::cuda {

/// A reserved range of addresses without memory.
class address_range {
public:
    /// At `preferred` if the driver can; 0: anywhere.
    static result<address_range> reserve(const library &driver, std::size_t size_bytes,
                                         std::size_t alignment, address preferred = 0);
    address_range(address_range &&other) noexcept
        : driver_(other.driver_), base_(std::exchange(other.base_, 0)),
          size_bytes_(other.size_bytes_) {}
    address_range &operator=(address_range &&) = delete;
    ~address_range();

    [[nodiscard]] address base() const { return base_; }
    [[nodiscard]] std::size_t size_bytes() const { return size_bytes_; }

private:
    address_range(const library &driver, address base, std::size_t size_bytes)
        : driver_(&driver), base_(base), size_bytes_(size_bytes) {}

    const library *driver_;
    address base_;
    std::size_t size_bytes_;
};

/// Physical memory and its mapping.
class physical_memory {
public:
    static result<physical_memory> create(const library &driver, std::size_t size_bytes,
                                          const allocation_properties &of);
    /// Imports memory of another process. The descriptor stays with the caller.
    static result<physical_memory> import(const library &driver, int fd, std::size_t size_bytes);
    physical_memory(physical_memory &&other) noexcept
        : driver_(other.driver_), physical_(std::exchange(other.physical_, 0)),
          base_(std::exchange(other.base_, 0)), size_bytes_(other.size_bytes_) {}
    physical_memory &operator=(physical_memory &&) = delete;
    ~physical_memory();

    status map(address to);
    /// Grants devices access to the mapping. A new mapping is not accessible to any device.
    status grant_access(std::span<const ordinal> devices);

    [[nodiscard]] handle physical() const { return physical_; }
    [[nodiscard]] address base() const { return base_; } ///< 0: not mapped
    [[nodiscard]] std::size_t size_bytes() const { return size_bytes_; }

private:
    physical_memory(const library &driver, handle physical, std::size_t size_bytes)
        : driver_(&driver), physical_(physical), size_bytes_(size_bytes) {}

    const library *driver_;
    handle physical_;
    address base_ = 0;
    std::size_t size_bytes_;
};

} // namespace diomp::device::cuda
