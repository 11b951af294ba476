// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Regions on the stand-in for CUDA's driver, whose memory processors load here: they begin and end
// as those of libomptarget, and threads of the test run the code of GPUs in them.
#pragma once

#include "diomp/device_calls.h"
#include "offload/accelerated.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace accelerated {

/// A region on device 0: its endpoint.
class region {
public:
    region() {
        diomp_offload_request const device{scripted::used().plugin, 0, 0, 0, nullptr};
        own_ = reinterpret_cast<diomp_endpoint *>(
            diomp_offload_table()->begin_region(&device)); // NOLINT(performance-no-int-to-ptr)
    }
    ~region() { diomp_offload_table()->end_region(0); }
    region(const region &) = delete;
    region &operator=(const region &) = delete;

    [[nodiscard]] diomp_endpoint *own() const { return own_; }
    template <typename T>
    [[nodiscard]] int put(int rank, T *dst, const T &value) const {
        return diomp_device_put(own_, DIOMP_CALL_PUT, rank, dst, &value, sizeof(value), {0, 1},
                                nullptr);
    }
    template <typename T>
    [[nodiscard]] int get(T &value, int rank, const T *src) const {
        return diomp_device_get(own_, DIOMP_CALL_GET, &value, rank, src, sizeof(value), {0, 1},
                                nullptr);
    }

private:
    diomp_endpoint *own_;
};

/// Memory of device 0.
template <typename T>
class on_device {
public:
    explicit on_device(std::size_t count,
                       std::uintptr_t allocator = OMPX_SYMMETRIC_MEM_ALLOC_VALUE_)
        : at_(static_cast<T *>(ompx_target_alloc(count * sizeof(T), 0, allocator))) {
        EXPECT_NE(at_, nullptr);
    }
    ~on_device() { EXPECT_EQ(ompx_target_free(at_, 0), 0); }
    on_device(const on_device &) = delete;
    on_device &operator=(const on_device &) = delete;

    [[nodiscard]] T *at() const { return at_; }

private:
    T *at_;
};

/// Symmetric host memory.
template <typename T>
class on_hosts {
public:
    explicit on_hosts(std::size_t count)
        : at_(static_cast<T *>(ompx_alloc(count * sizeof(T), 0, OMPX_MEM_SYMMETRIC))) {
        for (std::size_t i = 0; i < count; ++i) {
            at_[i] = T{};
        }
    }
    ~on_hosts() { EXPECT_EQ(ompx_free(at_), 0); }
    on_hosts(const on_hosts &) = delete;
    on_hosts &operator=(const on_hosts &) = delete;
    [[nodiscard]] T *at() const { return at_; }

private:
    T *at_;
};

} // namespace accelerated
