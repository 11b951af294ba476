// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the tests of transfers to remote ranks expect.
#pragma once

#include "rma/atomics.h"
#include "rma/blocking_transfers.h"
#include "rma/box.h"
#include "rma/box_transfers.h"
#include "rma/event.h"
#include "rma/nonblocking_transfers.h"
#include "rma/options.h"
#include "rma/rma.h"
#include "rma/signals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace diomp::test {

using word = std::uint64_t;

inline void expect_bytes(const std::byte *found, const std::vector<std::uint8_t> &expected) {
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(),
                           reinterpret_cast<const std::uint8_t *>(found)));
}

inline void expect_path(const result<rma::path> &moved, rma::path expected) {
    ASSERT_TRUE(moved.ok()) << moved.failure().message();
    EXPECT_EQ(moved.value(), expected);
}

inline word load(const word *cell) { return __atomic_load_n(cell, __ATOMIC_ACQUIRE); }

} // namespace diomp::test
