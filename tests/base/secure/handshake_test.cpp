// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/secure/handshake.h"
#include "base/secure/pairing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>

namespace {

using namespace diomp::secure;
using namespace diomp::secure::testing;
using ::testing::HasSubstr;
using state = handshake::state;

constexpr role all_roles[] = {role::rank,    role::head,    role::agent,   role::client,
                              role::service, role::session, role::launcher};
constexpr purpose all_purposes[] = {purpose::transfers, purpose::multihost_launch,
                                    purpose::device_service, purpose::local_launch};

class secure_handshake : public ::testing::Test {
protected:
    secret key_ = secret::random();
    handshake initiator_ = initiator_of(key_);
    handshake responder_ = responder_of(key_);
};

TEST_F(secure_handshake, both_ends_learn_who_the_other_is_and_share_keys) {
    run(initiator_, responder_);
    ASSERT_EQ(initiator_.condition(), state::done);
    ASSERT_EQ(responder_.condition(), state::done);
    session_keys at_initiator = initiator_.take_session_keys();
    session_keys at_responder = responder_.take_session_keys();
    EXPECT_EQ(at_initiator.peer, rank_5);
    EXPECT_EQ(at_responder.peer, rank_2);
    EXPECT_EQ(open_text(at_responder.receiving, seal_text(at_initiator.sending, "there")), "there");
    EXPECT_EQ(open_text(at_initiator.receiving, seal_text(at_responder.sending, "back")), "back");
}

TEST_F(secure_handshake, directions_and_connections_have_different_keys) {
    run(initiator_, responder_);
    handshake other_initiator = initiator_of(key_);
    handshake other_responder = responder_of(key_);
    run(other_initiator, other_responder);
    session_keys at_initiator = initiator_.take_session_keys();
    session_keys at_responder = responder_.take_session_keys();
    session_keys other = other_responder.take_session_keys();
    std::string const message = seal_text(at_initiator.sending, "text");
    EXPECT_EQ(open_text(other.receiving, message), std::nullopt);
    EXPECT_EQ(open_text(at_initiator.receiving, message), std::nullopt); // reflected
    EXPECT_EQ(open_text(at_responder.receiving, message), "text");
}

TEST_F(secure_handshake, bytes_may_come_one_by_one) {
    for (unsigned char const each : take_output(initiator_)) {
        EXPECT_TRUE(responder_.output().empty());
        EXPECT_EQ(responder_.receive({&each, 1}), 1);
    }
    for (unsigned char const each : take_output(responder_)) {
        initiator_.receive({&each, 1});
    }
    for (unsigned char const each : take_output(initiator_)) {
        EXPECT_EQ(responder_.condition(), state::running);
        responder_.receive({&each, 1});
    }
    EXPECT_EQ(initiator_.condition(), state::done);
    EXPECT_EQ(responder_.condition(), state::done);
}

TEST_F(secure_handshake, output_may_leave_in_pieces) {
    bytes hello;
    while (!initiator_.output().empty()) {
        hello.push_back(initiator_.output().front());
        initiator_.discard_output(1);
    }
    EXPECT_EQ(hello.size(), handshake::hello_bytes);
    responder_.receive(hello);
    EXPECT_TRUE(responder_.has_plausible_peer());
}

TEST_F(secure_handshake, bytes_after_the_handshake_are_left_alone) {
    bytes const hello = take_output(initiator_);
    bytes with_more = hello;
    with_more.resize(hello.size() + handshake::proof_bytes - 1);
    EXPECT_EQ(responder_.num_missing(), hello.size());
    EXPECT_EQ(responder_.receive(with_more), with_more.size()); // a proof that is not complete
    EXPECT_EQ(responder_.condition(), state::running);
    EXPECT_EQ(responder_.num_missing(), 1);

    handshake other = responder_of(key_);
    handshake from = initiator_of(key_);
    other.receive(take_output(from));
    from.receive(take_output(other));
    bytes proof_and_frame = take_output(from);
    proof_and_frame.resize(proof_and_frame.size() + 100);
    EXPECT_EQ(other.receive(proof_and_frame), handshake::proof_bytes);
    EXPECT_EQ(other.condition(), state::done);
    EXPECT_EQ(other.num_missing(), 0);
    EXPECT_EQ(other.receive(proof_and_frame), 0);
}

TEST_F(secure_handshake, another_secret_gets_no_byte_back) {
    handshake stranger = initiator_of(secret::random());
    responder_.receive(take_output(stranger));
    EXPECT_EQ(responder_.condition(), state::unauthenticated);
    EXPECT_TRUE(responder_.output().empty());
    EXPECT_FALSE(responder_.has_plausible_peer());
}

TEST_F(secure_handshake, random_bytes_get_no_byte_back) {
    bytes noise(handshake::hello_bytes);
    std::iota(noise.begin(), noise.end(), static_cast<unsigned char>(3));
    responder_.receive(noise);
    EXPECT_EQ(responder_.condition(), state::unauthenticated);
    EXPECT_TRUE(responder_.output().empty());
}

TEST_F(secure_handshake, an_initiator_refuses_a_responder_without_the_secret) {
    bytes answer(handshake::response_bytes, 0x5a);
    initiator_.receive(answer);
    EXPECT_EQ(initiator_.condition(), state::unauthenticated);
    initiator_.discard_output(handshake::hello_bytes);
    EXPECT_TRUE(initiator_.output().empty());
    EXPECT_THAT(initiator_.describe_failure(), HasSubstr("rank 5"));
}

/// All bits of one message, each in a handshake that had been fine so far.
template <typename Deliver>
void expect_every_flip_fails(std::size_t nbytes, Deliver deliver) {
    for (std::size_t bit = 0; bit < 8 * nbytes; ++bit) {
        EXPECT_EQ(deliver(bit), state::unauthenticated) << "bit " << bit;
    }
}

void flip(bytes &message, std::size_t bit) {
    message[bit / 8] = static_cast<unsigned char>(message[bit / 8] ^ (1U << (bit % 8)));
}

TEST_F(secure_handshake, every_flipped_bit_of_every_message_ends_it) {
    bytes const hello = take_output(initiator_);
    expect_every_flip_fails(hello.size(), [&](std::size_t bit) {
        bytes changed = hello;
        flip(changed, bit);
        handshake responder = responder_of(key_);
        responder.receive(changed);
        EXPECT_TRUE(responder.output().empty());
        return responder.condition();
    });
    responder_.receive(hello);
    bytes const answer = take_output(responder_);
    expect_every_flip_fails(answer.size(), [&](std::size_t bit) {
        bytes changed = answer;
        flip(changed, bit);
        handshake initiator = initiator_;
        initiator.receive(changed);
        EXPECT_TRUE(initiator.output().empty());
        return initiator.condition();
    });
    initiator_.receive(answer);
    bytes const proof = take_output(initiator_);
    expect_every_flip_fails(proof.size(), [&](std::size_t bit) {
        bytes changed = proof;
        flip(changed, bit);
        handshake responder = responder_;
        responder.receive(changed);
        return responder.condition();
    });
    responder_.receive(proof);
    EXPECT_EQ(responder_.condition(), state::done);
}

TEST_F(secure_handshake, a_recorded_handshake_proves_nothing) {
    transcript const recorded = run(initiator_, responder_);
    handshake responder = responder_of(key_);
    responder.receive(recorded.hello);
    EXPECT_TRUE(responder.has_plausible_peer());
    EXPECT_NE(take_output(responder), recorded.answer);
    responder.receive(recorded.proof);
    EXPECT_EQ(responder.condition(), state::unauthenticated);

    handshake initiator = initiator_of(key_);
    initiator.receive(recorded.answer);
    EXPECT_EQ(initiator.condition(), state::unauthenticated);
}

TEST_F(secure_handshake, what_a_replay_gets_back_differs_each_time) {
    bytes const hello = take_output(initiator_);
    handshake first = responder_of(key_);
    handshake second = responder_of(key_);
    first.receive(hello);
    second.receive(hello);
    bytes const one = take_output(first);
    bytes const other = take_output(second);
    // The nonces differ, and so does every later part.
    for (std::size_t begin = 0; begin < one.size(); begin += 8) {
        EXPECT_FALSE(std::equal(one.begin() + static_cast<long>(begin),
                                one.begin() + static_cast<long>(begin) + 8,
                                other.begin() + static_cast<long>(begin)));
    }
}

TEST_F(secure_handshake, messages_that_come_back_to_their_sender_fail) {
    // To the initiator itself.
    bytes const hello = take_output(initiator_);
    handshake copy = initiator_;
    copy.receive(hello);
    EXPECT_EQ(copy.condition(), state::unauthenticated);
    // To the listener of the same rank.
    handshake own_listener = handshake::respond(key_, options_of(rank_2), eight_ranks);
    own_listener.receive(hello);
    EXPECT_EQ(own_listener.condition(), state::unauthenticated);
    // The answer to the responder.
    responder_.receive(hello);
    responder_.receive(take_output(responder_));
    EXPECT_EQ(responder_.condition(), state::unauthenticated);
}

TEST_F(secure_handshake, a_rank_does_not_take_itself_for_another) {
    handshake to_itself = handshake::initiate(key_, options_of(rank_5), rank_5);
    run(to_itself, responder_);
    EXPECT_EQ(to_itself.condition(), state::wrong_peer);
    EXPECT_EQ(responder_.condition(), state::wrong_peer);
}

TEST_F(secure_handshake, the_wrong_responder_is_noticed) {
    for (std::uint32_t number = 0; number < 8; ++number) {
        handshake initiator = initiator_of(key_); // means rank 5
        handshake responder =
            handshake::respond(key_, options_of({role::rank, number}), eight_ranks);
        run(initiator, responder);
        bool const is_right = number == 5;
        EXPECT_EQ(responder.condition(), is_right ? state::done : state::unauthenticated);
        EXPECT_EQ(initiator.condition(), is_right ? state::done : state::running);
    }
}

TEST_F(secure_handshake, an_initiator_that_is_not_expected_is_refused_with_a_reason) {
    for (std::uint32_t const number : {8U, 9U, 0xffffffffU}) {
        handshake initiator = handshake::initiate(key_, options_of({role::rank, number}), rank_5);
        handshake responder = responder_of(key_);
        run(initiator, responder);
        EXPECT_EQ(responder.condition(), state::wrong_peer);
        EXPECT_EQ(initiator.condition(), state::wrong_peer);
        EXPECT_THAT(initiator.describe_failure(), HasSubstr("does not expect"));
    }
    party_range const only_3{role::rank, 3, 1};
    EXPECT_TRUE(only_3.contains({role::rank, 3}));
    EXPECT_FALSE(only_3.contains({role::rank, 2}));
    EXPECT_FALSE(only_3.contains({role::rank, 4}));
}

TEST_F(secure_handshake, another_version_is_refused_with_a_reason) {
    handshake_options newer = options_of(rank_2);
    newer.version = 8;
    handshake initiator = handshake::initiate(key_, newer, rank_5);
    run(initiator, responder_);
    EXPECT_EQ(initiator.condition(), state::wrong_version);
    EXPECT_EQ(responder_.condition(), state::wrong_version);
    EXPECT_THAT(initiator.describe_failure(), HasSubstr("version 7"));
    EXPECT_THAT(responder_.describe_failure(), HasSubstr("version 8"));
}

// A recorded message of an old release does not open what the answer to it says.
TEST_F(secure_handshake, the_reason_for_a_refusal_is_sealed) {
    handshake_options newer = options_of(rank_2);
    newer.version = 8;
    handshake initiator = handshake::initiate(key_, newer, rank_5);
    responder_.receive(take_output(initiator));
    bytes const answer = take_output(responder_);
    handshake stranger = handshake::initiate(secret::random(), newer, rank_5);
    stranger.receive(answer);
    EXPECT_EQ(stranger.condition(), state::unauthenticated);
}

/// Every combination of what an initiator is and means with what a responder is and expects.
TEST_F(secure_handshake, only_the_expected_role_and_purpose_get_through) {
    int num_done = 0;
    for (role const own : all_roles) {
        for (role const meant : all_roles) {
            for (role const actual : all_roles) {
                for (role const expected : all_roles) {
                    handshake initiator =
                        handshake::initiate(key_, options_of({own, 1}), {meant, 2});
                    handshake responder =
                        handshake::respond(key_, options_of({actual, 2}), {expected, 1, 1});
                    run(initiator, responder);
                    bool const is_right = meant == actual && own == expected;
                    EXPECT_EQ(initiator.condition() == state::done, is_right);
                    EXPECT_EQ(responder.condition() == state::done, is_right);
                    num_done += is_right ? 1 : 0;
                }
            }
        }
    }
    EXPECT_EQ(num_done, 49);
}

TEST_F(secure_handshake, a_secret_opens_one_purpose_at_a_time) {
    for (purpose const ours : all_purposes) {
        for (purpose const theirs : all_purposes) {
            handshake initiator = handshake::initiate(key_, options_of(rank_2, ours), rank_5);
            handshake responder = handshake::respond(key_, options_of(rank_5, theirs), eight_ranks);
            run(initiator, responder);
            EXPECT_EQ(responder.condition(), ours == theirs ? state::done : state::unauthenticated);
            EXPECT_EQ(initiator.condition() == state::done, ours == theirs);
        }
    }
}

TEST_F(secure_handshake, the_stronger_protection_counts) {
    for (protection const ours : {protection::plain, protection::sealed}) {
        for (protection const theirs : {protection::plain, protection::sealed}) {
            handshake_options from = options_of(rank_2);
            handshake_options to = options_of(rank_5);
            from.wanted = ours;
            to.wanted = theirs;
            handshake initiator = handshake::initiate(key_, from, rank_5);
            handshake responder = handshake::respond(key_, to, eight_ranks);
            run(initiator, responder);
            bool const is_plain = ours == protection::plain && theirs == protection::plain;
            protection const right = is_plain ? protection::plain : protection::sealed;
            EXPECT_EQ(initiator.take_session_keys().mode, right);
            EXPECT_EQ(responder.take_session_keys().mode, right);
        }
    }
}

TEST_F(secure_handshake, the_first_message_looks_random) {
    // Over 64 handshakes every bit is set in about half of them.
    constexpr int times = 64;
    std::vector<int> num_set(8 * handshake::hello_bytes);
    for (int i = 0; i < times; ++i) {
        handshake initiator = initiator_of(key_);
        bytes const hello = take_output(initiator);
        for (std::size_t bit = 0; bit < num_set.size(); ++bit) {
            num_set[bit] += (hello[bit / 8] >> (bit % 8)) & 1;
        }
    }
    for (int const count : num_set) { // within 7 standard deviations
        EXPECT_GT(count, 4);
        EXPECT_LT(count, times - 4);
    }
}

// Reported, not judged: a busy machine takes longer.
TEST_F(secure_handshake, cost) {
    constexpr int times = 200;
    double best_us = 1e9;
    for (int i = 0; i < times; ++i) {
        auto const begin = std::chrono::steady_clock::now();
        handshake initiator = initiator_of(key_);
        handshake responder = responder_of(key_);
        run(initiator, responder);
        std::chrono::duration<double, std::micro> const time =
            std::chrono::steady_clock::now() - begin;
        best_us = std::min(best_us, time.count());
    }
    RecordProperty("both_ends_us", std::to_string(best_us));
    std::printf("both ends of a handshake: %.0f us\n", best_us);
}

} // namespace
