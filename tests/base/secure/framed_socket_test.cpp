// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/secure/framed_socket.h"
#include "base/secure/pairing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <iterator>
#include <optional>
#include <sys/socket.h>
#include <utility>
#include <vector>

namespace {

using namespace diomp;
using namespace diomp::secure;
using namespace diomp::secure::testing;
using ::testing::HasSubstr;

struct pair_of_sockets {
    unique_fd one;
    unique_fd other;
};

pair_of_sockets make_sockets() {
    int made[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, made), 0);
    return {unique_fd(made[0]), unique_fd(made[1])};
}

class secure_framed_socket : public ::testing::TestWithParam<protection> {
protected:
    void SetUp() override {
        handshake_options from = options_of(rank_2);
        handshake_options to = options_of(rank_5);
        from.wanted = to.wanted = GetParam();
        handshake initiator = handshake::initiate(key_, from, rank_5);
        handshake responder = handshake::respond(key_, to, eight_ranks);
        run(initiator, responder);
        pair_of_sockets sockets = make_sockets();
        frame_limits const limits{.frame_bytes = 1 << 20, .queue_bytes = 3 << 20};
        here_.emplace(std::move(sockets.one), initiator.take_session_keys(), limits);
        there_.emplace(std::move(sockets.other), responder.take_session_keys(), limits);
    }
    std::vector<std::string> receive_there() {
        std::vector<std::string> frames;
        last_ = there_->receive([&](std::string_view frame) {
            frames.emplace_back(frame);
            return true;
        });
        return frames;
    }

    secret key_ = secret::random();
    std::optional<framed_socket> here_;
    std::optional<framed_socket> there_;
    status last_;
};

std::string name_mode(const ::testing::TestParamInfo<protection> &info) {
    return info.param == protection::plain ? "plain" : "sealed";
}
INSTANTIATE_TEST_SUITE_P(modes, secure_framed_socket,
                         ::testing::Values(protection::plain, protection::sealed), name_mode);

TEST_P(secure_framed_socket, both_know_the_other) {
    EXPECT_EQ(here_->peer(), rank_5);
    EXPECT_EQ(there_->peer(), rank_2);
    EXPECT_EQ(here_->mode(), GetParam());
}

TEST_P(secure_framed_socket, frames_come_in_order) {
    for (char const *const each : {"one", "two", "three"}) {
        ASSERT_TRUE(here_->send(each).ok());
    }
    EXPECT_EQ(receive_there(), (std::vector<std::string>{"one", "two", "three"}));
    EXPECT_TRUE(receive_there().empty());
    EXPECT_TRUE(last_.ok());
}

TEST_P(secure_framed_socket, a_handler_may_stop_and_goes_on_later) {
    ASSERT_TRUE(here_->send("one").ok());
    ASSERT_TRUE(here_->send("two").ok());
    int count = 0;
    ASSERT_TRUE(there_
                    ->receive([&](std::string_view) {
                        ++count;
                        return false;
                    })
                    .ok());
    EXPECT_EQ(count, 1);
    EXPECT_EQ(receive_there(), std::vector<std::string>{"two"});
}

TEST_P(secure_framed_socket, what_has_no_room_waits) {
    std::string const large(1 << 20, 'l');
    ASSERT_TRUE(here_->send(large).ok());
    EXPECT_TRUE(here_->has_waiting());
    std::vector<std::string> got;
    ASSERT_TRUE(here_->send("after").ok());
    while (got.size() < 2) {
        ASSERT_TRUE(here_->send_waiting().ok());
        std::ranges::move(receive_there(), std::back_inserter(got));
        ASSERT_TRUE(last_.ok());
    }
    EXPECT_FALSE(here_->has_waiting());
    EXPECT_EQ(got[0], large);
    EXPECT_EQ(got[1], "after");
}

