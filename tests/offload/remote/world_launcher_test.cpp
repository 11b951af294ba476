// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The start of a world with sessions that do not do their part.
#include "launch/launch.h"
#include "offload/remote/control_pair.h"
#include "offload/remote/protocol.h"
#include "offload/remote/world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace diomp::offload::remote {
namespace {

using namespace diomp_test;

/// A client with two sessions, played by the test.
struct world_start {
    control_pair first = make_control_pair();
    control_pair second = make_control_pair();
    std::unique_ptr<launch::launcher> launcher = make_client_launcher(
        {{&first.client, "remote device 0"}, {&second.client, "remote device 1"}},
        {.size = 3, .scope = host_scope::one_host}, 0.2);
};

void enter_fence(control_pair &session) {
    EXPECT_TRUE(session.service.send(packet_writer(frame::fence).take()).ok());
}

TEST(world_launcher, names_the_session_that_does_not_answer) {
    world_start start;
    enter_fence(start.first);
    auto const begin = std::chrono::steady_clock::now();
    status const entered = start.launcher->fence();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
    ASSERT_FALSE(entered);
    EXPECT_EQ(entered.failure().code(), OMPX_ERR_TIMEOUT);
    EXPECT_EQ(entered.failure().message(), "remote device 1: no answer within 0.2 s");
}

TEST(world_launcher, says_how_a_session_has_ended) {
    for (bool const before_the_fence : {true, false}) {
        world_start start;
        enter_fence(start.first);
        if (!before_the_fence) {
            enter_fence(start.second);
            ASSERT_TRUE(start.launcher->fence());
            enter_fence(start.first);
        }
        packet_writer ended(frame::ended);
        ended.text("its process died");
        ASSERT_TRUE(start.second.service.send(ended.take()).ok());
        start.second.service.shut_down();
        status const entered = start.launcher->fence();
        ASSERT_FALSE(entered);
        EXPECT_EQ(entered.failure().code(), OMPX_ERR_PEER);
        EXPECT_EQ(entered.failure().message(), "remote device 1: its process died");
    }
}

TEST(world_launcher, says_how_a_session_has_ended_whose_connection_is_closed) {
    world_start start;
    for (control_pair *each : {&start.first, &start.second}) {
        enter_fence(*each);
    }
    // Ends between what a session sends and what it receives: the client's next send fails.
    packet_writer ended(frame::ended);
    ended.text("its process died");
    ASSERT_TRUE(start.first.service.send(ended.take()).ok());
    {
        control_connection const closed = std::move(start.first.service);
    }
    status const entered = start.launcher->fence();
    ASSERT_FALSE(entered);
    EXPECT_EQ(entered.failure().message(), "remote device 0: its process died");
}

} // namespace
} // namespace diomp::offload::remote
