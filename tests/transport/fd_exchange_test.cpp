// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The Unix sockets by which ranks of a node hand out descriptors: processes of the same user are
// served, and those of others get nothing and harm nothing.
#include "transport/fd_exchange.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace diomp;

constexpr int limit_ms = 20000;
constexpr uid_t another_user = 65534; // the user that Linux calls nobody

std::string new_name() {
    static int number = 0;
    return fmt::format("diomp-test-{}-{}", ::getpid(), ++number);
}

unique_fd connect_to(const std::string &name) {
    unique_fd made(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    auto const length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    return ::connect(made.get(), reinterpret_cast<const sockaddr *>(&address), length) == 0
               ? std::move(made)
               : unique_fd();
}

/// Runs in a process of another user; true if it returns true there.
class process_of_another_user {
public:
    explicit process_of_another_user(const std::function<bool()> &body) : pid_(::fork()) {
        if (pid_ == 0) {
            bool const is_other = ::setgid(another_user) == 0 && ::setuid(another_user) == 0;
            ::_exit(is_other && body() ? 0 : 1);
        }
    }
    [[nodiscard]] bool succeeds() const {
        int status = -1;
        return ::waitpid(pid_, &status, 0) == pid_ && status == 0;
    }

private:
    pid_t pid_;
};

bool is_same_file(int one, int other) {
    struct stat first{};
    struct stat second{};
    return ::fstat(one, &first) == 0 && ::fstat(other, &second) == 0 &&
           first.st_ino == second.st_ino;
}

class fd_exchange : public testing::Test {
protected:
    void SetUp() override {
        if (::geteuid() != 0) {
            GTEST_SKIP() << "needs root, to become another user";
        }
    }
    std::string const name = new_name();
    unique_fd const file{::memfd_create("test", MFD_CLOEXEC)};
};

TEST_F(fd_exchange, another_user_gets_no_descriptor_and_takes_no_turn) {
    auto listener = transport::listen_for_peers(name, 1);
    ASSERT_TRUE(listener.ok());
    auto served = std::async(std::launch::async, [&] {
        return transport::serve_descriptor(listener.value().get(), file.get(), 1, limit_ms).ok();
    });
    constexpr int num_tries = 200;
    process_of_another_user const other([&] {
        for (int i = 0; i < num_tries; ++i) {
            unique_fd const socket = connect_to(name);
            char byte = 0;
            if (socket.valid() && ::recv(socket.get(), &byte, 1, 0) > 0) {
                return false;
            }
        }
        return !transport::fetch_descriptor(name, limit_ms).ok();
    });
    EXPECT_TRUE(other.succeeds());
    auto fetched = transport::fetch_descriptor(name, limit_ms);
    ASSERT_TRUE(fetched.ok());
    EXPECT_TRUE(is_same_file(fetched.value().get(), file.get()));
    EXPECT_TRUE(served.get());
}

TEST_F(fd_exchange, a_name_that_another_user_has_taken_is_an_error) {
    int ready[2] = {-1, -1};
    int over[2] = {-1, -1};
    ASSERT_EQ(::pipe(ready), 0);
    ASSERT_EQ(::pipe(over), 0);
    process_of_another_user const other([&] {
        auto listener = transport::listen_for_peers(name, 1);
        char byte = 1;
        bool const is_there = listener.ok() && ::write(ready[1], &byte, 1) == 1;
        ::close(over[1]);
        return ::read(over[0], &byte, 1) == 0 && is_there;
    });
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    auto fetched = transport::fetch_descriptor(name, limit_ms);
    ASSERT_FALSE(fetched.ok());
    EXPECT_THAT(fetched.failure().message(), testing::HasSubstr("belongs to another user"));
    auto listener = transport::listen_for_peers(name, 1);
    ASSERT_FALSE(listener.ok());
    EXPECT_THAT(listener.failure().message(), testing::HasSubstr(name));
    int const fd = file.get();
    std::byte const text{1};
    EXPECT_FALSE(transport::send_descriptors(name, {&text, 1}, {&fd, 1}).ok());
    ::close(over[1]);
    EXPECT_TRUE(other.succeeds());
    for (int const each : {ready[0], ready[1], over[0]}) {
        ::close(each);
    }
}

TEST_F(fd_exchange, another_user_delivers_nothing) {
    auto listener = transport::listen_for_peers(name, 1);
    ASSERT_TRUE(listener.ok());
    process_of_another_user const other([&] {
        unique_fd const socket = connect_to(name);
        return socket.valid() && ::send(socket.get(), "x", 1, MSG_NOSIGNAL) == 1;
    });
    EXPECT_TRUE(other.succeeds());
    // Its packet is there, and would come first.
    std::byte const text{8};
    int const fd = file.get();
    ASSERT_TRUE(transport::send_descriptors(name, {&text, 1}, {&fd, 1}).ok());
    auto got = transport::receive_descriptors(listener.value().get(), limit_ms);
    ASSERT_TRUE(got.ok());
    EXPECT_THAT(got.value().bytes, testing::ElementsAre(std::byte{8}));
    EXPECT_EQ(got.value().fds.size(), 1);
}

} // namespace
