// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The memory of a segment on an accelerator: a reservation that is committed as allocations need
// it.
#pragma once

#include "offload/accelerators.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace diomp::offload {

/// Thread-safe.
class segment_memory {
public:
    /// Reserves memory. `size_bytes` 0: chosen by the device and by `num_sharing`, the ranks of the
    /// node, only, so that ranks with devices of the same model get the same size. At the address
    /// `preferred` if the device can; 0: anywhere.
    static result<std::unique_ptr<segment_memory>> create(const accelerator &on,
                                                          std::size_t size_bytes, int num_sharing,
                                                          std::uint64_t preferred = 0);
    /// Reserves and commits all of the memory. It stays allocated until the process ends.
    static result<std::unique_ptr<segment_memory>>
    create_committed(const accelerator &on, std::size_t size_bytes, int num_sharing);

    [[nodiscard]] const accelerator &on() const { return on_; }
    [[nodiscard]] std::byte *base() const { return memory_->base(); }
    [[nodiscard]] std::size_t size_bytes() const { return memory_->reserved_bytes(); }
    [[nodiscard]] std::size_t committed_bytes() const { return memory_->committed_bytes(); }

    /// Whether memory was committed since the last call; true once for each growth.
    [[nodiscard]] bool take_growth() {
        std::size_t const now = committed_bytes();
        return announced_bytes_.exchange(now, std::memory_order_acq_rel) != now;
    }

    [[nodiscard]] bool is_permanent() const { return is_permanent_; }

    /// Commits [offset, offset + nbytes). It stays committed, since other processes have it mapped.
    /// OMPX_ERR_NOMEM: the device is full.
    status commit(std::uint64_t offset, std::size_t nbytes);
    /// Exports extents, see device::memory::share.
    result<device::shared_handle> share(std::size_t num_known, std::size_t max_extents);

private:
    segment_memory(const accelerator &on, std::unique_ptr<device::memory> memory)
        : on_(on), memory_(std::move(memory)) {}

    const accelerator &on_;
    std::mutex mutex_; ///< guards changes of memory_; the driver is called under it
    std::unique_ptr<device::memory> memory_;
    std::atomic<std::size_t> announced_bytes_{0}; ///< committed bytes at the last take_growth()
    bool is_permanent_ = false;
};

} // namespace diomp::offload
