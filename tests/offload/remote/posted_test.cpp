// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/deferred_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace diomp::offload::remote {
namespace {

using std::chrono::microseconds;

constexpr std::array<std::uint64_t, 2> kernels{100, 200};
constexpr std::array<std::uint64_t, 1> unknown{300};

/// Only their addresses matter.
queue *as_queue(std::uintptr_t number) { return reinterpret_cast<queue *>(number * 64); }

class posted : public testing::Test {
protected:
    posted() {
        work.set_enabled(true);
        work.add_memory_only(kernels);
    }
    deferred_work work;
};

TEST_F(posted, nothing_unless_it_is_allowed) {
    deferred_work other;
    EXPECT_FALSE(other.can_defer({}));
    EXPECT_TRUE(work.can_defer({}));
}

TEST_F(posted, kernels_that_are_quiet_and_known_to_be_short) {
    EXPECT_FALSE(work.can_defer(kernels));
    work.record_time(100, microseconds(3));
    EXPECT_FALSE(work.can_defer(kernels)) << "the other one is not known";
    work.record_time(200, deferred_work::max_kernel_time);
    EXPECT_TRUE(work.can_defer(kernels));
    work.record_time(200, deferred_work::max_kernel_time + microseconds(1));
    EXPECT_FALSE(work.can_defer(kernels));
    work.record_time(200, microseconds(0));
    EXPECT_TRUE(work.can_defer(kernels));
    work.add_memory_only(kernels); // loaded again
    EXPECT_TRUE(work.can_defer(kernels));
}

TEST_F(posted, a_time_does_not_make_a_kernel_quiet) {
    work.record_time(300, microseconds(1));
    EXPECT_FALSE(work.can_defer(unknown));
}

TEST_F(posted, so_many_without_an_answer) {
    for (std::uint64_t i = 1; i <= deferred_work::max_pending; ++i) {
        EXPECT_TRUE(work.can_defer({}));
        work.add({as_queue(1), i});
    }
    EXPECT_FALSE(work.can_defer({}));
    EXPECT_TRUE(work.complete(as_queue(1), 1));
    EXPECT_TRUE(work.can_defer({}));
}

TEST_F(posted, of_each_queue_the_last_batch_is_pending) {
    EXPECT_TRUE(work.is_empty());
    work.add({as_queue(1), 1});
    work.add({as_queue(2), 7});
    work.add({as_queue(1), 2});
    EXPECT_EQ(work.generation(), 3U);
    auto pending = work.pending();
    ASSERT_EQ(pending.size(), 2U);
    EXPECT_EQ(pending[0].owner, as_queue(1));
    EXPECT_EQ(pending[0].batch, 2U);
    EXPECT_EQ(pending[1].owner, as_queue(2));
    EXPECT_EQ(pending[1].batch, 7U);
    EXPECT_TRUE(work.complete(as_queue(1), 2)) << "and what was before it";
    pending = work.pending();
    ASSERT_EQ(pending.size(), 1U);
    EXPECT_EQ(pending[0].owner, as_queue(2));
    EXPECT_FALSE(work.complete(as_queue(1), 3));
    EXPECT_TRUE(work.complete(as_queue(2), 8));
    EXPECT_TRUE(work.is_empty());
    EXPECT_EQ(work.generation(), 3U);
}

TEST_F(posted, what_was_followed_is_done) {
    work.add({as_queue(1), 1});
    work.add({as_queue(2), 1});
    std::uint64_t const followed = work.generation();
    work.add({as_queue(1), 2});
    auto const done = work.complete_up_to(followed);
    ASSERT_EQ(done.size(), 2U);
    EXPECT_EQ(done[1].owner, as_queue(2));
    ASSERT_EQ(work.pending().size(), 1U);
    EXPECT_EQ(work.pending()[0].batch, 2U);
    EXPECT_TRUE(work.complete_up_to(followed).empty());
    EXPECT_EQ(work.complete_up_to(work.generation()).size(), 1U);
    EXPECT_TRUE(work.is_empty());
}

} // namespace
} // namespace diomp::offload::remote
