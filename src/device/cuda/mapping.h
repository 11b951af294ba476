// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Owners of what CUDA's virtual memory management hands out. Their destructors want the context to
// be current.
#pragma once

#include "device/cuda/context.h"

#include <memory>
#include <span>
#include <utility>

namespace diomp::device::cuda {

/// A range of addresses with nothing behind it.
class address_range {
public:
    static result<address_range> reserve(const library &driver, std::size_t size_bytes,
                                         std::size_t alignment);
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

/// Physical memory, and where it is mapped.
class chunk {
public:
    static result<chunk> create(const library &driver, std::size_t size_bytes,
                                const allocation_properties &of);
    /// Of another process. The descriptor stays the caller's.
    static result<chunk> import(const library &driver, int fd, std::size_t size_bytes);
    chunk(chunk &&other) noexcept
        : driver_(other.driver_), physical_(std::exchange(other.physical_, 0)),
          base_(std::exchange(other.base_, 0)), size_bytes_(other.size_bytes_) {}
    chunk &operator=(chunk &&) = delete;
    ~chunk();

    status map(address to);
    /// Opens what is mapped to devices. A mapping is closed to all at first.
    status admit(std::span<const ordinal> devices);

    [[nodiscard]] handle physical() const { return physical_; }
    [[nodiscard]] address base() const { return base_; } ///< 0: not mapped
    [[nodiscard]] std::size_t size_bytes() const { return size_bytes_; }

private:
    chunk(const library &driver, handle physical, std::size_t size_bytes)
        : driver_(&driver), physical_(physical), size_bytes_(size_bytes) {}

    const library *driver_;
    handle physical_;
    address base_ = 0;
    std::size_t size_bytes_;
};

} // namespace diomp::device::cuda