TEST_P(secure_framed_socket, a_peer_that_takes_nothing_is_an_error_in_the_end) {
    std::string const large(1 << 20, 'l');
    status sent;
    int count = 0;
    while (sent.ok() && count < 10) {
        sent = here_->send(large);
        ++count;
    }
    ASSERT_FALSE(sent.ok());
    EXPECT_EQ(sent.failure().code(), OMPX_ERR_NOMEM);
    EXPECT_THAT(sent.failure().message(), HasSubstr("rank 5"));
    EXPECT_LE(count, 5);
}

TEST_P(secure_framed_socket, sizes_are_checked) {
    EXPECT_EQ(here_->send("").failure().code(), OMPX_ERR_ARG);
    EXPECT_EQ(here_->send(std::string((1 << 20) + 1, 'x')).failure().code(), OMPX_ERR_ARG);
    there_->limit_frames(3);
    ASSERT_TRUE(here_->send("four").ok());
    EXPECT_TRUE(receive_there().empty());
    EXPECT_EQ(last_.failure().code(), OMPX_ERR_PEER);
}

TEST_P(secure_framed_socket, the_end_of_the_other_side_is_noticed) {
    ASSERT_TRUE(here_->send("last").ok());
    here_.reset();
    EXPECT_EQ(receive_there(), std::vector<std::string>{"last"});
    if (last_.ok()) {
        EXPECT_TRUE(receive_there().empty());
    }
    EXPECT_EQ(last_.failure().code(), OMPX_ERR_PEER);
    EXPECT_EQ(there_->send("x").failure().code(), OMPX_ERR_PEER);
}

TEST_P(secure_framed_socket, bytes_of_another_sender_end_a_sealed_connection) {
    std::string const forged("\x05\x00\x00\x00helloxxxxxxxxxxxxxxxx", 25);
    ASSERT_EQ(::send(here_->fd(), forged.data(), forged.size(), 0), 25);
    bool const is_sealed = GetParam() == protection::sealed;
    EXPECT_EQ(receive_there().size(), is_sealed ? 0 : 1);
    EXPECT_FALSE(last_.ok());
}

class secure_complete_handshake : public ::testing::Test {
protected:
    secret key_ = secret::random();
    pair_of_sockets sockets_ = make_sockets();
};

TEST_F(secure_complete_handshake, two_blocking_ends) {
    auto responding = std::async(std::launch::async, [&] {
        return complete_handshake(sockets_.other.get(), responder_of(key_), 20);
    });
    auto initiated = complete_handshake(sockets_.one.get(), initiator_of(key_), 20);
    EXPECT_TRUE(initiated.ok());
    EXPECT_TRUE(responding.get().ok());
}

TEST_F(secure_complete_handshake, a_silent_peer_costs_the_time_limit) {
    auto const done = complete_handshake(sockets_.one.get(), initiator_of(key_), 0.05);
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.failure().code(), OMPX_ERR_TIMEOUT);
}

TEST_F(secure_complete_handshake, a_peer_that_closes_has_another_secret) {
    sockets_.other.reset();
    auto const done = complete_handshake(sockets_.one.get(), initiator_of(key_), 20);
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.failure().code(), OMPX_ERR_PEER);
}

TEST_F(secure_complete_handshake, a_refusal_reaches_the_initiator_with_its_reason) {
    auto responding = std::async(std::launch::async, [&] {
        return complete_handshake(sockets_.other.get(),
                                  handshake::respond(key_, options_of(rank_5), {role::agent, 0, 8}),
                                  20);
    });
    auto const initiated = complete_handshake(sockets_.one.get(), initiator_of(key_), 20);
    ASSERT_FALSE(initiated.ok());
    EXPECT_THAT(initiated.failure().message(), HasSubstr("rank 5 does not expect"));
    auto const responded = responding.get();
    ASSERT_FALSE(responded.ok());
    EXPECT_THAT(responded.failure().message(), HasSubstr("rank 2 connects"));
}

} // namespace
