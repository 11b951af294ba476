// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The arena of a rank in a world of any size, of which only this rank exists.
#include "base/version.h"
#include "launch/placement.h"
#include "support/lone_launcher.h"
#include "transport/arena.h"
#include "transport/arena_geometry.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstring>

namespace diomp::transport {
namespace {

constexpr std::size_t gib = std::size_t{1} << 30;
constexpr std::size_t mib = std::size_t{1} << 20;
constexpr int per_node = 64;
/// 64 ranks on each node but the last one, which has one.
constexpr int large_world = 1563 * per_node + 1;

/// One rank, alone on its node, of a job whose other nodes have `per_node` ranks each. It can be
/// the rank on the last node, or rank 0, for which it makes up what the other nodes publish.
class only_rank final : public test::lone_launcher {
public:
    only_rank(int rank, int size)
        : lone_launcher(rank, size, fmt::format("arena-test-{}-{}", rank, size)) {}
    result<std::string> get(world_rank owner, std::string_view key) override {
        if (key != "node") {
            return lone_launcher::get(owner, key);
        }
        int const last = std::min(info().size, owner.value() + per_node) - 1;
        return fmt::format("{} {}-{}", library_version(), owner.value(), last);
    }
};

/// Not where a runtime in this process has its arena.
std::uint64_t base() { return arena::default_base() + arena::max_span(); }

/// The arena of the last rank: what rank 0 would publish is made by an arena of rank 0 first.
result<std::unique_ptr<arena>> arena_of_last(int size, const arena_options &options) {
    only_rank first(0, size);
    {
        auto made = arena::create(first, options);
        DIOMP_TRY(made);
    }
    only_rank last(size - 1, size);
    for (const char *const key : {"window", "placement.0"}) {
        auto value = first.get(world_rank{0}, key);
        DIOMP_TRY(value);
        DIOMP_TRY(last.put(key, value.value()));
    }
    return arena::create(last, options);
}

TEST(arena, a_node_of_512_gib_has_8_gib_for_each_of_64_ranks_in_a_job_of_100000) {
    auto made = arena_of_last(
        large_world, {.base = base(), .usable_bytes = 8 * gib + 64 * mib, .control_bytes = 4096});
    ASSERT_TRUE(made.ok()) << made.failure().message();
    arena const &job = *made.value();
    EXPECT_EQ(job.num_slots(), per_node);
    EXPECT_GE(job.usable_bytes(), 8 * gib);
    EXPECT_TRUE(job.shares_slots());
    EXPECT_EQ(job.span_bytes(), per_node * job.slot_bytes());
    EXPECT_LE(job.span_bytes(), arena::max_span());

    // An address is decoded with the number of the target on its node.
    for (int const rank : {0, 1, 63, 64, 65, 50'000, 100'031, 100'032}) {
        world_rank const target{rank};
        EXPECT_EQ(job.slot_number(target), rank % per_node);
        EXPECT_EQ(job.tables().nodes[target.index()], rank / per_node);
        EXPECT_EQ(job.tables().ranks[target.index()], target);
        auto const slot = reinterpret_cast<std::uintptr_t>(job.slot(target));
        EXPECT_EQ(slot, base() + static_cast<std::uintptr_t>(rank % per_node) * job.slot_bytes());
    }
    EXPECT_TRUE(job.share_slot(world_rank{0}, world_rank{64}));
    EXPECT_FALSE(job.share_slot(world_rank{0}, world_rank{65}));
    EXPECT_FALSE(job.share_slot(world_rank{64}, world_rank{64}));
    EXPECT_EQ(job.rank_here(0), world_rank{large_world - 1});
    EXPECT_EQ(job.rank_here(1), std::nullopt);

    // The own slot has memory, up to its end.
    std::byte *const own = job.slot(world_rank{large_world - 1});
    std::memset(own, 1, 100);
    std::memset(own + job.usable_bytes() - 100, 2, 100);
    EXPECT_GE(job.resident_bytes(local_rank{0}), 8192U);
    EXPECT_LT(job.resident_bytes(local_rank{0}), mib);
}

TEST(arena, the_default_segment_does_not_depend_on_the_size_of_the_job) {
    only_rank small(0, per_node + 1);
    only_rank large(0, large_world);
    for (bool const with_devices : {false, true}) {
        arena_options const options{.choose_device_bytes = with_devices};
        auto const of_small = agree_geometry(small, options);
        auto const of_large = agree_geometry(large, options);
        ASSERT_TRUE(of_small.ok() && of_large.ok());
        EXPECT_EQ(of_large.value().usable_bytes, of_small.value().usable_bytes);
        EXPECT_EQ(of_large.value().slot_bytes(), of_small.value().slot_bytes());
        EXPECT_EQ(of_large.value().num_slots, per_node);
    }
}

TEST(arena, the_tables_of_the_ranks_take_at_most_16_bytes_each) {
    auto made =
        arena_of_last(large_world, {.base = base(), .usable_bytes = mib, .control_bytes = 4096});
    ASSERT_TRUE(made.ok()) << made.failure().message();
    node_tables const &tables = made.value()->tables();
    std::size_t const each =
        sizeof(tables.ranks[0]) + sizeof(tables.nodes[0]) + sizeof(tables.slot_numbers[0]);
    EXPECT_LE(each, 16U);
    EXPECT_EQ(tables.slot_numbers.size(), static_cast<std::size_t>(large_world));
}

TEST(arena, slots_that_do_not_fit_are_an_error_that_names_the_ranks_of_a_node) {
    auto const made = arena_of_last(
        large_world, {.base = base(), .usable_bytes = arena::max_span() / per_node + 1});
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.failure().code(), OMPX_ERR_NOMEM);
    EXPECT_NE(made.failure().message().find("64 ranks on a node"), std::string::npos);
    EXPECT_NE(made.failure().remedy().find("DIOMP_SEGMENT_SIZE"), std::string::npos);
}

TEST(arena, every_rank_has_a_place_of_its_own_if_that_is_asked_for) {
    only_rank first(0, 5);
    auto const made = arena::create(
        first,
        {.base = base(), .usable_bytes = mib, .control_bytes = 4096, .one_slot_per_rank = true});
    ASSERT_TRUE(made.ok()) << made.failure().message();
    arena const &job = *made.value();
    EXPECT_EQ(job.num_slots(), 5);
    EXPECT_FALSE(job.shares_slots());
    EXPECT_EQ(job.slot(world_rank{4}) - job.slot(world_rank{0}),
              static_cast<std::ptrdiff_t>(4 * job.slot_bytes()));
    EXPECT_EQ(job.rank_here(3), world_rank{3});
    EXPECT_EQ(job.rank_here(5), std::nullopt);
}

} // namespace
} // namespace diomp::transport
