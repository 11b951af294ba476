// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/posted.h"

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
        work.allow(true);
        work.note_quiet(kernels);
    }
    posted_work work;
};

TEST_F(posted, nothing_unless_it_is_allowed) {
    posted_work other;
    EXPECT_FALSE(other.admits({}));
    EXPECT_TRUE(work.admits({}));
}

TEST_F(posted, kernels_that_are_quiet_and_known_to_be_short) {
    EXPECT_FALSE(work.admits(kernels));
    work.note_time(100, microseconds(3));
    EXPECT_FALSE(work.admits(kernels)) << "the other one is not known";
    work.note_time(200, posted_work::longest);
    EXPECT_TRUE(work.admits(kernels));
    work.note_time(200, posted_work::longest + microseconds(1));
    EXPECT_FALSE(work.admits(kernels));
    work.note_time(200, microseconds(0));
    EXPECT_TRUE(work.admits(kernels));
    work.note_quiet(kernels); // loaded again
    EXPECT_TRUE(work.admits(kernels));
}

TEST_F(posted, a_time_does_not_make_a_kernel_quiet) {
    work.note_time(300, microseconds(1));
    EXPECT_FALSE(work.admits(unknown));
}

TEST_F(posted, so_many_without_an_answer) {
    for (std::uint64_t i = 1; i <= posted_work::most; ++i) {
        EXPECT_TRUE(work.admits({}));
        work.add({as_queue(1), i});
    }
    EXPECT_FALSE(work.admits({}));
    EXPECT_TRUE(work.settle(as_queue(1), 1));
    EXPECT_TRUE(work.admits({}));
}

TEST_F(posted, of_each_queue_the_last_batch_is_pending) {
    EXPECT_TRUE(work.is_empty());
    work.add({as_queue(1), 1});
    work.add({as_queue(2), 7});
    work.add({as_queue(1), 2});
    EXPECT_EQ(work.generation(), 3U);
    auto pending = work.pending();
    ASSERT_EQ(pending.size(), 2U);
    EXPECT_EQ(pending[0].of, as_queue(1));
    EXPECT_EQ(pending[0].batch, 2U);
    EXPECT_EQ(pending[1].of, as_queue(2));
    EXPECT_EQ(pending[1].batch, 7U);
    EXPECT_TRUE(work.settle(as_queue(1), 2)) << "and what was before it";
    pending = work.pending();
    ASSERT_EQ(pending.size(), 1U);
    EXPECT_EQ(pending[0].of, as_queue(2));
    EXPECT_FALSE(work.settle(as_queue(1), 3));
    EXPECT_TRUE(work.settle(as_queue(2), 8));
    EXPECT_TRUE(work.is_empty());
    EXPECT_EQ(work.generation(), 3U);
}

TEST_F(posted, what_was_followed_is_done) {
    work.add({as_queue(1), 1});
    work.add({as_queue(2), 1});
    std::uint64_t const followed = work.generation();
    work.add({as_queue(1), 2});
    auto const done = work.settle_first(followed);
    ASSERT_EQ(done.size(), 2U);
    EXPECT_EQ(done[1].of, as_queue(2));
    ASSERT_EQ(work.pending().size(), 1U);
    EXPECT_EQ(work.pending()[0].batch, 2U);
    EXPECT_TRUE(work.settle_first(followed).empty());
    EXPECT_EQ(work.settle_first(work.generation()).size(), 1U);
    EXPECT_TRUE(work.is_empty());
}

} // namespace
} // namespace diomp::offload::remote
