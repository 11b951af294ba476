// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Boxes between ranks that do not map each other.
#include "rma/expectations.h"
#include "support/patterns.h"
#include "support/remote_ranks.h"

#include <array>

namespace {

using namespace diomp;
using namespace diomp::test;
using diomp_test::pattern;

/// Whether the conduit takes all rows at once.
class remote_box : public testing::TestWithParam<bool> {};

TEST_P(remote_box, travels_both_ways) {
    remote_ranks ranks(2, {.takes_rows = GetParam()});
    std::byte *const area = ranks.allocate(64 * 64 * 8);
    std::vector<word> local(64 * 64);
    for (std::size_t i = 0; i < local.size(); ++i) {
        local[i] = i;
    }
    std::array<std::size_t, 2> const volume{10, 3};
    std::array<std::size_t, 2> const there{5, 7};
    std::array<std::size_t, 2> const here{1, 60};
    std::array<std::size_t, 2> const dimensions{64, 64};
    rma::box const shape{8, volume, there, here, dimensions, dimensions};
    expect_path(ranks[0].transfers.boxes().put(world_rank{1}, area, local.data(), shape),
                rma::path::conduit);
    ASSERT_TRUE(ranks[0].transfers.fence().ok());
    auto const *target = reinterpret_cast<const word *>(ranks.at(1, area));
    for (std::size_t row = 0; row < 10; ++row) {
        for (std::size_t column = 0; column < 3; ++column) {
            EXPECT_EQ(target[(row + 5) * 64 + column + 7], (row + 1) * 64 + column + 60);
        }
    }
    EXPECT_EQ(target[4 * 64 + 7], 0u);
    EXPECT_EQ(target[5 * 64 + 10], 0u);
    std::vector<word> back(64 * 64);
    expect_path(ranks[0].transfers.boxes().get(world_rank{1}, area, back.data(), shape),
                rma::path::conduit);
    EXPECT_EQ(back[10 * 64 + 62], local[10 * 64 + 62]);
    EXPECT_EQ(std::count_if(back.begin(), back.end(), [](word each) { return each != 0; }), 30);
    EXPECT_EQ(ranks[0].transport.num_boxes(), GetParam() ? 2 : 0);
}

TEST_P(remote_box, of_four_dimensions_with_different_arrays_on_both_sides) {
    remote_ranks ranks(2, {.takes_rows = GetParam()});
    std::array<std::size_t, 4> const volume{2, 3, 4, 5};
    std::array<std::size_t, 4> const there{1, 0, 2, 3};
    std::array<std::size_t, 4> const here{0, 1, 0, 0};
    std::array<std::size_t, 4> const remote{3, 4, 7, 9};
    std::array<std::size_t, 4> const local{2, 5, 4, 5}; // the two fastest are whole here only
    auto const index = [](auto const &at, auto const &dimensions) {
        std::size_t sum = 0;
        for (std::size_t i = 0; i < at.size(); ++i) {
            sum = sum * dimensions[i] + at[i];
        }
        return sum;
    };
    std::byte *const area = ranks.allocate(std::size_t{3} * 4 * 7 * 9 * 2);
    auto sent = pattern(0, 1, 4, std::size_t{2} * 5 * 4 * 5 * 2);
    rma::box const shape{2, volume, there, here, remote, local};
    expect_path(ranks[0].transfers.boxes().put(world_rank{1}, area, sent.data(), shape),
                rma::path::conduit);
    ASSERT_TRUE(ranks[0].transfers.fence().ok());
    std::vector<std::uint8_t> expected(std::size_t{3} * 4 * 7 * 9 * 2);
    std::vector<std::uint8_t> expected_back(sent.size());
    for (std::size_t i = 0; i < std::size_t{2} * 3 * 4 * 5; ++i) {
        std::array<std::size_t, 4> const at{i / 60, i / 20 % 3, i / 5 % 4, i % 5};
        std::array<std::size_t, 4> far{};
        std::array<std::size_t, 4> near{};
        for (std::size_t k = 0; k < at.size(); ++k) {
            far[k] = at[k] + there[k];
            near[k] = at[k] + here[k];
        }
        std::copy_n(&sent[2 * index(near, local)], 2, &expected[2 * index(far, remote)]);
        std::copy_n(&sent[2 * index(near, local)], 2, &expected_back[2 * index(near, local)]);
    }
    expect_bytes(ranks.at(1, area), expected);
    std::vector<std::uint8_t> back(sent.size());
    expect_path(ranks[0].transfers.boxes().get(world_rank{1}, area, back.data(), shape),
                rma::path::conduit);
    EXPECT_EQ(back, expected_back);
}

TEST_P(remote_box, without_rows_or_in_one_piece_asks_nobody) {
    remote_ranks ranks(2, {.takes_rows = GetParam()});
    std::byte *const area = ranks.allocate(4096);
    std::vector<std::uint8_t> local(4096, 7);
    std::array<std::size_t, 2> const none{0, 0};
    std::array<std::size_t, 2> const nothing{4, 0};
    std::array<std::size_t, 2> const whole{4, 8};
    std::array<std::size_t, 2> const dimensions{64, 8};
    rma::box const empty{8, nothing, none, none, dimensions, dimensions};
    expect_path(ranks[0].transfers.boxes().put(world_rank{1}, area, local.data(), empty),
                rma::path::self);
    rma::box const one_run{8, whole, none, none, dimensions, dimensions};
    expect_path(ranks[0].transfers.boxes().put(world_rank{1}, area, local.data(), one_run),
                rma::path::conduit);
    ASSERT_TRUE(ranks[0].transfers.fence().ok());
    EXPECT_EQ(ranks.at(1, area)[255], std::byte{7});
    EXPECT_EQ(ranks.at(1, area)[256], std::byte{0});
    EXPECT_EQ(ranks[0].transport.num_boxes(), 0);
}

INSTANTIATE_TEST_SUITE_P(rows, remote_box, testing::Bool());

} // namespace
