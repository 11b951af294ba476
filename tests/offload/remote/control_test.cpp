// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/control.h"
#include "offload/remote/control_pair.h"
#include "offload/remote/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace diomp::offload::remote {
namespace {

using testing::HasSubstr;

class control : public testing::Test {
protected:
    control() {
        diomp_test::control_pair made = diomp_test::make_control_pair();
        here_.emplace(std::move(made.client));
        there_.emplace(std::move(made.service));
    }
    /// Bytes as they are, from the other side.
    void write_raw(std::string_view bytes) {
        ASSERT_EQ(::write(there_->fd(), bytes.data(), bytes.size()),
                  static_cast<ssize_t>(bytes.size()));
    }
    static std::string length(std::uint32_t nbytes) {
        return {reinterpret_cast<const char *>(&nbytes), sizeof nbytes};
    }

    std::optional<control_connection> here_;
    std::optional<control_connection> there_;
};

TEST_F(control, frames_keep_their_bounds) {
    std::string const binary("\0\1\xff\0", 4);
    for (std::string const &packet : {std::string("a"), binary, std::string(3000, 'b')}) {
        ASSERT_TRUE(there_->send(packet).ok());
    }
    EXPECT_EQ(here_->receive(5).value(), "a");
    EXPECT_EQ(here_->receive(5).value(), binary);
    EXPECT_EQ(here_->receive(5).value(), std::string(3000, 'b'));
}

TEST_F(control, large_frames_go_both_ways_at_once) {
    std::string large(std::size_t{20} << 20, 'x');
    for (std::size_t i = 0; i < large.size(); i += 4099) {
        large[i] = static_cast<char>(i);
    }
    auto const exchange = [&](control_connection &link, std::string &got) {
        std::thread sender([&] { EXPECT_TRUE(link.send(large).ok()); });
        auto packet = link.receive(20);
        got = packet ? packet.take() : "";
        sender.join();
    };
    std::string got_here;
    std::string got_there;
    std::thread other([&] { exchange(*there_, got_there); });
    exchange(*here_, got_here);
    other.join();
    EXPECT_TRUE(got_here == large);
    EXPECT_TRUE(got_there == large);
}

TEST_F(control, senders_do_not_mix) {
    constexpr int rounds = 200;
    std::vector<std::thread> senders;
    for (char const letter : {'a', 'b', 'c'}) {
        senders.emplace_back([&, letter] {
            for (int i = 0; i < rounds; ++i) {
                EXPECT_TRUE(
                    there_->send(std::string(static_cast<std::size_t>(1 + i * 37), letter)));
            }
        });
    }
    std::array<std::size_t, 3> next{1, 1, 1};
    for (int i = 0; i < 3 * rounds; ++i) {
        auto packet = here_->receive(20);
        ASSERT_TRUE(packet.ok());
        char const letter = packet.value()[0];
        EXPECT_EQ(packet.value().find_first_not_of(letter), std::string::npos);
        auto &expected = next[static_cast<std::size_t>(letter - 'a')];
        EXPECT_EQ(packet.value().size(), expected);
        expected += 37;
    }
    for (auto &each : senders) {
        each.join();
    }
}

TEST_F(control, frames_that_are_too_long_end_the_connection) {
    write_raw(length(diomp::offload::remote::max_frame_bytes + 1));
    auto const refused = here_->receive(5);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.failure().code(), OMPX_ERR_ARG);
    EXPECT_THAT(refused.failure().message(), HasSubstr("1073741825 bytes"));
    auto const over = there_->receive(5);
    ASSERT_FALSE(over.ok());
    EXPECT_EQ(over.failure().code(), OMPX_ERR_PEER);
}

TEST_F(control, frames_without_bytes_end_the_connection) {
    write_raw(length(0));
    auto const refused = here_->receive(5);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.failure().code(), OMPX_ERR_ARG);
    EXPECT_FALSE(there_->receive(5).ok());
}

