// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "multihost/agent_protocol.h"
#include "multihost/head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace diomp::run {
namespace {

using testing::HasSubstr;

TEST(agent_protocol, an_invitation_survives_the_wire) {
    agent_bootstrap const sent{3, "aa", 2.5, "1,2", {{"10.0.0.1", "77"}, {"::1", "77"}}};
    auto const received = decode_bootstrap(encode_bootstrap(sent));
    ASSERT_TRUE(received.ok()) << received.failure().message();
    EXPECT_EQ(received.value().index, 3);
    EXPECT_EQ(received.value().secret, "aa");
    EXPECT_DOUBLE_EQ(received.value().timeout_s, 2.5);
    EXPECT_EQ(received.value().ignored_signals, "1,2");
    EXPECT_EQ(received.value().addresses, sent.addresses);
}

TEST(agent_protocol, an_invitation_may_have_no_signals_to_ignore) {
    auto const received =
        decode_bootstrap(encode_bootstrap({3, "aa", 2.5, "", {{"10.0.0.1", "77"}}}));
    ASSERT_TRUE(received.ok()) << received.failure().message();
    EXPECT_EQ(received.value().ignored_signals, "");
}

TEST(agent_protocol, an_invitation_cut_short_is_an_error) {
    std::string const whole = encode_bootstrap({0, "aa", 1, "1", {{"10.0.0.1", "77"}}});
    for (std::size_t size = 0; size + 1 < whole.size(); ++size) {
        EXPECT_FALSE(decode_bootstrap(whole.substr(0, size)).ok()) << size;
    }
}

TEST(agent_protocol, an_invitation_of_another_version_names_both) {
    auto const received = decode_bootstrap("diomp-run 999\nend\n");
    ASSERT_FALSE(received.ok());
    EXPECT_THAT(
        received.failure().message(),
        testing::AllOf(HasSubstr("999"), HasSubstr(std::to_string(agent_protocol_version))));
}

TEST(agent_protocol, a_setup_survives_the_wire_and_not_half_of_it) {
    agent_setup sent;
    sent.world_size = 9;
    sent.block = {"b", 4, 5};
    sent.bind = binding::none;
    sent.verbose = true;
    sent.job_id = "job";
    sent.directory = "/d";
    sent.search_path = "/p";
    sent.output_dir = "/o";
    sent.command = {"app", "", "x y"};
    sent.environment = {{"A", "1"}, {"B", ""}};
    sent.remote_devices = {"h:1@0*1", "h:1@1*1", "h:1@2*1", "h:1@3*1", "h:1@4*1"};
    std::string const whole = encode_setup(sent);
    frame_reader frame(whole);
    EXPECT_EQ(frame.type<frame_type>(), frame_type::setup);
    auto const received = decode_setup(frame);
    ASSERT_TRUE(received.ok());
    EXPECT_EQ(received.value().block, sent.block);
    EXPECT_EQ(received.value().bind, binding::none);
    EXPECT_TRUE(received.value().verbose);
    EXPECT_EQ(received.value().output_dir, "/o");
    EXPECT_EQ(received.value().command, sent.command);
    EXPECT_EQ(received.value().environment, sent.environment);
    EXPECT_EQ(received.value().remote_devices, sent.remote_devices);
    for (std::size_t size = 1; size < whole.size(); ++size) {
        frame_reader part(std::string_view(whole).substr(0, size));
        (void)part.type<frame_type>();
        EXPECT_FALSE(decode_setup(part).ok()) << size;
    }
}

TEST(agent_protocol, a_setup_with_devices_for_some_ranks_only_is_an_error) {
    agent_setup sent;
    sent.world_size = 2;
    sent.block.ranks = 2;
    sent.command = {"app"};
    sent.remote_devices = {"h:1"};
    std::string const whole = encode_setup(sent);
    frame_reader frame(whole);
    (void)frame.type<frame_type>();
    EXPECT_FALSE(decode_setup(frame).ok());
}

TEST(agent_protocol, a_setup_with_ranks_outside_the_world_is_an_error) {
    agent_setup sent;
    sent.world_size = 0xffffffff;
    sent.block.first_rank = -2;
    sent.block.ranks = 3;
    sent.command = {"app"};
    std::string const whole = encode_setup(sent);
    frame_reader frame(whole);
    (void)frame.type<frame_type>();
    EXPECT_FALSE(decode_setup(frame).ok());
}

TEST(agent_protocol, the_limit_of_silence_comes_from_the_settings_of_ranks) {
    EXPECT_DOUBLE_EQ(peer_timeout({}), 30);
    EXPECT_DOUBLE_EQ(peer_timeout({{"DIOMP_TIMEOUT", "5.5"}}), 5.5);
    EXPECT_DOUBLE_EQ(peer_timeout({{"DIOMP_TIMEOUT", "0"}}), 30);
    EXPECT_DOUBLE_EQ(peer_timeout({{"DIOMP_TIMEOUT", "x"}}), 30);
    EXPECT_LE(heartbeat_interval(30), 5);
    EXPECT_LE(heartbeat_interval(3), 1);
}

} // namespace
} // namespace diomp::run
