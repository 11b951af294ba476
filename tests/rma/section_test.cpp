// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Strided sections of any sign between ranks that do not map each other, and within one, against
// loops over the elements.
#include "rma/box.h"
#include "rma/expectations.h"
#include "support/patterns.h"
#include "support/remote_ranks.h"

#include <array>
#include <cstring>
#include <map>
#include <random>

namespace {

using namespace diomp;
using namespace diomp::test;
using diomp_test::pattern;

constexpr std::size_t area_bytes = 16384;

/// One side of a section: strides, and where its first element is in an area of its own.
struct side {
    std::vector<std::ptrdiff_t> strides;
    std::size_t first = 0;
    std::size_t extent = 0; ///< from the lowest to the end of the highest element
};

struct drawn {
    std::size_t element_size = 1;
    std::vector<std::size_t> counts;
    side remote;
    side local;

    [[nodiscard]] rma::section shape() const {
        return {element_size, counts, remote.strides, local.strides};
    }
};

/// Dimensions do not overlap, but their strides need not divide each other.
side draw_side(std::mt19937 &from, std::size_t element_size,
               const std::vector<std::size_t> &counts) {
    side made;
    std::size_t span = element_size;
    std::ptrdiff_t lowest = 0;
    for (std::size_t const count : counts) {
        auto const stride = static_cast<std::ptrdiff_t>(span + from() % 3 * (from() % 7));
        bool const backwards = from() % 2 == 0;
        made.strides.push_back(backwards ? -stride : stride);
        std::ptrdiff_t const reach = static_cast<std::ptrdiff_t>(count - 1) * stride;
        lowest -= backwards ? reach : 0;
        span += static_cast<std::size_t>(reach);
    }
    made.first = static_cast<std::size_t>(-lowest);
    made.extent = span;
    return made;
}

drawn draw_section(std::mt19937 &from) {
    drawn made;
    made.element_size = std::array<std::size_t, 4>{1, 4, 8, 12}[from() % 4];
    std::size_t const num_dims = from() % 5;
    for (std::size_t i = 0; i < num_dims; ++i) {
        made.counts.push_back(1 + from() % 4);
    }
    made.remote = draw_side(from, made.element_size, made.counts);
    made.local = draw_side(from, made.element_size, made.counts);
    return made;
}

/// f(remote, local) with the places of each element in the areas.
template <typename F>
void for_each_element(const drawn &section, F &&f) {
    std::size_t total = 1;
    for (std::size_t const count : section.counts) {
        total *= count;
    }
    for (std::size_t i = 0; i < total; ++i) {
        auto remote = static_cast<std::ptrdiff_t>(section.remote.first);
        auto local = static_cast<std::ptrdiff_t>(section.local.first);
        std::size_t rest = i;
        for (std::size_t d = 0; d < section.counts.size(); ++d) {
            auto const index = static_cast<std::ptrdiff_t>(rest % section.counts[d]);
            rest /= section.counts[d];
            remote += index * section.remote.strides[d];
            local += index * section.local.strides[d];
        }
        f(static_cast<std::size_t>(remote), static_cast<std::size_t>(local));
    }
}

TEST(box_walk, of_a_section_meets_every_element_once) {
    std::mt19937 from(1);
    for (int round = 0; round < 2000; ++round) {
        drawn const section = draw_section(from);
        auto const made = rma::box_walk::make(section.shape());
        ASSERT_TRUE(made.ok());
        rma::box_walk const &walk = made.value();
        EXPECT_EQ(-walk.remote_shift(), static_cast<std::ptrdiff_t>(section.remote.first));
        EXPECT_EQ(-walk.local_shift(), static_cast<std::ptrdiff_t>(section.local.first));
        EXPECT_EQ(walk.remote_extent(), section.remote.extent);
        EXPECT_EQ(walk.local_extent(), section.local.extent);
        std::map<std::size_t, std::size_t> expected;
        for_each_element(section, [&](std::size_t remote, std::size_t local) {
            for (std::size_t i = 0; i < section.element_size; ++i) {
                expected.emplace(remote + i, local + i);
            }
        });
        std::map<std::size_t, std::size_t> found;
        for (rma::run const &each : walk.runs()) {
            for (std::size_t i = 0; i < each.nbytes; ++i) {
                EXPECT_TRUE(found.emplace(each.remote + i, each.local + i).second);
            }
        }
        EXPECT_EQ(found, expected);
    }
}

TEST(box_walk, of_an_empty_section_is_empty) {
    std::array<std::size_t, 2> const counts{3, 0};
    std::array<std::ptrdiff_t, 2> const strides{8, -24};
    auto const made = rma::box_walk::make(rma::section{8, counts, strides, strides});
    ASSERT_TRUE(made.ok());
    EXPECT_TRUE(made.value().empty());
}

/// Whether the conduit takes all rows at once.
class remote_section : public testing::TestWithParam<bool> {};

TEST_P(remote_section, travels_both_ways) {
    remote_ranks ranks(2, {.takes_rows = GetParam()});
    std::byte *const area = ranks.allocate(area_bytes);
    std::mt19937 from(2);
    for (int round = 0; round < 200; ++round) {
        drawn const section = draw_section(from);
        ASSERT_LE(section.remote.extent, area_bytes);
        auto local = pattern(0, 1, round, section.local.extent);
        auto const before = pattern(1, 0, round, section.remote.extent);
        std::memcpy(ranks.at(1, area), before.data(), before.size());
        auto expected = before;
        auto expected_back = std::vector<std::uint8_t>(local.size());
        for_each_element(section, [&](std::size_t there, std::size_t here) {
            std::copy_n(&local[here], section.element_size, &expected[there]);
            std::copy_n(&local[here], section.element_size, &expected_back[here]);
        });
        auto *const remote = area + section.remote.first;
        expect_path(ranks[0].transfers.boxes().put(world_rank{1}, remote,
                                                   &local[section.local.first], section.shape()),
                    rma::path::conduit);
        ASSERT_TRUE(ranks[0].transfers.fence().ok());
        expect_bytes(ranks.at(1, area), expected);
        std::vector<std::uint8_t> back(local.size());
        expect_path(ranks[0].transfers.boxes().get(world_rank{1}, remote,
                                                   &back[section.local.first], section.shape()),
                    rma::path::conduit);
        EXPECT_EQ(back, expected_back);
    }
    EXPECT_EQ(ranks[0].transport.num_boxes() > 0, GetParam());
}

INSTANTIATE_TEST_SUITE_P(rows, remote_section, testing::Bool());

} // namespace
