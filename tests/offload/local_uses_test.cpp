// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/inflight_guard.h"
#include "support/remote_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <thread>

namespace {

using namespace diomp;
using namespace diomp::test;

class inflight_guard : public testing::Test {
protected:
    std::shared_ptr<transport::completion> begin(const std::byte *at, std::size_t nbytes) {
        auto made = std::make_shared<transport::completion>();
        made->begin();
        uses_.add(at, nbytes, made);
        return made;
    }

    remote_ranks ranks_{2, {}, 3};
    offload::inflight_guard uses_{ranks_[0].transfers, [] {}};
    std::array<std::byte, 100> memory_{};
    std::byte *const at_ = memory_.data();
};

TEST_F(inflight_guard, other_memory_is_not_waited_for) {
    auto const open = begin(at_ + 20, 10);
    EXPECT_FALSE(uses_.empty());
    EXPECT_TRUE(uses_.wait_until_unused(at_, 20).ok());
    EXPECT_TRUE(uses_.wait_until_unused(at_ + 30, 70).ok());
    EXPECT_FALSE(open->is_done());
    open->end();
}

TEST_F(inflight_guard, each_byte_of_it_is_waited_for) {
    for (auto const &[from, nbytes] :
         {std::pair(0, 21), std::pair(29, 1), std::pair(22, 3), std::pair(0, 100)}) {
        auto const open = begin(at_ + 20, 10);
        auto const other = begin(at_ + 20, 1);
        std::jthread const network([&] {
            std::this_thread::yield();
            other->end();
            open->end();
        });
        ASSERT_TRUE(uses_.wait_until_unused(at_ + from, static_cast<std::size_t>(nbytes)).ok());
        EXPECT_TRUE(open->is_done());
    }
    EXPECT_TRUE(uses_.wait_until_unused(at_, 1).ok());
    EXPECT_TRUE(uses_.empty());
}

TEST_F(inflight_guard, memory_of_unknown_size_ends_nowhere) {
    auto const open = begin(at_ + 20, 10);
    status const waited = uses_.wait_until_unused(at_ + 10, SIZE_MAX);
    ASSERT_FALSE(waited.ok());
    EXPECT_EQ(waited.failure().code(), OMPX_ERR_TIMEOUT);
    EXPECT_TRUE(uses_.wait_until_unused(at_ + 30, SIZE_MAX).ok());
    open->end();
}

TEST_F(inflight_guard, what_is_over_is_dropped) {
    uses_.add(at_, 100, nullptr);
    uses_.add(at_, 100, std::make_shared<transport::completion>());
    EXPECT_TRUE(uses_.empty());
    std::weak_ptr<transport::completion> first;
    for (int i = 0; i < 1000; ++i) {
        auto const open = begin(at_, 1);
        open->end();
        if (i == 0) {
            first = open;
        }
    }
    EXPECT_TRUE(first.expired()); // although nothing has been freed
}

/// A get without an event, and later ones that count elsewhere.
TEST_F(inflight_guard, transfers_without_an_event_are_waited_for) {
    std::byte *const area = ranks_.allocate(4096);
    std::fill_n(ranks_.at(1, area), 4096, std::byte{7});
    auto const place =
        ranks_[0].space.locate(world_rank{1}, ranks_.at(0, area), memory_.size()).value();
    for (int i = 0; i < 50; ++i) {
        memory_.fill(std::byte{0});
        rma::local_completion use;
        ASSERT_TRUE(ranks_[0]
                        .transfers.nonblocking()
                        .start_at(rma::direction::get, world_rank{1}, place, at_, memory_.size(),
                                  nullptr, &use)
                        .ok());
        uses_.add(at_, memory_.size(), std::move(use));
        ASSERT_TRUE(uses_.wait_until_unused(at_, memory_.size()).ok());
        EXPECT_EQ(memory_.back(), std::byte{7});
    }
    EXPECT_TRUE(ranks_[0].transfers.fence().ok());
}

} // namespace
