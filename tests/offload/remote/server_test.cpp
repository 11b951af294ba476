// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The process that listens, with clients that say hello and no more, or less.
#include "offload/remote/control.h"
#include "offload/service/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace diomp::offload::service {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using remote::control_link;
using remote::frame;
using testing::HasSubstr;

constexpr double limit_s = 20;

int serve_until(int stop_fd, unique_fd listener, const server_options &options) {
    server lender(std::move(listener), options);
    return lender.run(stop_fd) ? 0 : 1;
}

class server_test : public testing::Test {
protected:
    ~server_test() override {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, nullptr, 0);
        }
    }

    void start(int devices, const std::function<void(server_options &)> &change = {}) {
        auto listener = remote::listen_at("127.0.0.1", 0);
        ASSERT_TRUE(listener.ok());
        port_ = remote::port_of(listener.value().get()).value();
        int ends[2];
        ASSERT_EQ(::pipe(ends), 0);
        stop_ = unique_fd(ends[1]);
        pid_ = ::fork();
        if (pid_ == 0) {
            ::alarm(60); // whatever happens, no process is left
            stop_.reset();
            server_options options;
            options.token = "a token";
            for (int i = 0; i < devices; ++i) {
                lent_device device;
                device.description.num_devices = static_cast<std::uint32_t>(devices);
                device.description.memory_bytes = 1 << 20;
                device.description.kind = "cpu";
                device.description.name = "device " + std::to_string(i);
                options.devices.push_back(device);
            }
            if (change) {
                change(options);
            }
            std::_Exit(serve_until(ends[0], listener.take(), options));
        }
        ::close(ends[0]);
    }

    [[nodiscard]] control_link connect() const {
        auto link = control_link::connect("127.0.0.1", port_, limit_s);
        EXPECT_TRUE(link.ok());
        return link.take();
    }
    static remote::hello_frame greeting() {
        remote::hello_frame hello;
        hello.token = "a token";
        return hello;
    }
    /// "welcome" and the name of the device, or why not.
    static std::string greet(control_link &link, const remote::hello_frame &hello) {
        if (!link.send(encode(hello))) {
            return "not sent";
        }
        return answer_of(link);
    }
    static std::string answer_of(control_link &link) {
        auto const answer = link.receive(limit_s);
        if (!answer) {
            return answer.failure().message();
        }
        packet_reader packet(answer.value());
        auto const type = packet.type<frame>();
        if (type == frame::refused) {
            return std::string(packet.text());
        }
        auto const offered = type == frame::welcome ? remote::decode_offer(packet)
                                                    : error(OMPX_ERR_ARG, "another frame");
        return offered ? "welcome " + offered.value().name : offered.failure().message();
    }
    std::string greet_with(const std::function<void(remote::hello_frame &)> &change) {
        auto link = connect();
        auto hello = greeting();
        change(hello);
        return greet(link, hello);
    }
    /// That one that behaves is served at once, whoever else is there.
    void expect_prompt_service() {
        auto const begin = clock::now();
        auto link = connect();
        EXPECT_EQ(greet(link, greeting()), "welcome device 0");
        EXPECT_LT(clock::now() - begin, 5s);
    }
    int status_at_end() {
        int how = 0;
        EXPECT_EQ(::waitpid(pid_, &how, 0), pid_);
        pid_ = 0;
        return how;
    }

    int port_ = 0;
    pid_t pid_ = 0;
    unique_fd stop_;
};

