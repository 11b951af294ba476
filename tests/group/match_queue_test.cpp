// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Matching of messages with receives, in every order of arrival, without a network.
#include "group/internal/match_queue_table.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace diomp::group {
namespace {

constexpr world_rank peer{3};
constexpr message_tag tag{1, step_data};

template <typename T>
std::span<const std::byte> bytes_from(const T &value) {
    return std::as_bytes(std::span(&value, 1));
}

struct receive {
    std::array<char, 8> data{};
    recv_request request{
        .from = peer, .tag = tag, .head = {}, .body = std::as_writable_bytes(std::span(data))};
};

constexpr std::array<char, 8> sent{'m', 'e', 's', 's', 'a', 'g', 'e', '!'};

TEST(match_queue, fragments_before_and_after_the_receive_make_one_message) {
    match_queue queue;
    queue.begin_call(1, {});
    receive wanted;
    queue.add_fragment(peer, tag, 8, 4, bytes_from(sent).subspan(4));
    EXPECT_FALSE(queue.post(wanted.request));
    queue.add_fragment(world_rank{4}, tag, 8, 0, bytes_from(sent)); // of another member
    EXPECT_FALSE(wanted.request.is_done());
    queue.add_fragment(peer, tag, 8, 0, bytes_from(sent).first(4));
    EXPECT_TRUE(wanted.request.is_done());
    EXPECT_EQ(wanted.request.total_bytes, 8U);
    EXPECT_EQ(wanted.data, sent);
}

TEST(match_queue, a_removed_receive_gets_nothing) {
    match_queue queue;
    queue.begin_call(1, {});
    receive wanted;
    EXPECT_FALSE(queue.post(wanted.request));
    EXPECT_FALSE(queue.remove(wanted.request));
    EXPECT_EQ(queue.recv_buffer_for(peer, tag, 0, 8), nullptr);
    EXPECT_EQ(queue.add_long(peer, tag, {}, bytes_from(sent)), 0U);
    queue.add_fin(peer, tag);
    EXPECT_FALSE(wanted.request.is_done());
}

TEST(match_queue, a_long_message_returns_the_rndv_buffer) {
    match_queue queue;
    queue.begin_call(1, {});
    receive wanted;
    wanted.request.rndv_buffer = 65;
    EXPECT_FALSE(queue.post(wanted.request));
    EXPECT_EQ(queue.recv_buffer_for(peer, tag, 1, 8), nullptr); // another head
    EXPECT_EQ(queue.recv_buffer_for(peer, tag, 0, 8), wanted.request.body.data());
    EXPECT_EQ(queue.add_long(peer, tag, {}, bytes_from(sent)), 65U);
    EXPECT_TRUE(wanted.request.is_done());
    EXPECT_EQ(wanted.data, sent);
}

TEST(match_queue, an_rtr_is_taken_once_and_ends_with_its_call) {
    match_queue queue;
    queue.begin_call(1, {});
    queue.add_rtr(peer, tag, 4096);
    EXPECT_FALSE(queue.take_rtr(world_rank{4}, tag));
    EXPECT_EQ(queue.take_rtr(peer, tag), 4096U);
    EXPECT_FALSE(queue.take_rtr(peer, tag));
    queue.add_rtr(peer, tag, 4096);
    queue.begin_call(2, {});
    EXPECT_FALSE(queue.take_rtr(peer, tag));
}

TEST(match_queue, a_late_state_of_another_call_is_a_mismatch) {
    match_queue queue;
    call_state own;
    own.call.what = sync::operation::bcast;
    own.first = 0;
    queue.begin_call(1, own);
    queue.begin_call(2, own);
    call_state other = own;
    other.first = 1;
    queue.add_fragment(peer, {1, step_state}, sizeof(other), 0, bytes_from(other));
    EXPECT_FALSE(queue.take_late_mismatch()); // the same call
    other.call.what = sync::operation::reduce;
    queue.add_fragment(peer, {1, step_state}, sizeof(other), 0, bytes_from(other));
    auto const late = queue.take_late_mismatch();
    ASSERT_TRUE(late);
    EXPECT_EQ(late->first.first, 0U);
    EXPECT_EQ(late->second.first, 1U);
}

TEST(match_queue, reports_are_about_recent_calls) {
    match_queue queue;
    queue.begin_call(1, {});
    queue.update({}, 7);
    queue.begin_call(2, {});
    ASSERT_TRUE(queue.report_of(1));
    EXPECT_EQ(queue.report_of(1)->awaited, 7);
    EXPECT_FALSE(queue.report_of(3));
    queue.add_report(1, {});
    EXPECT_FALSE(queue.take_report());
    queue.add_report(2, {});
    EXPECT_TRUE(queue.take_report());
    EXPECT_FALSE(queue.take_report());
}

TEST(match_queue_table, a_message_opens_a_queue_but_not_a_closed_one) {
    match_queue_table table;
    EXPECT_EQ(table.lock(5).found, nullptr);
    match_queue *const early = table.lock_or_create(5).found;
    ASSERT_NE(early, nullptr);
    EXPECT_EQ(&table.open(5), early);
    table.close(5);
    EXPECT_EQ(table.lock_or_create(5).found, nullptr);
}

} // namespace
} // namespace diomp::group
