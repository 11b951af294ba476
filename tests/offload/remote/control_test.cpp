// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/client.h"
#include "offload/remote/control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/socket.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace diomp::offload::remote {
namespace {

using testing::HasSubstr;

class control : public testing::Test {
protected:
    control() {
        int ends[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        here_.emplace(unique_fd(ends[0]));
        there_.emplace(unique_fd(ends[1]));
    }
    /// Bytes as they are, from the other side.
    void write_raw(std::string_view bytes) {
        ASSERT_EQ(::write(there_->fd(), bytes.data(), bytes.size()),
                  static_cast<ssize_t>(bytes.size()));
    }
    static std::string length(std::uint32_t nbytes) {
        return {reinterpret_cast<const char *>(&nbytes), sizeof nbytes};
    }

    std::optional<control_link> here_;
    std::optional<control_link> there_;
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
    auto const exchange = [&](control_link &link, std::string &got) {
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
    here_->limit_frames(100);
    ASSERT_TRUE(there_->send(std::string(100, 'a')).ok());
    EXPECT_TRUE(here_->receive(5).ok());
    ASSERT_TRUE(there_->send(std::string(101, 'a')).ok());
    auto const refused = here_->receive(5);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.failure().code(), OMPX_ERR_ARG);
    EXPECT_THAT(refused.failure().message(), HasSubstr("101 bytes"));
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
        int ends[2];
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        control_link link{unique_fd(ends[0])};
        {
            unique_fd const peer(ends[1]);
            ASSERT_EQ(::write(peer.get(), begin.data(), begin.size()),
                      static_cast<ssize_t>(begin.size()));
        }
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
    here_->shut();
    waiting.join();
}

TEST(control_connect, finds_who_listens_and_nobody_else) {
    auto listener = listen_at("127.0.0.1", 0);
    ASSERT_TRUE(listener.ok()) << listener.failure().message();
    auto const port = port_of(listener.value().get());
    ASSERT_TRUE(port.ok());
    EXPECT_TRUE(control_link::connect("localhost", port.value(), 5).ok());
    EXPECT_TRUE(control_link::connect("127.0.0.1", port.value(), 5).ok());
    listener.value().reset();
    auto const nobody = control_link::connect("127.0.0.1", port.value(), 5);
    ASSERT_FALSE(nobody.ok());
    EXPECT_EQ(nobody.failure().code(), OMPX_ERR_PEER);
    EXPECT_THAT(nobody.failure().message(), HasSubstr(std::to_string(port.value())));
    EXPECT_FALSE(control_link::connect("no-such-host.invalid", 1, 5).ok());
}

TEST(control_connect, a_port_is_listened_at_once) {
    auto const first = listen_at("127.0.0.1", 0);
    ASSERT_TRUE(first.ok());
    auto const port = port_of(first.value().get());
    ASSERT_TRUE(port.ok());
    EXPECT_FALSE(listen_at("127.0.0.1", port.value()).ok());
}

// ---- A client and what only looks like a service

TEST(control_connect, a_service_that_says_nothing_is_given_up) {
    auto const listener = listen_at("127.0.0.1", 0);
    ASSERT_TRUE(listener.ok());
    client::options chosen;
    chosen.services = {{.host = "127.0.0.1", .port = port_of(listener.value().get()).value()}};
    chosen.token = "t";
    chosen.connect_timeout_s = 0.2;
    auto const begin = std::chrono::steady_clock::now();
    auto const made = client::connect(chosen);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.failure().code(), OMPX_ERR_TIMEOUT);
    EXPECT_THAT(made.failure().message(), HasSubstr("does not greet"));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

// ---- Tokens

class token_file : public testing::Test {
protected:
    token_file() : path_(testing::TempDir() + "diomp-token-" + std::to_string(::getpid())) {}
    ~token_file() override { ::unlink(path_.c_str()); }
    void write(const std::string &text, mode_t mode) {
        std::ofstream(path_) << text;
        ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
    }
    std::string const path_;
};

TEST_F(token_file, is_read_without_the_end_of_its_line) {
    for (char const *const text : {"secret", "secret\n", "secret\r\n"}) {
        write(text, 0600);
        auto const token = read_token(nullptr, path_.c_str());
        ASSERT_TRUE(token.ok()) << token.failure().message();
        EXPECT_EQ(token.value(), "secret");
    }
    write("two words \n", 0400);
    EXPECT_EQ(read_token("", path_.c_str()).value(), "two words ");
}

TEST_F(token_file, comes_after_the_token_itself) {
    write("of the file", 0600);
    EXPECT_EQ(read_token("itself", path_.c_str()).value(), "itself");
    EXPECT_EQ(read_token("itself", "/no/such/file").value(), "itself");
}

TEST_F(token_file, that_others_can_read_is_refused) {
    for (mode_t const mode : {0644U, 0640U, 0604U, 0620U, 0601U}) {
        write("secret", mode);
        auto const token = read_token(nullptr, path_.c_str());
        ASSERT_FALSE(token.ok()) << mode;
        EXPECT_THAT(token.failure().message(), HasSubstr(path_));
        EXPECT_THAT(token.failure().remedy(), HasSubstr("chmod 600"));
        EXPECT_THAT(token.failure().message(), testing::Not(HasSubstr("secret")));
    }
}

TEST_F(token_file, without_a_token_is_refused) {
    for (std::string const &text : {std::string(), std::string("\n"), std::string("\r\n\n")}) {
        write(text, 0600);
        EXPECT_FALSE(read_token(nullptr, path_.c_str()).ok());
    }
    write(std::string(max_token_bytes, 't'), 0600);
    EXPECT_TRUE(read_token(nullptr, path_.c_str()).ok());
    write(std::string(max_token_bytes + 1, 't'), 0600);
    EXPECT_FALSE(read_token(nullptr, path_.c_str()).ok());
}

TEST_F(token_file, must_be_there) {
    EXPECT_THAT(read_token(nullptr, "/no/such/file").failure().message(),
                HasSubstr("/no/such/file"));
    EXPECT_FALSE(read_token(nullptr, nullptr).ok());
    EXPECT_FALSE(read_token("", "").ok());
    EXPECT_FALSE(read_token(nullptr, "/tmp").ok()); // no file
}

} // namespace
} // namespace diomp::offload::remote
