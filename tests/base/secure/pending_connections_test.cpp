// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/secure/complete_handshake.h"
#include "base/secure/frame_codec.h"
#include "base/secure/pairing.h"
#include "base/secure/pending_connections.h"
#include "base/secure/sockets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <poll.h>
#include <sys/resource.h>
#include <thread>
#include <vector>

namespace {

using namespace diomp;
using namespace diomp::secure;
using namespace diomp::secure::testing;
using namespace std::chrono_literals;
using ::testing::HasSubstr;

class secure_pending : public ::testing::Test {
protected:
    void start(const pending_options &options = {}) {
        loopback_listener listener = listen_on_loopback();
        port_ = listener.port;
        auto made = pending_connections::create(
            std::move(listener.socket), [this] { return responder_of(key_); },
            [this](const std::string &text) { reports_.push_back(text); }, options);
        ASSERT_TRUE(made.ok());
        pending_ = std::make_unique<pending_connections>(made.take());
    }
    /// Lets the table work until the condition holds; false after 20 s.
    template <typename Condition>
    bool work_until(Condition condition) {
        auto const end = std::chrono::steady_clock::now() + 20s;
        while (!condition() && std::chrono::steady_clock::now() < end) {
            pollfd entry{pending_->fd(), POLLIN, 0};
            ::poll(&entry, 1, 10);
            for (auto &each : pending_->advance()) {
                proven_.push_back(std::move(each));
            }
        }
        return condition();
    }
    /// A rank of the job connects meanwhile, in a thread of its own.
    std::future<result<session_keys>> connect_rank(unique_fd &socket) {
        socket = connect_to(port_);
        return std::async(std::launch::async, [this, fd = socket.get()] {
            return complete_handshake(fd, initiator_of(key_), 20);
        });
    }
    /// True if the other end has closed the connection, or closes it within 20 s.
    static bool is_closed(const unique_fd &socket) {
        pollfd entry{socket.get(), POLLIN, 0};
        char byte = 0;
        return ::poll(&entry, 1, 20000) == 1 && ::recv(socket.get(), &byte, 1, 0) <= 0;
    }
    static bool is_open(const unique_fd &socket) {
        char byte = 0;
        return ::recv(socket.get(), &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
    }

    secret key_ = secret::random();
    std::uint16_t port_ = 0;
    std::vector<std::string> reports_;
    std::unique_ptr<pending_connections> pending_;
    std::vector<pending_connections::proven_connection> proven_;
};

TEST_F(secure_pending, a_peer_with_the_secret_comes_through) {
    start();
    unique_fd socket;
    auto connecting = connect_rank(socket);
    ASSERT_TRUE(work_until([&] { return !proven_.empty(); }));
    auto connected = connecting.get();
    ASSERT_TRUE(connected.ok());
    EXPECT_EQ(proven_.front().proven.peer, rank_2);
    EXPECT_EQ(pending_->size(), 0);
    EXPECT_TRUE(reports_.empty());
    std::string bytes;
    frame_encoder(std::move(connected.value().sending)).append(bytes, "a frame");
    frame_decoder decoder(std::move(proven_.front().proven.receiving), 100);
    ASSERT_GE(decoder.space().size(), bytes.size());
    std::memcpy(decoder.space().data(), bytes.data(), bytes.size());
    decoder.commit(bytes.size());
    EXPECT_EQ(decoder.next(), "a frame");
}

TEST_F(secure_pending, a_stranger_gets_no_byte_and_is_closed) {
    start();
    unique_fd const socket = connect_to(port_);
    std::string const noise(handshake::hello_bytes, 'n');
    ASSERT_EQ(::send(socket.get(), noise.data(), noise.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(noise.size()));
    ASSERT_TRUE(work_until([&] { return !reports_.empty(); }));
    EXPECT_TRUE(is_closed(socket));
    EXPECT_EQ(pending_->size(), 0);
    EXPECT_THAT(reports_.front(), HasSubstr("127.0.0.1"));
    EXPECT_THAT(reports_.front(), HasSubstr("does not prove"));
}

TEST_F(secure_pending, closed_connections_leave_at_once) {
    start();
    for (int i = 0; i < 100; ++i) {
        unique_fd const socket = connect_to(port_);
        ::send(socket.get(), "GE", 2, MSG_NOSIGNAL);
    }
    unique_fd socket;
    auto connecting = connect_rank(socket);
    ASSERT_TRUE(work_until([&] { return !proven_.empty(); }));
    EXPECT_TRUE(connecting.get().ok());
    EXPECT_TRUE(work_until([&] { return pending_->size() == 0; }));
}

TEST_F(secure_pending, the_oldest_silent_one_goes_when_the_table_is_full) {
    start({.max_silent = 4});
    std::vector<unique_fd> sockets;
    for (int i = 0; i < 6; ++i) {
        sockets.push_back(connect_to(port_));
    }
    ASSERT_TRUE(work_until([&] { return !is_open(sockets[0]) && !is_open(sockets[1]); }));
    for (std::size_t i = 2; i < sockets.size(); ++i) {
        EXPECT_TRUE(is_open(sockets[i])) << i;
    }
    EXPECT_THAT(reports_.front(), HasSubstr("too many unauthenticated connections"));
}

// The peer has sent its first message and is slow to send the last.
TEST_F(secure_pending, silent_ones_do_not_push_out_a_peer_on_its_way) {
    start({.max_silent = 4, .max_plausible = 4});
    handshake slow = initiator_of(key_);
    unique_fd const socket = connect_to(port_);
    bytes const hello = take_output(slow);
    ::send(socket.get(), hello.data(), hello.size(), MSG_NOSIGNAL);
    bytes answer(handshake::response_bytes);
    ASSERT_TRUE(work_until([&] {
        return ::recv(socket.get(), answer.data(), answer.size(), MSG_DONTWAIT | MSG_PEEK) ==
               static_cast<ssize_t>(answer.size());
    }));
    std::vector<unique_fd> idle;
    for (int i = 0; i < 300; ++i) {
        idle.push_back(connect_to(port_));
    }
    ASSERT_TRUE(work_until([&] { return is_open(idle[299]) && !is_open(idle[200]); }));
    slow.receive(answer);
    bytes const proof = take_output(slow);
    ::send(socket.get(), proof.data(), proof.size(), MSG_NOSIGNAL);
    EXPECT_TRUE(work_until([&] { return !proven_.empty(); }));
}

TEST_F(secure_pending, recorded_first_messages_have_their_own_bound) {
    start({.max_silent = 4, .max_plausible = 4});
    handshake recorded = initiator_of(key_);
    bytes const hello = take_output(recorded);
    std::vector<unique_fd> replays;
    for (int i = 0; i < 20; ++i) {
        replays.push_back(connect_to(port_));
        ::send(replays.back().get(), hello.data(), hello.size(), MSG_NOSIGNAL);
    }
    ASSERT_TRUE(work_until([&] { return reports_.size() > 2; }));
    EXPECT_LE(pending_->size(), 8);
    EXPECT_TRUE(proven_.empty());
    unique_fd socket;
    auto connecting = connect_rank(socket);
    EXPECT_TRUE(work_until([&] { return !proven_.empty(); }));
    EXPECT_TRUE(connecting.get().ok());
}

TEST_F(secure_pending, time_is_limited) {
    start({.time_limit = 50ms});
    unique_fd const silent = connect_to(port_);
    unique_fd const slow = connect_to(port_);
    ASSERT_TRUE(work_until([&] { return pending_->size() == 2; }));
    char const one = 'x';
    while (is_open(slow)) { // a byte now and then does not help
        ::send(slow.get(), &one, 1, MSG_NOSIGNAL);
        pollfd entry{pending_->fd(), POLLIN, 0};
        ASSERT_EQ(::poll(&entry, 1, 20000), 1); // the byte, or the timer
        (void)pending_->advance();
    }
    EXPECT_TRUE(work_until([&] { return pending_->size() == 0; }));
    EXPECT_TRUE(is_closed(silent));
}

TEST_F(secure_pending, reports_are_limited_and_counted) {
    start({.reports_per_minute = 2});
    std::string const noise(handshake::hello_bytes, 'n');
    for (int i = 0; i < 50; ++i) {
        unique_fd const socket = connect_to(port_);
        ::send(socket.get(), noise.data(), noise.size(), MSG_NOSIGNAL);
        ASSERT_TRUE(work_until([&] { return !is_open(socket); }));
    }
    EXPECT_EQ(reports_.size(), 2);
}

TEST_F(secure_pending, a_port_that_is_closed_takes_nobody) {
    start();
    pending_->stop_listening();
    EXPECT_FALSE(connect_to(port_).valid());
}

// The limit of descriptors is the process's: others of this test would notice.
TEST_F(secure_pending, used_up_descriptors_do_not_keep_it_busy) {
    start();
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    std::vector<unique_fd> callers;
    for (int i = 0; i < 3; ++i) {
        callers.push_back(connect_to(port_));
    }
    std::vector<unique_fd> all;
    rlimit const low{64, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
    for (;;) {
        unique_fd next(::dup(pending_->fd()));
        if (!next.valid()) {
            break;
        }
        all.push_back(std::move(next));
    }
    for (int i = 0; i < 4; ++i) {
        (void)pending_->advance();
    }
    pollfd entry{pending_->fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&entry, 1, 0), 0); // nothing is left to do
    EXPECT_THAT(reports_.at(0), HasSubstr("no descriptor is left"));
    all.clear();
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    unique_fd socket;
    auto connecting = connect_rank(socket);
    EXPECT_TRUE(work_until([&] { return !proven_.empty(); }));
    EXPECT_TRUE(connecting.get().ok());
}

} // namespace
