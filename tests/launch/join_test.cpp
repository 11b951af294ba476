// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The rank's side of start-up, against a diomp-run that the test plays.
#include "launch/local/launcher.h"
#include "launch/local/protocol.h"
#include "launch/local/socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fcntl.h>
#include <map>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace diomp::launch::local {
namespace {

using testing::HasSubstr;

class join_test : public testing::Test {
protected:
    void SetUp() override {
        std::array<int, 2> ends{};
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
        ours_ = unique_fd(ends[0]);
        rank_fd_ = ends[1]; // join() takes it over
        ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
        watch_ = unique_fd(ends[0]);
        watch_writer_ = unique_fd(ends[1]);
        ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
        stacks_ = unique_fd(ends[0]);
        stacks_writer_ = unique_fd(ends[1]);
        rank_info_.rank = 1;
        rank_info_.size = 3;
        rank_info_.node_size = 3;
        rank_info_.job_id = "job";
        rank_info_.host = "node";
        environment_ = {{fd_variable, std::to_string(rank_fd_)},
                        {rank_variable, "1"},
                        {size_variable, "3"},
                        {job_variable, "job"}};
    }
    void TearDown() override { close(rank_fd_); }

    void send_rank_info() {
        ASSERT_TRUE(
            send_first(ours_.get(), encode_rank_info(rank_info_), watch_.get(), stacks_.get())
                .ok());
    }
    result<std::unique_ptr<launcher>> join_with_environment() {
        return join([this](const char *name) {
            auto const found = environment_.find(name);
            return found == environment_.end() ? nullptr : found->second.c_str();
        });
    }
    /// The next packet from the rank.
    std::string receive() {
        std::string bytes(max_packet_bytes, '\0');
        ssize_t const size = recv(ours_.get(), bytes.data(), bytes.size(), 0);
        bytes.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
        return bytes;
    }
    void send(const std::string &packet) {
        ASSERT_EQ(::send(ours_.get(), packet.data(), packet.size(), 0),
                  static_cast<ssize_t>(packet.size()));
    }

