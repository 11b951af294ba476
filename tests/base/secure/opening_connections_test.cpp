// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/secure/opening_connections.h"
#include "base/secure/pairing.h"
#include "base/secure/pending_connections.h"
#include "base/secure/sockets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <poll.h>
#include <vector>

namespace {

using namespace diomp;
using namespace diomp::secure;
using namespace diomp::secure::testing;
using namespace std::chrono_literals;
using outcome = opening_connections::outcome;

class secure_opening : public ::testing::Test {
protected:
    secure_opening() {
        auto made = opening_connections::create();
        EXPECT_TRUE(made.ok());
        opening_ = std::make_unique<opening_connections>(made.take());
    }
    void listen(const secret &key) {
        loopback_listener listener = listen_on_loopback();
        port_ = listener.port;
        auto made = pending_connections::create(
            std::move(listener.socket), [&key] { return responder_of(key); },
            [](const std::string &) {});
        ASSERT_TRUE(made.ok());
        pending_ = std::make_unique<pending_connections>(made.take());
    }
    void open(std::uint64_t tag, std::chrono::milliseconds limit = 20s,
              std::chrono::milliseconds handshake_limit = 0s) {
        unique_fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        sockaddr_in const address = loopback_address(port_);
        ::connect(socket.get(), reinterpret_cast<const sockaddr *>(&address), sizeof(address));
        opening_->add(tag, std::move(socket), initiator_of(key_), limit, handshake_limit);
    }
    /// Lets both ends work until the condition holds; false after 20 s.
    bool work_until(const std::function<bool()> &condition) {
        auto const end = std::chrono::steady_clock::now() + 20s;
        while (!condition() && std::chrono::steady_clock::now() < end) {
            pollfd entries[] = {{opening_->fd(), POLLIN, 0},
                                {pending_ ? pending_->fd() : -1, POLLIN, 0}};
            ::poll(entries, 2, 10);
            for (auto &each : opening_->advance()) {
                ended_.push_back(std::move(each));
            }
            if (pending_) {
                num_accepted_ += pending_->advance().size();
            }
        }
        return condition();
    }

