// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a segment on a device with memory of its own lies in: a reservation that gets physical
// memory where and when something is allocated.
#pragma once

#include "offload/accelerators.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace diomp::offload {

/// Any thread.
class segment_memory {
public:
    /// `size_bytes` 0: as much as is useful. That depends on the device and on `num_sharing`, the
    /// ranks of the node, only, so that it is the same on ranks with devices of the same sort.
    static result<std::unique_ptr<segment_memory>> create(const accelerator &on,
                                                          std::size_t size_bytes, int num_sharing);
    /// With physical memory behind all of it. It is kept until the process ends.
    static result<std::unique_ptr<segment_memory>>
    create_whole(const accelerator &on, std::size_t size_bytes, int num_sharing);

    [[nodiscard]] const accelerator &on() const { return on_; }
    [[nodiscard]] std::byte *base() const { return memory_->base(); }
    [[nodiscard]] std::size_t size_bytes() const { return memory_->reserved_bytes(); }
    [[nodiscard]] std::size_t committed_bytes() const { return memory_->committed_bytes(); }

    [[nodiscard]] bool is_kept() const { return is_kept_; }

    /// Gets memory behind [offset, offset + nbytes). It is kept from then on: other processes have
    /// it mapped. OMPX_ERR_NOMEM: the device is full.
    status commit(std::uint64_t offset, std::size_t nbytes);
    /// As memory::share, of at most `max_parts` parts.
    result<device::shared_handle> share(std::size_t num_known, std::size_t max_parts);

private:
    segment_memory(const accelerator &on, std::unique_ptr<device::memory> memory)
        : on_(on), memory_(std::move(memory)) {}

    const accelerator &on_;
    std::mutex mutex_; ///< over memory_'s changes; the driver is called under it
    std::unique_ptr<device::memory> memory_;
    bool is_kept_ = false;
};

} // namespace diomp::offload