/// An unframed connection.
void write_raw(const control_link &link, std::string_view bytes) {
    EXPECT_EQ(::send(link.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
}

TEST_F(server_test, describes_each_device) {
    start(3);
    for (std::uint32_t const device : {0U, 2U, 1U}) {
        EXPECT_EQ(greet_with([&](auto &hello) { hello.device = device; }),
                  "welcome device " + std::to_string(device));
    }
}

TEST_F(server_test, refuses_what_it_has_not) {
    start(2);
    EXPECT_THAT(greet_with([](auto &hello) { hello.device = 2; }), HasSubstr("no such device"));
    EXPECT_THAT(greet_with([](auto &hello) { hello.device = ~0U; }), HasSubstr("no such device"));
}

TEST_F(server_test, refuses_wrong_tokens_first) {
    start(1);
    for (char const *const token : {"", "a", "a toke", "a tokens", "A token", "a tokena token"}) {
        std::string const answer = greet_with([&](auto &hello) {
            hello.token = token;
            hello.version += 1; // no stranger learns which one this is
            hello.device = 99;
        });
        EXPECT_THAT(answer, HasSubstr("wrong token"));
        EXPECT_THAT(answer, testing::Not(HasSubstr("version")));
    }
}

TEST_F(server_test, refuses_other_versions) {
    start(1);
    EXPECT_THAT(greet_with([](auto &hello) { hello.version += 1; }), HasSubstr("another version"));
}

TEST_F(server_test, ends_a_refused_connection) {
    start(1);
    auto link = connect();
    auto hello = greeting();
    hello.token = "wrong";
    EXPECT_THAT(greet(link, hello), HasSubstr("wrong token"));
    EXPECT_FALSE(link.receive(limit_s).ok());
}

TEST_F(server_test, closes_on_those_who_talk_nonsense) {
    start(1);
    std::string long_frame("\0\0\0\x40", 4);
    std::string other_frame("\2\0\0\0\3x", 6);
    std::string not_ours("\x19\0\0\0\1not the magic of a hello", 29);
    for (std::string const &bytes :
         {long_frame, other_frame, not_ours, std::string(5000, '\xff'), std::string(4, '\0')}) {
        auto link = connect();
        write_raw(link, bytes);
        auto const over = link.receive(limit_s);
        ASSERT_FALSE(over.ok());
        EXPECT_EQ(over.failure().code(), OMPX_ERR_PEER);
    }
    expect_prompt_service();
}

TEST_F(server_test, is_not_held_up_by_strangers) {
    start(1);
    std::vector<control_link> strangers;
    std::string const whole = encode(greeting());
    auto const length = static_cast<std::uint32_t>(whole.size());
    std::string const begin(reinterpret_cast<const char *>(&length), sizeof length);
    for (std::size_t size = 0; size < begin.size() + whole.size(); size += 3) {
        strangers.push_back(connect());
        write_raw(strangers.back(), (begin + whole).substr(0, size));
    }
    expect_prompt_service();
    // One that was slow is served as well.
    std::size_t const slow = strangers.size() / 2;
    write_raw(strangers[slow], (begin + whole).substr(3 * slow));
    EXPECT_EQ(answer_of(strangers[slow]), "welcome device 0");
    expect_prompt_service();
}

TEST_F(server_test, gives_strangers_up) {
    start(1, [](server_options &options) { options.greeting_timeout_s = 0.2; });
    auto silent = connect();
    auto begun = connect();
    write_raw(begun, std::string("\x30\0", 2));
    EXPECT_EQ(silent.receive(limit_s).failure().code(), OMPX_ERR_PEER);
    EXPECT_EQ(begun.receive(limit_s).failure().code(), OMPX_ERR_PEER);
    expect_prompt_service();
}

TEST_F(server_test, has_room_again_after_a_crowd) {
    start(1, [](server_options &options) { options.greeting_timeout_s = 0.5; });
    std::vector<control_link> crowd;
    for (int i = 0; i < 100; ++i) {
        crowd.push_back(connect());
    }
    auto const end = clock::now() + 20s;
    std::string answer;
    while (answer != "welcome device 0" && clock::now() < end) {
        auto link = connect();
        answer = greet(link, greeting());
    }
    EXPECT_EQ(answer, "welcome device 0");
}

TEST_F(server_test, has_a_limit_of_sessions) {
    start(1, [](server_options &options) { options.most_sessions = 2; });
    auto first = connect();
    auto second = connect();
    EXPECT_EQ(greet(first, greeting()), "welcome device 0");
    EXPECT_EQ(greet(second, greeting()), "welcome device 0");
    EXPECT_THAT(greet_with([](auto &) {}), HasSubstr("too many sessions"));
    first.shut();
    auto const end = clock::now() + 20s;
    std::string answer;
    while (answer != "welcome device 0" && clock::now() < end) {
        std::this_thread::sleep_for(5ms);
        answer = greet_with([](auto &) {});
    }
    EXPECT_EQ(answer, "welcome device 0");
}

TEST_F(server_test, tells_how_a_session_ended) {
    start(1);
    auto link = connect();
    EXPECT_EQ(greet(link, greeting()), "welcome device 0");
    ASSERT_TRUE(link.send("\x63no join").ok());
    std::string told;
    for (auto answer = link.receive(limit_s); answer; answer = link.receive(limit_s)) {
        packet_reader packet(answer.value());
        EXPECT_EQ(packet.type<frame>(), frame::ended);
        told += packet.text();
        told += '\n';
    }
    EXPECT_THAT(told, HasSubstr("which rank of what world this is"));
}

TEST_F(server_test, once_is_over_with_its_last_session) {
    start(2, [](server_options &options) { options.once = true; });
    {
        auto refused = connect(); // is none
        EXPECT_THAT(greet(refused, {}), HasSubstr("wrong token"));
        auto first = connect();
        auto second = connect();
        EXPECT_EQ(greet(first, greeting()), "welcome device 0");
        EXPECT_EQ(greet(second, greeting()), "welcome device 0");
        EXPECT_EQ(::waitpid(pid_, nullptr, WNOHANG), 0);
    }
    EXPECT_EQ(status_at_end(), 0);
}

TEST_F(server_test, takes_its_sessions_along_at_any_time) {
    start(1);
    auto link = connect();
    EXPECT_EQ(greet(link, greeting()), "welcome device 0");
    ::kill(pid_, SIGKILL); // the session may not have begun
    status_at_end();
    EXPECT_EQ(link.receive(limit_s).failure().code(), OMPX_ERR_PEER);
}

TEST_F(server_test, ends_its_sessions_when_it_is_asked_to_end) {
    start(1);
    auto link = connect();
    EXPECT_EQ(greet(link, greeting()), "welcome device 0");
    auto silent = connect();
    ASSERT_EQ(::write(stop_.get(), "x", 1), 1);
    EXPECT_EQ(status_at_end(), 0);
    EXPECT_EQ(link.receive(limit_s).failure().code(), OMPX_ERR_PEER);
    EXPECT_EQ(silent.receive(limit_s).failure().code(), OMPX_ERR_PEER);
}

} // namespace
} // namespace diomp::offload::service
