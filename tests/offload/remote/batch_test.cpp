// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The parts of a client's queue that need no session.
#include "offload/remote/batch_builder.h"
#include "offload/remote/device_memory.h"
#include "offload/remote/queue_replies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

namespace diomp::offload::remote {
namespace {

using content = batch_builder::content;

TEST(remote_batch, operations_become_one_message) {
    batch_builder batch(7);
    EXPECT_FALSE(batch.needs_reply());
    batch.put(0x1000, "abc", 3);
    EXPECT_EQ(batch.pending_bytes(), put_header_bytes + 3);
    EXPECT_TRUE(batch.overlaps_pending_put(0x1002, 10));
    EXPECT_FALSE(batch.overlaps_pending_put(0x1003, 10));
    std::string const message = batch.take_message(true);
    packet_reader packet(message);
    EXPECT_EQ(packet.number<std::uint64_t>(), 7U);
    EXPECT_EQ(packet.number<std::uint64_t>(), 1U);
    EXPECT_EQ(packet.type<operation>(), operation::put);
    EXPECT_EQ(packet.number<std::uint64_t>(), 0x1000U);
    EXPECT_EQ(packet.text(), "abc");
    EXPECT_EQ(packet.type<operation>(), operation::finish);
    EXPECT_TRUE(packet.ok() && packet.at_end());
    EXPECT_EQ(batch.batch(), 2U);
    EXPECT_TRUE(batch.needs_reply());
    EXPECT_FALSE(batch.overlaps_pending_put(0x1000, 1)) << "it has been sent";
}

TEST(remote_batch, sizes_that_queues_reserve) {
    batch_builder batch(0);
    std::array<char, 4> into{};
    batch.get(into.data(), 0x10, into.size());
    EXPECT_EQ(batch.pending_bytes(), batch_builder::get_bytes);
    batch.wait(1, 2);
    EXPECT_EQ(batch.pending_bytes(), batch_builder::get_bytes + batch_builder::wait_bytes);
    std::size_t const before = batch.pending_bytes();
    batch.zero_copy(operation::fetch, {1, 2, 3});
    EXPECT_EQ(batch.pending_bytes(), before + batch_builder::zero_copy_bytes);
}

TEST(remote_batch, a_call_is_never_deferred_and_gets_its_outcome) {
    batch_builder batch(0);
    batch.call_part("abc");
    EXPECT_EQ(batch.pending_bytes(), batch_builder::call_part_header_bytes + 3);
    EXPECT_FALSE(batch.can_defer());
    std::array<char, call_outcome_bytes> outcome{};
    batch.call(outcome);
    EXPECT_EQ(batch.pending_bytes(),
              batch_builder::call_part_header_bytes + 3 + batch_builder::call_bytes);
    EXPECT_EQ(batch.num_reply_bytes(), call_outcome_bytes);
    batch.finish_gets(encode_call_outcome(call_error{OMPX_ERR_RANGE, {}, {}, "past the end", {}}));
    auto const failure = decode_call_outcome({outcome.data(), outcome.size()});
    ASSERT_TRUE(failure);
    ASSERT_TRUE(failure.value());
    EXPECT_EQ(failure.value()->code, OMPX_ERR_RANGE);
    EXPECT_EQ(failure.value()->message, "past the end");
}

TEST(remote_batch, outcomes_of_calls_have_one_size) {
    std::string const success = encode_call_outcome(std::nullopt);
    EXPECT_EQ(success.size(), call_outcome_bytes);
    auto const none = decode_call_outcome(success);
    ASSERT_TRUE(none);
    EXPECT_FALSE(none.value());
    std::string const longest(400, 'x'); // as region_runtime cuts them
    std::string const error =
        encode_call_outcome(call_error{OMPX_ERR_PEER, {}, {}, longest, longest});
    EXPECT_EQ(error.size(), call_outcome_bytes);
    auto const decoded = decode_call_outcome(error);
    ASSERT_TRUE(decoded);
    EXPECT_EQ(decoded.value()->remedy, longest);
    EXPECT_FALSE(decode_call_outcome(error.substr(0, 100)));
    EXPECT_FALSE(decode_call_outcome(""));
}

TEST(remote_batch, gets_take_the_bytes_of_the_reply_in_order) {
    batch_builder batch(0);
    std::array<char, 2> first{};
    std::array<char, 3> second{};
    batch.get(first.data(), 0x10, first.size());
    batch.get(second.data(), 0x20, second.size());
    EXPECT_EQ(batch.num_reply_bytes(), 5U);
    batch.finish_gets("abcde");
    EXPECT_THAT(first, testing::ElementsAre('a', 'b'));
    EXPECT_THAT(second, testing::ElementsAre('c', 'd', 'e'));
}

TEST(remote_batch, what_can_be_deferred) {
    batch_builder batch(0);
    EXPECT_FALSE(batch.can_defer()) << "nothing to defer";
    batch.launch("a launch", 100);
    EXPECT_TRUE(batch.includes(content::transfers) && batch.includes(content::session));
    EXPECT_TRUE(batch.can_defer());
    EXPECT_THAT(batch.kernels(), testing::ElementsAre(100U));
    batch.copy(remote::operation::copy, world_rank(1), 1, 2, 3);
    EXPECT_FALSE(batch.can_defer());
    batch.discard();
    std::array<char, 1> into{};
    batch.get(into.data(), 0x10, into.size());
    EXPECT_FALSE(batch.can_defer());
}

TEST(remote_batch, a_discarded_number_is_not_used_again) {
    batch_builder batch(0);
    EXPECT_EQ(batch.discard(), 0U);
    EXPECT_EQ(batch.batch(), 1U);
    batch.include(content::transfers);
    EXPECT_EQ(batch.discard(), 1U);
    EXPECT_EQ(batch.batch(), 2U);
    batch.put(0x10, "a", 1);
    static_cast<void>(batch.take_deferred());
    EXPECT_EQ(batch.batch(), 3U);
    EXPECT_FALSE(batch.needs_reply() || batch.includes(content::transfers));
}

TEST(remote_batch, a_deferred_one_asks_for_a_reply_now_and_then) {
    batch_builder batch(0);
    auto const ends_with_finish = [&] {
        batch.put(0x10, "a", 1);
        return batch.take_deferred().back() == static_cast<char>(operation::finish);
    };
    for (int i = 0; i < 15; ++i) {
        EXPECT_FALSE(ends_with_finish()) << i;
    }
    EXPECT_TRUE(ends_with_finish());
    EXPECT_FALSE(ends_with_finish());
}

TEST(remote_replies, only_the_expected_one_is_kept) {
    queue_replies replies;
    batch_reply reply;
    reply.batch = 3;
    EXPECT_FALSE(replies.accept(reply));
    replies.expect(4);
    EXPECT_FALSE(replies.accept(reply));
    EXPECT_FALSE(replies.has_expected());
    reply.batch = 4;
    reply.rest = "rest";
    EXPECT_TRUE(replies.accept(reply));
    EXPECT_TRUE(replies.has_expected());
    std::string const bytes = replies.take();
    auto decoded = decode_reply(bytes);
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ(decoded.value().rest, "rest");
    EXPECT_FALSE(replies.has_expected());
    EXPECT_FALSE(replies.accept(reply)) << "it has been taken";
}

TEST(remote_replies, batches_complete_in_order) {
    queue_replies replies;
    EXPECT_TRUE(replies.has_completed(0));
    replies.complete_up_to(3);
    replies.complete_up_to(2);
    EXPECT_TRUE(replies.has_completed(3));
    EXPECT_FALSE(replies.has_completed(4));
}

TEST(remote_own_memory, allocations_symbols_and_variables) {
    own_memory memory;
    memory.add_allocation(1000, 100);
    EXPECT_TRUE(memory.has(1000, 100) && memory.has(1099, 1));
    EXPECT_FALSE(memory.has(1000, 101) || memory.has(999, 1));
    EXPECT_FALSE(memory.is_zero_copy(1000, 1)) << "the network does not reach it";
    memory.set_network_reachable(true);
    EXPECT_TRUE(memory.is_zero_copy(1000, 100));
    EXPECT_THAT(memory.add_symbols({{"constant", 8}, {"variable", 8}, {"kernel", 0}},
                                   {{2000, false}, {3000, true}, {4000, false}}),
                testing::ElementsAre(2000U, 3000U, 4000U));
    EXPECT_TRUE(memory.has(2000, 8) && memory.has(3000, 8));
    EXPECT_FALSE(memory.has(4000, 1));
    EXPECT_TRUE(memory.is_zero_copy(3000, 8));
    EXPECT_FALSE(memory.is_zero_copy(2000, 8));
    memory.remove_allocation(1000);
    EXPECT_FALSE(memory.has(1000, 1));
}

} // namespace
} // namespace diomp::offload::remote
