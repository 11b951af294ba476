// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the tests on a real device share.
#pragma once

#include "device/device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

namespace diomp::device::real {

inline constexpr std::size_t mebibyte = std::size_t{1} << 20;
inline constexpr device_id zero = device_id(0);

/// Made by main before the tests: they share it, since a process starts a driver once.
inline backend *cuda = nullptr;

using words = std::vector<std::uint64_t>;

inline words pattern(std::size_t count, std::uint64_t seed) {
    words made(count);
    std::iota(made.begin(), made.end(), seed << 32);
    return made;
}

inline std::size_t bytes(const words &of) { return of.size() * sizeof(std::uint64_t); }

inline double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline status copy_and_wait(backend &of, void *dst, const void *src, std::size_t nbytes) {
    auto made = of.make_queue(zero);
    DIOMP_TRY(made);
    DIOMP_TRY(made.value()->copy(dst, src, nbytes));
    return made.value()->wait();
}

inline void expect_ok(const status &outcome) {
    EXPECT_TRUE(outcome.ok()) << outcome.failure().message();
}

/// A quarter of what the device has free, 256 MiB at most.
inline std::size_t large() {
    auto const found = cuda->describe(zero);
    return std::min(found.value().free_bytes / 4, 256 * mebibyte) / (4 * mebibyte) * 4 * mebibyte;
}

inline std::unique_ptr<memory> reserve(std::size_t max_bytes, std::size_t committed) {
    auto reserved = cuda->reserve(zero, max_bytes);
    EXPECT_TRUE(reserved.ok()) << reserved.failure().message();
    auto made = reserved.take();
    expect_ok(made->commit(0, committed));
    return made;
}

} // namespace diomp::device::real