    secret key_ = secret::random();
    std::uint16_t port_ = 0;
    std::unique_ptr<opening_connections> opening_;
    std::unique_ptr<pending_connections> pending_;
    std::vector<opening_connections::attempt_result> ended_;
    std::size_t num_accepted_ = 0;
};

TEST_F(secure_opening, several_at_once_are_proven) {
    listen(key_);
    for (std::uint64_t tag = 0; tag < 10; ++tag) {
        open(tag);
    }
    ASSERT_TRUE(work_until([&] { return ended_.size() == 10 && num_accepted_ == 10; }));
    for (auto const &each : ended_) {
        EXPECT_EQ(each.how, outcome::proven) << each.why;
        EXPECT_EQ(each.proven->peer, rank_5);
        EXPECT_TRUE(each.socket.valid());
    }
    EXPECT_EQ(opening_->size(), 0);
}

/// A peer with several addresses: one way to it is enough, and the others prove nothing to it.
TEST_F(secure_opening, one_at_a_time_is_proven) {
    listen(key_);
    constexpr std::uint64_t num_ways = 4;
    for (std::uint64_t tag = 0; tag < num_ways; ++tag) {
        open(tag);
    }
    // Until all hellos have been answered: neither end has anything to do.
    bool has_answers = false;
    while (!has_answers) {
        pollfd entries[] = {{pending_->fd(), POLLIN, 0}, {opening_->fd(), POLLIN, 0}};
        ::poll(entries, 1, 200);
        if (entries[0].revents != 0) {
            num_accepted_ += pending_->advance().size();
        } else {
            ::poll(entries + 1, 1, 0);
            auto ended = opening_->advance();
            has_answers = !ended.empty();
            for (auto &each : ended) {
                ended_.push_back(std::move(each));
            }
        }
    }
    ASSERT_EQ(ended_.size(), 1);
    EXPECT_EQ(ended_[0].how, outcome::proven);
    for (std::uint64_t tag = 0; tag < num_ways; ++tag) {
        opening_->remove(tag);
    }
    EXPECT_TRUE(work_until([&] { return num_accepted_ == 1; }));
    for (pollfd entry{pending_->fd(), POLLIN, 0}; ::poll(&entry, 1, 200) > 0;) {
        num_accepted_ += pending_->advance().size();
    }
    EXPECT_EQ(num_accepted_, 1);
}

TEST_F(secure_opening, where_nothing_listens_is_unreachable) {
    port_ = listen_on_loopback().port; // and is closed again
    open(7);
    ASSERT_TRUE(work_until([&] { return !ended_.empty(); }));
    EXPECT_EQ(ended_[0].tag, 7);
    EXPECT_EQ(ended_[0].how, outcome::unreachable);
    EXPECT_FALSE(ended_[0].socket.valid());
}

TEST_F(secure_opening, a_listener_with_another_secret_learns_and_says_nothing) {
    secret const other = secret::random();
    listen(other);
    open(1);
    ASSERT_TRUE(work_until([&] { return !ended_.empty(); }));
    EXPECT_EQ(ended_[0].how, outcome::closed);
    EXPECT_EQ(num_accepted_, 0);
}

TEST_F(secure_opening, a_listener_that_answers_without_the_secret_is_refused) {
    loopback_listener const impostor = listen_on_loopback();
    port_ = impostor.port;
    open(1);
    pollfd entry{impostor.socket.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&entry, 1, 20000), 1);
    unique_fd const accepted(::accept(impostor.socket.get(), nullptr, nullptr));
    bytes const answer(handshake::response_bytes, 0x11);
    ASSERT_EQ(::send(accepted.get(), answer.data(), answer.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(answer.size()));
    ASSERT_TRUE(work_until([&] { return !ended_.empty(); }));
    EXPECT_EQ(ended_[0].how, outcome::refused);
    // It has got the hello and no more.
    bytes got(1000);
    ssize_t total = 0;
    for (ssize_t size = 1; size > 0; total += size) {
        size = ::recv(accepted.get(), got.data(), got.size(), 0);
        if (size < 0) {
            break; // reset, since the answer had more than was read
        }
    }
    EXPECT_LE(total, static_cast<ssize_t>(handshake::hello_bytes));
}

TEST_F(secure_opening, a_silent_listener_costs_the_time_limit) {
    loopback_listener const silent = listen_on_loopback();
    port_ = silent.port;
    open(1, 50ms);
    open(2, 20s);
    ASSERT_TRUE(work_until([&] { return !ended_.empty(); }));
    EXPECT_EQ(ended_[0].tag, 1);
    EXPECT_EQ(ended_[0].how, outcome::unreachable);
    EXPECT_EQ(opening_->size(), 1);
    opening_->remove(2);
    EXPECT_EQ(opening_->size(), 0);
}

/// The system has accepted the connection: the peer's process may be slow.
TEST_F(secure_opening, a_connected_peer_has_more_time) {
    listen(key_);
    open(1, 50ms, 20s);
    auto const end = std::chrono::steady_clock::now() + 300ms;
    while (std::chrono::steady_clock::now() < end) {
        pollfd entry{opening_->fd(), POLLIN, 0};
        ::poll(&entry, 1, 10);
        ASSERT_TRUE(opening_->advance().empty()); // it proves nothing yet, but the attempt goes on
    }
    ASSERT_TRUE(work_until([&] { return ended_.size() == 1 && num_accepted_ == 1; }));
    EXPECT_EQ(ended_[0].how, outcome::proven) << ended_[0].why;
}

TEST_F(secure_opening, a_silent_listener_costs_both_limits) {
    loopback_listener const silent = listen_on_loopback();
    port_ = silent.port;
    auto const begin = std::chrono::steady_clock::now();
    open(1, 50ms, 100ms);
    ASSERT_TRUE(work_until([&] { return !ended_.empty(); }));
    EXPECT_EQ(ended_[0].how, outcome::unreachable);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 150ms);
}

} // namespace
