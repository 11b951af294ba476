// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collective calls of remote devices survive their encoding.
#include "device_coll/session_call.h"
#include "diomp/atomic.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace {

using diomp::coll::block_lists;
using diomp::device_coll::decode_session_call;
using diomp::device_coll::decode_session_group;
using diomp::device_coll::encode;
using diomp::device_coll::session_call;
using diomp::device_coll::session_group;
using diomp::sync::operation;

std::byte *at(std::uintptr_t address) { return reinterpret_cast<std::byte *>(address); }

session_call sample() {
    session_call call;
    call.group = (std::uint64_t{5} << 40) + 17;
    call.ranks = {3, 0, 70000};
    call.args.what = operation::reduce;
    call.args.dst = at(0x4000'1234'5678);
    call.args.src = at(0x4000'0000'0010);
    call.args.amount = std::size_t{1} << 40;
    call.args.type = OMPX_DOUBLE;
    call.args.op = OMPX_MAX;
    call.args.root = 2;
    return call;
}

TEST(session_call, arguments_arrive) {
    session_call const sent = sample();
    auto const got = decode_session_call(encode(sent));
    ASSERT_TRUE(got);
    EXPECT_EQ(got.value().group, sent.group);
    EXPECT_EQ(got.value().ranks, sent.ranks);
    diomp::coll::request const &args = got.value().args;
    EXPECT_EQ(args.what, operation::reduce);
    EXPECT_EQ(args.dst, sent.args.dst);
    EXPECT_EQ(args.src, sent.args.src);
    EXPECT_EQ(args.amount, sent.args.amount);
    EXPECT_EQ(args.type, OMPX_DOUBLE);
    EXPECT_EQ(args.op, OMPX_MAX);
    EXPECT_EQ(args.root, 2);
    EXPECT_EQ(args.blocks, nullptr);
}

TEST(session_call, calls_without_root_or_lists_arrive) {
    session_call sent;
    sent.args.what = operation::allgather;
    sent.args.amount = 8;
    auto const got = decode_session_call(encode(sent));
    ASSERT_TRUE(got);
    EXPECT_TRUE(got.value().ranks.empty());
    EXPECT_EQ(got.value().args.root, -1);
    EXPECT_EQ(got.value().args.dst, nullptr);
}

TEST(session_call, block_lists_arrive) {
    session_call sent = sample();
    sent.args.what = operation::alltoallv;
    auto lists = std::make_shared<block_lists>();
    lists->dst = {{1, 0, std::size_t{1} << 33}, {5, 6, 7}};
    lists->src = {{4}, {9}};
    sent.args.blocks = lists;
    auto const got = decode_session_call(encode(sent));
    ASSERT_TRUE(got);
    ASSERT_NE(got.value().args.blocks, nullptr);
    block_lists const &blocks = *got.value().args.blocks;
    EXPECT_EQ(blocks.dst.nbytes, lists->dst.nbytes);
    EXPECT_EQ(blocks.dst.offsets, lists->dst.offsets);
    EXPECT_EQ(blocks.src.nbytes, lists->src.nbytes);
    EXPECT_EQ(blocks.src.offsets, lists->src.offsets);
}

TEST(session_call, groups_arrive_and_are_no_calls) {
    session_group const sent{reinterpret_cast<ompx_group_t>(at(0xd10b'0000'0001'0002)), 77, {2, 0}};
    std::string const bytes = encode(sent);
    auto const got = decode_session_group(bytes);
    ASSERT_TRUE(got);
    EXPECT_EQ(got.value().handle, sent.handle);
    EXPECT_EQ(got.value().group, sent.group);
    EXPECT_EQ(got.value().ranks, sent.ranks);
    EXPECT_FALSE(decode_session_group(encode(sample())));
    EXPECT_FALSE(decode_session_group(bytes + "x"));
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        EXPECT_FALSE(decode_session_group(bytes.substr(0, length)));
    }
    EXPECT_NE(session_group::of_regions(sent.group), sent.group);
}

TEST(session_call, incomplete_and_longer_bytes_are_errors) {
    session_call sent = sample();
    sent.args.what = operation::gatherv;
    auto lists = std::make_shared<block_lists>();
    lists->dst = {{1, 2, 3}, {5, 6, 7}};
    sent.args.blocks = lists;
    std::string const whole = encode(sent);
    ASSERT_TRUE(decode_session_call(whole));
    for (std::size_t nbytes = 0; nbytes < whole.size(); ++nbytes) {
        EXPECT_FALSE(decode_session_call(std::string_view(whole).substr(0, nbytes))) << nbytes;
    }
    EXPECT_FALSE(decode_session_call(whole + "x"));
}

TEST(session_call, a_list_larger_than_the_bytes_is_an_error) {
    session_call sent = sample();
    std::string bytes = encode(sent);
    bytes[9] = '\xff'; // the number of ranks, after the operation and the group
    bytes[16] = '\x7f';
    auto const got = decode_session_call(bytes);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.failure().code(), OMPX_ERR_ARG);
}

TEST(session_call, other_operations_are_errors) {
    session_call sent = sample();
    for (operation const what :
         {operation::group_create, operation::finalize, operation::target_free,
          operation::unregister_symmetric, static_cast<operation>(200)}) {
        sent.args.what = what;
        EXPECT_FALSE(decode_session_call(encode(sent))) << static_cast<int>(what);
    }
}

TEST(session_call, lists_of_different_lengths_are_errors) {
    session_call sent = sample();
    sent.args.what = operation::alltoallv;
    auto lists = std::make_shared<block_lists>();
    lists->dst = {{1, 2, 3}, {5, 6, 7}};
    lists->src = {{4, 5}, {9}};
    sent.args.blocks = lists;
    EXPECT_FALSE(decode_session_call(encode(sent)));
}

} // namespace
