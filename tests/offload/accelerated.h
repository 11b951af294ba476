// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What tests of accelerators between ranks share.
#pragma once

#include "offload/scripted_openmp.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace accelerated {

using values = std::vector<std::int32_t>;

inline int me() { return ompx_rank_num(); }
inline int ranks() { return ompx_num_ranks(); }
inline int next() { return (me() + 1) % ranks(); }
inline int previous() { return (me() + ranks() - 1) % ranks(); }
constexpr int host = -1;

inline values pattern(int of, std::size_t count) {
    values made(count);
    std::iota(made.begin(), made.end(), of * 100'000'000);
    return made;
}

inline void meet() {
    ASSERT_EQ(ompx_fence(), 0);
    ASSERT_EQ(ompx_barrier(), 0);
}

/// Mapped on a device as long as it lives.
class mapped {
public:
    mapped(std::size_t count, int device) : array_(count), device_(device) {
        address_ = scripted::map(array_.data(), array_.size() * sizeof(array_[0]), device);
    }
    ~mapped() { scripted::unmap(array_.data(), device_); }
    mapped(const mapped &) = delete;
    mapped &operator=(const mapped &) = delete;

    [[nodiscard]] std::int32_t *host_pointer() { return array_.data(); }
    [[nodiscard]] void *device_pointer() const { return address_; }
    [[nodiscard]] values on_device() const {
        return scripted::read<std::int32_t>(address_, array_.size());
    }
    void set_on_device(const values &to) const { scripted::write(address_, to); }

private:
    values array_;
    int device_;
    void *address_;
};

} // namespace accelerated
