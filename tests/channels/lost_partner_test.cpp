// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Waits for a partner that does nothing end after DIOMP_TIMEOUT, with a text that says what was
// missing; the channel still works afterwards.
#include "diomp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace {

int const me = ompx_rank_num();
int const ranks = ompx_num_ranks();

TEST(channel_timeout, a_partner_that_creates_no_end_is_named) {
    ompx_channel_t end = OMPX_CHANNEL_NONE;
    int const partner = (me + 1) % ranks;
    ASSERT_EQ(ompx_channel_create(partner, 1, OMPX_CHANNEL_SENDER, 8, 1, &end), 0);
    std::int64_t const value = 1;
    EXPECT_EQ(ompx_channel_try_send(end, &value), OMPX_ERR_BUSY);
    EXPECT_EQ(ompx_channel_send(end, &value), OMPX_ERR_TIMEOUT);
    EXPECT_THAT(ompx_last_error(), testing::HasSubstr("to create its end of the channel to rank " +
                                                      std::to_string(partner) + " (tag 1"));
    ASSERT_EQ(ompx_channel_free(&end), 0);
}

TEST(channel_timeout, a_message_that_is_not_sent_is_named_and_may_come_later) {
    ompx_channel_t to = OMPX_CHANNEL_NONE;
    ompx_channel_t from = OMPX_CHANNEL_NONE;
    ASSERT_EQ(ompx_channel_create((me + 1) % ranks, 2, OMPX_CHANNEL_SENDER, 8, 1, &to), 0);
    ASSERT_EQ(ompx_channel_create((me + ranks - 1) % ranks, 2, OMPX_CHANNEL_RECEIVER, 8, 1, &from),
              0);
    EXPECT_EQ(ompx_channel_receive(from), nullptr);
    EXPECT_THAT(ompx_last_error(), testing::HasSubstr("waiting for message 1 of the channel from"));
    ompx_barrier();
    std::int64_t const value = 7 + me;
    ASSERT_EQ(ompx_channel_send(to, &value), 0);
    ompx_barrier(); // the receiver does not release before
    EXPECT_EQ(ompx_channel_send(to, &value), OMPX_ERR_TIMEOUT);
    EXPECT_THAT(ompx_last_error(), testing::HasSubstr("to release message 1 of the channel to"));
    ompx_barrier();
    auto const *const got = static_cast<std::int64_t *>(ompx_channel_receive(from));
    ASSERT_NE(got, nullptr);
    EXPECT_EQ(*got, 7 + (me + ranks - 1) % ranks);
    EXPECT_EQ(ompx_channel_receive(from), nullptr) << "its only buffer is not released";
    EXPECT_THAT(ompx_last_error(), testing::HasSubstr("none of its 1 buffers is released"));
    ompx_barrier();
    ASSERT_EQ(ompx_channel_free(&to), 0);
    ASSERT_EQ(ompx_channel_free(&from), 0);
    ompx_barrier();
}

} // namespace
