// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device_coll/session_call.h"
#include "offload/session_transfer.h"

#include <gtest/gtest.h>

#include <string>

namespace diomp::offload {
namespace {

session_transfer sample() {
    return {rma::direction::get, 7, 0x1000, 0x2000, {{0, 8, 16}, {100, 200, 300}}};
}

TEST(session_transfer, arrives_as_it_was) {
    for (rma::direction const dir : {rma::direction::put, rma::direction::get}) {
        session_transfer sent = sample();
        sent.dir = dir;
        ASSERT_TRUE(is_session_transfer(encode(sent)));
        auto const got = decode_session_transfer(encode(sent));
        ASSERT_TRUE(got.ok());
        session_transfer const &back = got.value();
        EXPECT_EQ(back.dir, dir);
        EXPECT_EQ(back.rank, 7);
        EXPECT_EQ(back.remote, 0x1000U);
        EXPECT_EQ(back.local, 0x2000U);
        ASSERT_EQ(back.runs.size(), 2U);
        EXPECT_EQ(back.runs[1].remote, 100U);
        EXPECT_EQ(back.runs[1].local, 200U);
        EXPECT_EQ(back.runs[1].nbytes, 300U);
    }
}

TEST(session_transfer, parts_and_other_calls_are_rejected) {
    std::string const whole = encode(sample());
    for (std::size_t size = 0; size < whole.size(); ++size) {
        EXPECT_FALSE(decode_session_transfer(whole.substr(0, size)).ok()) << size;
    }
    EXPECT_FALSE(decode_session_transfer(whole + "x").ok());
    EXPECT_FALSE(decode_session_transfer(whole + std::string(24, 'x')).ok());
    for (std::size_t rma::run::*const start : {&rma::run::remote, &rma::run::local}) {
        session_transfer beyond = sample();
        beyond.runs[0].*start = ~std::size_t{0} - 3;
        EXPECT_FALSE(decode_session_transfer(encode(beyond)).ok()) << "its end overflows";
    }
    std::string const call = device_coll::encode(device_coll::session_call{});
    EXPECT_FALSE(is_session_transfer(call));
    EXPECT_FALSE(is_session_transfer(""));
    EXPECT_FALSE(decode_session_transfer(call).ok());
}

} // namespace
} // namespace diomp::offload