    unique_fd ours_;
    unique_fd watch_;
    unique_fd watch_writer_;
    unique_fd stacks_;
    unique_fd stacks_writer_;
    int rank_fd_ = -1;
    rank_info_packet rank_info_;
    std::map<std::string, std::string> environment_;
};

TEST_F(join_test, gives_the_job_that_the_launcher_describes) {
    send_rank_info();
    auto joined = join_with_environment();
    ASSERT_TRUE(joined.ok()) << joined.failure().message();
    const job_info &info = joined.value()->info();
    EXPECT_EQ(info.rank, world_rank(1));
    EXPECT_EQ(info.size, 3);
    EXPECT_EQ(info.local, local_rank(1));
    EXPECT_EQ(info.local_ranks,
              (std::vector<world_rank>{world_rank(0), world_rank(1), world_rank(2)}));
    EXPECT_EQ(info.host, "node");
    EXPECT_EQ(info.job_id, "job");
    EXPECT_NE(fcntl(rank_fd_, F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_NE(fcntl(joined.value()->watch_fd(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(join_test, knows_the_ranks_of_its_node) {
    rank_info_.size = 7;
    environment_[size_variable] = "7";
    rank_info_.rank = 4;
    environment_[rank_variable] = "4";
    rank_info_.node_first = 3;
    rank_info_.node_size = 2;
    send_rank_info();
    auto joined = join_with_environment();
    ASSERT_TRUE(joined.ok()) << joined.failure().message();
    const job_info &info = joined.value()->info();
    EXPECT_EQ(info.size, 7);
    EXPECT_EQ(info.local, local_rank(1));
    EXPECT_EQ(info.local_size, 2);
    EXPECT_EQ(info.local_ranks, (std::vector<world_rank>{world_rank(3), world_rank(4)}));
}

TEST_F(join_test, values_of_another_node_are_asked_for_once) {
    rank_info_.node_size = 2;
    send_rank_info();
    auto joined = join_with_environment();
    ASSERT_TRUE(joined.ok());
    launcher &rank = *joined.value();
    auto const answer = [this](std::uint8_t found, std::string_view value) {
        packet_writer packet(packet_type::value);
        packet.number(found);
        packet.text(value);
        send(packet.take()); // lies ready, so the question does not block
    };
    auto const release = [this, &rank](std::uint8_t forget) {
        packet_writer packet(packet_type::fence_done);
        packet.number(forget);
        send(packet.take());
        ASSERT_TRUE(rank.fence().ok());
    };
    EXPECT_EQ(rank.get(world_rank(0), "k").failure().code(), OMPX_ERR_STATE); // own node: no packet
    answer(0, "");
    EXPECT_EQ(rank.get(world_rank(2), "k").failure().code(), OMPX_ERR_STATE);
    answer(1, "one");
    EXPECT_EQ(rank.get(world_rank(2), "k").value(), "one");
    release(0);
    EXPECT_EQ(rank.get(world_rank(2), "k").value(), "one"); // kept
    release(1);
    answer(1, "two");
    EXPECT_EQ(rank.get(world_rank(2), "k").value(), "two");
    receive(); // hello
    std::string const bytes = receive();
    packet_reader packet(bytes);
    EXPECT_EQ(packet.type<packet_type>(), packet_type::get);
    EXPECT_EQ(packet.number<std::uint32_t>(), 2U);
    EXPECT_EQ(packet.text(), "k");
}

TEST_F(join_test, says_hello_with_its_pid) {
    send_rank_info();
    auto joined = join_with_environment();
    ASSERT_TRUE(joined.ok());
    std::string const bytes = receive();
    packet_reader packet(bytes);
    EXPECT_EQ(packet.type<packet_type>(), packet_type::hello);
    EXPECT_EQ(packet.number<std::uint32_t>(), static_cast<std::uint32_t>(getpid()));
}

TEST_F(join_test, values_come_with_the_fence_and_not_before) {
    send_rank_info();
    auto joined = join_with_environment();
    ASSERT_TRUE(joined.ok());
    launcher &rank = *joined.value();
    ASSERT_TRUE(rank.put("mine", "one").ok());
    EXPECT_EQ(rank.get(world_rank(1), "mine").failure().code(), OMPX_ERR_STATE);
    // The answer lies ready, so the fence does not block.
    for (const std::string &packet : encode_entries({{1, "mine", "one"}, {2, "theirs", "two"}})) {
        send(packet);
    }
    send(packet_writer(packet_type::fence_done).take());
    ASSERT_TRUE(rank.fence().ok());
    EXPECT_EQ(rank.get(world_rank(1), "mine").value(), "one");
    EXPECT_EQ(rank.get(world_rank(2), "theirs").value(), "two");
    EXPECT_EQ(rank.get(world_rank(0), "theirs").failure().code(), OMPX_ERR_STATE);
    receive(); // hello
    std::string const bytes = receive();
    packet_reader packet(bytes);
    EXPECT_EQ(packet.type<packet_type>(), packet_type::entries);
    std::vector<entry> items;
    ASSERT_TRUE(decode_entries(packet, items).ok());
    EXPECT_EQ(items, (std::vector<entry>{{1, "mine", "one"}}));
    EXPECT_EQ(static_cast<packet_type>(receive().at(0)), packet_type::fence);
}

TEST_F(join_test, a_value_too_long_for_a_packet_is_refused) {
    send_rank_info();
    auto joined = join_with_environment();
    ASSERT_TRUE(joined.ok());
    EXPECT_EQ(joined.value()->put("k", std::string(max_entry_bytes, 'x')).failure().code(),
              OMPX_ERR_ARG);
}

TEST_F(join_test, fence_fails_when_the_launcher_is_gone) {
    send_rank_info();
    auto joined = join_with_environment();
    ASSERT_TRUE(joined.ok());
    ours_.reset();
    auto const fenced = joined.value()->fence();
    ASSERT_FALSE(fenced.ok());
    EXPECT_EQ(fenced.failure().code(), OMPX_ERR_PEER);
}

TEST_F(join_test, fence_fails_and_watch_fd_is_readable_when_the_job_ends) {
    send_rank_info();
    auto joined = join_with_environment();
    ASSERT_TRUE(joined.ok());
    pollfd ready{joined.value()->watch_fd(), POLLIN, 0};
    EXPECT_EQ(poll(&ready, 1, 0), 0);
    watch_writer_.reset();
    EXPECT_EQ(poll(&ready, 1, 0), 1);
    EXPECT_EQ(joined.value()->fence().failure().code(), OMPX_ERR_PEER);
}

TEST_F(join_test, abort_sends_code_and_message) {
    send_rank_info();
    auto joined = join_with_environment();
    ASSERT_TRUE(joined.ok());
    joined.value()->abort(17, "reason");
    receive(); // hello
    std::string const bytes = receive();
    packet_reader packet(bytes);
    EXPECT_EQ(packet.type<packet_type>(), packet_type::abort);
    EXPECT_EQ(packet.number<std::uint32_t>(), 17U);
    EXPECT_EQ(packet.text(), "reason");
}

TEST_F(join_test, the_loss_of_a_peer_is_reported) {
    send_rank_info();
    auto joined = join_with_environment();
    ASSERT_TRUE(joined.ok());
    receive(); // hello
    joined.value()->report_peer_failure(world_rank(5));
    joined.value()->report_peer_failure(std::nullopt);
    for (std::uint32_t const expected : {5U, unknown_peer}) {
        std::string const bytes = receive();
        packet_reader packet(bytes);
        EXPECT_EQ(packet.type<packet_type>(), packet_type::loss);
        EXPECT_EQ(packet.number<std::uint32_t>(), expected);
    }
}

TEST_F(join_test, who_shows_stacks_asks_for_the_others) {
    send_rank_info();
    auto joined = join_with_environment();
    ASSERT_TRUE(joined.ok());
    launcher &rank = *joined.value();
    receive(); // hello
    EXPECT_FALSE(rank.give_up(17, "reason"));
    rank.stacks_ready();
    EXPECT_TRUE(rank.give_up(17, "reason"));
    rank.stacks_shown();
    EXPECT_EQ(packet_reader(receive()).type<packet_type>(), packet_type::stacks_ready);
    std::string const bytes = receive();
    packet_reader packet(bytes);
    EXPECT_EQ(packet.type<packet_type>(), packet_type::give_up);
    EXPECT_EQ(packet.number<std::uint32_t>(), 17U);
    EXPECT_EQ(packet.text(), "reason");
    EXPECT_EQ(packet_reader(receive()).type<packet_type>(), packet_type::stacks_shown);
    pollfd ready{rank.stacks_fd(), POLLIN, 0};
    EXPECT_EQ(poll(&ready, 1, 0), 0);
    stacks_writer_.reset();
    EXPECT_EQ(poll(&ready, 1, 0), 1);
}

TEST_F(join_test, a_second_process_of_the_rank_is_told_so) {
    auto const joined = join_with_environment(); // the first has taken the welcome already
    ASSERT_FALSE(joined.ok());
    EXPECT_THAT(joined.failure().message(), HasSubstr("joined the job already"));
}

TEST_F(join_test, each_missing_variable_is_an_error_that_names_it) {
    for (const char *const name : {fd_variable, rank_variable, size_variable}) {
        auto const saved = environment_;
        environment_.erase(name);
        auto const joined = join_with_environment();
        ASSERT_FALSE(joined.ok());
        EXPECT_THAT(joined.failure().message(), HasSubstr(name));
        environment_ = saved;
    }
}

TEST_F(join_test, what_is_no_number_is_an_error) {
    for (const char *const text : {"", "x", "1x", "-1", "99999999999", " 1"}) {
        environment_[rank_variable] = text;
        auto const joined = join_with_environment();
        ASSERT_FALSE(joined.ok()) << text;
        EXPECT_EQ(joined.failure().code(), OMPX_ERR_ARG);
    }
}

TEST_F(join_test, a_descriptor_that_is_no_launcher_socket_is_left_alone) {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    unique_fd const reading(ends[0]);
    unique_fd const writing(ends[1]);
    ASSERT_EQ(write(writing.get(), "data", 4), 4);
    environment_[fd_variable] = std::to_string(reading.get());
    auto const joined = join_with_environment();
    ASSERT_FALSE(joined.ok());
    EXPECT_THAT(joined.failure().message(), HasSubstr("not diomp-run's socket"));
    std::array<char, 8> buffer{};
    EXPECT_EQ(read(reading.get(), buffer.data(), buffer.size()), 4);
}

TEST_F(join_test, an_environment_of_another_rank_is_an_error) {
    send_rank_info();
    environment_[rank_variable] = "2";
    auto const joined = join_with_environment();
    ASSERT_FALSE(joined.ok());
    EXPECT_THAT(joined.failure().message(),
                testing::AllOf(HasSubstr("rank 2 of 3"), HasSubstr("rank 1 of 3")));
}

TEST(forget_environment, removes_the_private_variables_only) {
    setenv(fd_variable, "9", 1);
    setenv(job_variable, "job", 1);
    setenv(user_rank_variable, "4", 1);
    EXPECT_TRUE(present([](const char *name) -> const char * { return std::getenv(name); }));
    forget_environment();
    EXPECT_FALSE(present([](const char *name) -> const char * { return std::getenv(name); }));
    EXPECT_STREQ(std::getenv(user_rank_variable), "4");
    unsetenv(user_rank_variable);
}

} // namespace
} // namespace diomp::launch::local