TEST_F(control, an_announced_length_alone_is_waited_for_with_a_limit) {
    write_raw(length(1000) + "a part");
    auto const begin = std::chrono::steady_clock::now();
    auto const late = here_->receive(0.1);
    ASSERT_FALSE(late.ok());
    EXPECT_EQ(late.failure().code(), OMPX_ERR_TIMEOUT);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST_F(control, silence_is_a_timeout_and_no_end) {
    auto const late = here_->receive(0.05);
    ASSERT_FALSE(late.ok());
    EXPECT_EQ(late.failure().code(), OMPX_ERR_TIMEOUT);
    ASSERT_TRUE(there_->send("now").ok());
    EXPECT_EQ(here_->receive(5).value(), "now");
}

TEST_F(control, a_peer_that_closes_is_an_error_on_both_paths) {
    for (std::string const &begin : {std::string(), length(10).substr(0, 2), length(10) + "half"}) {
        auto made = std::make_unique<diomp_test::control_pair>(diomp_test::make_control_pair());
        control_connection link(std::move(made->client));
        ASSERT_EQ(::write(made->service.fd(), begin.data(), begin.size()),
                  static_cast<ssize_t>(begin.size()));
        made.reset();
        auto const over = link.receive(5);
        ASSERT_FALSE(over.ok());
        EXPECT_EQ(over.failure().code(), OMPX_ERR_PEER);
        status const sent = link.send("for nobody"); // and no SIGPIPE
        ASSERT_FALSE(sent.ok());
        EXPECT_EQ(sent.failure().code(), OMPX_ERR_PEER);
    }
}

TEST_F(control, shut_ends_a_receive_that_waits) {
    std::thread waiting([&] {
        auto const over = here_->receive();
        ASSERT_FALSE(over.ok());
        EXPECT_EQ(over.failure().code(), OMPX_ERR_PEER);
    });
    here_->shut_down();
    waiting.join();
}

// ---- Two processes that send one after the other

/// Runs `body` with the service's end in a process that ends then.
int run_in_session(control_connection &there, frame_count &count,
                   const std::function<void(control_connection &)> &body) {
    there.share_count(count);
    pid_t const session = ::fork();
    if (session == 0) {
        body(there);
        std::_Exit(0);
    }
    int how = 0;
    ::waitpid(session, &how, 0);
    return how;
}

class control_handover : public control {
protected:
    control_handover()
        : count_(new(::mmap(nullptr, sizeof(frame_count), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0)) frame_count) {}
    ~control_handover() override { ::munmap(count_, sizeof *count_); }
    frame_count *count_;
};

// A crash in a region waits for that: the client has the frame before its sender has returned.
TEST_F(control_handover, a_frame_that_is_not_read_yet_is_being_sent) {
    EXPECT_FALSE(there_->is_sending());
    there_->share_count(*count_);
    EXPECT_FALSE(there_->is_sending());
    std::string const large(std::size_t{16} << 20, 'x'); // more than sockets keep
    std::thread sender([&] { EXPECT_TRUE(there_->send(large).ok()); });
    while (!there_->is_sending()) {
        std::this_thread::yield();
    }
    EXPECT_EQ(here_->receive().value().size(), large.size());
    sender.join();
    EXPECT_FALSE(there_->is_sending());
}

TEST_F(control_handover, a_service_goes_on_after_its_session) {
    ASSERT_TRUE(there_->send("before").ok());
    EXPECT_EQ(run_in_session(*there_, *count_,
                             [](control_connection &link) {
                                 static_cast<void>(link.send("first"));
                                 static_cast<void>(link.send("second"));
                             }),
              0);
    ASSERT_TRUE(there_->take_over().ok());
    ASSERT_TRUE(there_->send("after").ok());
    for (char const *const expected : {"before", "first", "second", "after"}) {
        auto const came = here_->receive(5);
        ASSERT_TRUE(came.ok()) << came.failure().message();
        EXPECT_EQ(came.value(), expected);
    }
}

TEST_F(control_handover, nothing_follows_half_a_frame) {
    EXPECT_EQ(run_in_session(*there_, *count_,
                             [](control_connection &link) {
                                 static_cast<void>(link.send("whole"));
                                 link.set_send_timeout(std::chrono::milliseconds(20));
                                 static_cast<void>(link.send(std::string(64U << 20, 'x')));
                             }),
              0);
    EXPECT_FALSE(there_->take_over().ok());
    EXPECT_EQ(here_->receive(5).value(), "whole");
    EXPECT_FALSE(here_->receive(5).ok());
}

// A session that is killed between a send and its count, or before the send.
TEST_F(control_handover, a_tcp_socket_knows_whether_the_last_frame_was_sent) {
    for (bool const was_sent : {true, false}) {
        diomp_test::control_pair over = diomp_test::make_tcp_control_pair();
        ASSERT_TRUE(over.service.send("before").ok());
        run_in_session(over.service, *count_, [&](control_connection &link) {
            static_cast<void>(link.send("first"));
            std::uint64_t const bytes = count_->complete_bytes.load();
            if (was_sent) {
                static_cast<void>(link.send("second"));
                count_->complete.fetch_sub(1);
                count_->complete_bytes.store(bytes);
            } else {
                count_->begun.fetch_add(1);
                count_->begun_bytes.fetch_add(100);
            }
        });
        ASSERT_TRUE(over.service.take_over().ok());
        ASSERT_TRUE(over.service.send("after").ok());
        std::vector<std::string> expected{"before", "first", "second", "after"};
        if (!was_sent) {
            expected.erase(expected.begin() + 2);
        }
        for (std::string const &each : expected) {
            auto const came = over.client.receive(5);
            ASSERT_TRUE(came.ok()) << came.failure().message();
            EXPECT_EQ(came.value(), each);
        }
    }
}

TEST_F(control_handover, nothing_follows_half_a_frame_over_tcp) {
    diomp_test::control_pair over = diomp_test::make_tcp_control_pair();
    run_in_session(over.service, *count_, [](control_connection &link) {
        static_cast<void>(link.send("whole"));
        link.set_send_timeout(std::chrono::milliseconds(20));
        static_cast<void>(link.send(std::string(64U << 20, 'x')));
    });
    EXPECT_FALSE(over.service.take_over().ok());
    EXPECT_EQ(over.client.receive(5).value(), "whole");
    EXPECT_FALSE(over.client.receive(5).ok());
}

TEST_F(control_handover, a_count_that_a_session_has_changed_does_no_harm) {
    for (std::uint64_t const count :
         {std::uint64_t{0}, std::uint64_t{7}, secure::max_frames + 1, ~std::uint64_t{0}}) {
        diomp_test::control_pair other = diomp_test::make_control_pair();
        ASSERT_TRUE(other.service.send("a frame").ok());
        run_in_session(other.service, *count_, [&](control_connection &) {
            count_->begun.store(count);
            count_->complete.store(count);
        });
        status const taken = other.service.take_over(); // and no panic
        EXPECT_EQ(taken.ok(), count == 7);
        static_cast<void>(other.service.send("after"));
        EXPECT_EQ(other.client.receive(5).value(), "a frame");
    }
}

// ---- Bytes that change on their way

TEST(control_sealed, a_changed_or_repeated_frame_ends_the_connection) {
    for (int const round : {0, 1, 2}) {
        // What the service sends passes through here.
        auto [client, service] = diomp_test::agree();
        int to_client[2];
        int to_service[2];
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, to_client), 0);
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, to_service), 0);
        control_connection here(unique_fd(to_client[0]), std::move(client));
        control_connection there(unique_fd(to_service[0]), std::move(service));
        unique_fd const out(to_client[1]);
        unique_fd const in(to_service[1]);
        ASSERT_TRUE(there.send("a frame").ok());
        std::string bytes(200, '\0');
        bytes.resize(static_cast<std::size_t>(::read(in.get(), bytes.data(), bytes.size())));
        EXPECT_EQ(bytes.find("a frame"), std::string::npos);
        if (round == 0) {
            bytes[6] ^= 1;
        } else if (round == 1) {
            bytes += bytes;
        }
        ASSERT_EQ(::write(out.get(), bytes.data(), bytes.size()),
                  static_cast<ssize_t>(bytes.size()));
        auto const first = here.receive(5);
        EXPECT_EQ(first.ok(), round != 0);
        if (round == 1) {
            auto const again = here.receive(5);
            ASSERT_FALSE(again.ok());
            EXPECT_THAT(again.failure().message(), HasSubstr("changed in transit"));
        }
    }
}

TEST(control_connect, a_port_is_listened_at_once) {
    auto const first = listen_at("127.0.0.1", 0);
    ASSERT_TRUE(first.ok());
    auto const port = port_of(first.value().get());
    ASSERT_TRUE(port.ok());
    EXPECT_FALSE(listen_at("127.0.0.1", port.value()).ok());
}

} // namespace
} // namespace diomp::offload::remote
