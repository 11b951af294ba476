// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory of a device, or of one of the vendor's stand-in, for networks that have to know it when
// they are made: what the runtime does for them, without the runtime.
#pragma once

#include "device/device.h"
#include "transport/create.h"

#include <memory>
#include <vector>

namespace diomp_test {

class device_ranges {
public:
    /// DIOMP_TEST_DEVICE_RANGES: cuda or hip. Unset: there are none. Every second rank has none,
    /// unless DIOMP_TEST_DEVICES says "all".
    explicit device_ranges(int rank);
    ~device_ranges();
    device_ranges(const device_ranges &) = delete;
    device_ranges &operator=(const device_ranges &) = delete;

    [[nodiscard]] bool are_tested() const { return kind_ != diomp::transport::memory_kind::host; }
    [[nodiscard]] diomp::transport::memory_kind kind() const { return kind_; }
    static constexpr std::size_t num_bytes = std::size_t{32} << 20;

    /// conduit_options::make_device_ranges.
    std::vector<diomp::transport::device_range> make();
    /// nullptr: the network has not asked, or this rank has none.
    [[nodiscard]] std::byte *base() const { return memory_ ? memory_->base() : nullptr; }
    /// Of the same device, which the network does not know.
    [[nodiscard]] std::byte *unknown() const { return unknown_ ? unknown_->base() : nullptr; }
    /// By the vendor's library: processors need not load the memory. Blocks.
    void copy(void *destination, const void *source, std::size_t nbytes) const;

private:
    diomp::transport::memory_kind kind_ = diomp::transport::memory_kind::host;
    bool has_one_ = false;
    diomp::device::device_id device_{0};
    std::unique_ptr<diomp::device::backend> vendor_;
    std::unique_ptr<diomp::device::memory> memory_;
    std::unique_ptr<diomp::device::memory> unknown_;
};

} // namespace diomp_test
