// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Stages of the members of a node: what one holds may be read until the next meeting, wherever in
// its room it lies.
#include "support/thread_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace diomp::group {
namespace {

using test::thread_groups;

constexpr sync::call_signature any{.what = sync::operation::bcast};
constexpr std::size_t kib = 1024;
constexpr std::size_t stage_buffer_bytes = 64 * kib;
constexpr std::size_t room_bytes = 200 * kib;

std::byte mark(std::size_t member, int round) {
    return static_cast<std::byte>(member * 100 + static_cast<std::size_t>(round % 97));
}

bool is_filled(const std::byte *from, std::size_t nbytes, std::byte with) {
    return std::all_of(from, from + nbytes, [with](std::byte each) { return each == with; });
}

/// Every member fills its next stage before it has read the others' last ones. All draw the same
/// sizes. Returns where the caller's stages of the largest size were.
std::set<std::byte *> fill_and_read(local_group &local_members, int rounds) {
    std::set<std::byte *> places;
    std::mt19937 random(7);
    std::size_t last = 0;
    for (int round = 0; round <= rounds; ++round) {
        std::size_t const nbytes =
            random() % 2 == 0 ? local_members.stage_buffers().buffer_bytes()
                              : 1 + random() % local_members.stage_buffers().buffer_bytes();
        if (round < rounds) {
            std::byte *const own = local_members.next_stage_buffer(nbytes);
            std::fill_n(own, nbytes, mark(local_members.self().index(), round));
            if (nbytes == local_members.stage_buffers().buffer_bytes()) {
                places.insert(own);
            }
        }
        for (std::size_t member = 0; round > 0 && member < local_members.size(); ++member) {
            EXPECT_TRUE(is_filled(local_members.stage_buffer_of(member, last), last,
                                  mark(member, round - 1)))
                << "round " << round << ", member " << member;
        }
        EXPECT_TRUE(local_members.barrier().arrive_and_wait(any).ok());
        last = nbytes;
    }
    return places;
}

TEST(stages, small_ones_stay_where_they_are) {
    thread_groups job(3);
    job.run([&](world_rank self) {
        local_group &local_members = job.registry(self).world().local_members();
        EXPECT_EQ(fill_and_read(local_members, 40).size(), 2U);
    });
}

TEST(stages, large_ones_wander_through_their_rooms) {
    thread_groups job(3);
    job.run([&](world_rank self) {
        local_group &local_members = job.registry(self).world().local_members();
        ASSERT_TRUE(local_members.stage_buffers().may_grow());
        ASSERT_TRUE(local_members.grow_stage_buffers(any, stage_buffer_bytes, room_bytes).ok());
        EXPECT_FALSE(local_members.stage_buffers().may_grow());
        EXPECT_EQ(local_members.stage_buffers().buffer_bytes(), stage_buffer_bytes);
        EXPECT_EQ(fill_and_read(local_members, 100).size(), 2 * (room_bytes / stage_buffer_bytes));
        EXPECT_EQ(local_members.next_stage_buffer(stage_memory::max_fixed_bytes),
                  local_members.next_stage_buffer(1));
    });
}

TEST(stages, rooms_are_as_large_as_the_smallest) {
    thread_groups job(3);
    job.run([&](world_rank self) {
        // Rank 1 has space for two stages and no more.
        auto &space = job.space(self);
        if (self.value() == 1) {
            std::uint64_t last = 0;
            while (auto const block = space.allocate(2 * stage_buffer_bytes + 16 * kib)) {
                last = *block;
            }
            space.release(last);
        }
        local_group &local_members = job.registry(self).world().local_members();
        ASSERT_TRUE(local_members.grow_stage_buffers(any, stage_buffer_bytes, 2 * room_bytes).ok());
        EXPECT_EQ(local_members.stage_buffers().buffer_bytes(), stage_buffer_bytes);
        EXPECT_EQ(fill_and_read(local_members, 60).size(), 2U);
    });
}

TEST(stages, stay_small_if_one_member_has_no_space) {
    thread_groups job(3);
    job.run([&](world_rank self) {
        while (self.value() == 2 && job.space(self).allocate(stage_buffer_bytes)) {
        }
        local_group &local_members = job.registry(self).world().local_members();
        std::size_t const before = local_members.stage_buffers().buffer_bytes();
        ASSERT_TRUE(local_members.grow_stage_buffers(any, stage_buffer_bytes, room_bytes).ok());
        EXPECT_EQ(local_members.stage_buffers().buffer_bytes(), before);
        EXPECT_FALSE(local_members.stage_buffers().may_grow());
        EXPECT_EQ(fill_and_read(local_members, 40).size(), 2U);
    });
}

} // namespace
} // namespace diomp::group
