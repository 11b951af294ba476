// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Atomic operations by the network alone.
#include "rma/expectations.h"
#include "support/patterns.h"
#include "support/remote_ranks.h"

#include <thread>

namespace {

using namespace diomp;
using namespace diomp::test;
using diomp_test::pattern;

/// Own words and others', signals and operations that the network does not know: all go by it, or
/// some would be lost.
TEST(remote, atomics_of_the_network_alone_are_never_mixed_with_processors) {
    remote_ranks ranks(3, {.has_atomics = true});
    auto *const cells = reinterpret_cast<word *>(ranks.allocate(64));
    auto *const sum = reinterpret_cast<double *>(cells + 1);
    auto *const largest = reinterpret_cast<std::int32_t *>(cells + 2);
    auto *const bits = reinterpret_cast<std::uint32_t *>(cells + 3);
    constexpr int rounds = 300;
    ranks.run([&](int me) {
        auto const body = [&] {
            auto &transfers = ranks[me].transfers;
            auto const at_0 = [&](auto *cell, auto operand, ompx_type_t type, ompx_op_t op) {
                auto old = operand;
                ASSERT_TRUE(transfers.atomics()
                                .fetch(world_rank{0}, ranks.at(me, cell), &operand,
                                       op == OMPX_SUM ? nullptr : &old, type, op)
                                .ok());
            };
            for (int i = 0; i < rounds; ++i) {
                ASSERT_TRUE(transfers.signals()
                                .put(world_rank{0}, nullptr, nullptr, 0, ranks.at(me, cells), 1,
                                     OMPX_SIGNAL_ADD)
                                .ok());
                at_0(cells, word{1}, OMPX_UINT64, OMPX_SUM);
                at_0(sum, 0.5, OMPX_DOUBLE, OMPX_SUM);
                at_0(largest, std::int32_t{i * 3 + me - 1000}, OMPX_INT32, OMPX_MAX);
                at_0(bits, std::uint32_t{1} << (i % 32), OMPX_UINT32, OMPX_BXOR);
            }
        };
        if (me == 0) {
            *largest = -5000;
        }
        ranks.meet();
        std::thread other(body);
        body();
        other.join();
        ASSERT_TRUE(ranks[me].transfers.fence().ok());
        ranks.meet();
    });
    EXPECT_EQ(load(cells), word{3} * 2 * 2 * rounds);
    EXPECT_EQ(*sum, 3 * 2 * 0.5 * rounds);
    EXPECT_EQ(*largest, (rounds - 1) * 3 + 2 - 1000);
    EXPECT_EQ(*bits, 0u); // an even number of times each
    // A signal follows its data.
    auto const data = pattern(0, 1, 9, 20000);
    std::byte *const area = ranks.allocate(data.size());
    expect_path(ranks[0].transfers.signals().put(world_rank{1}, area, data.data(), data.size(),
                                                 cells, 7, OMPX_SIGNAL_SET),
                rma::path::conduit);
    EXPECT_EQ(load(ranks.at(1, cells)), 7u);
    expect_bytes(ranks.at(1, area), data);
}

} // namespace
