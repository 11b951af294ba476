// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "core/rank_link.h"
#include "launch/local/protocol.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace diomp::run {
namespace {

namespace local = launch::local;

/// Writes down the events of one rank.
class recorder final : public link_events, public exchange_events {
public:
    void on_hello(int, pid_t) override { events.emplace_back("hello"); }
    void on_entries(std::vector<local::entry>) override { events.emplace_back("entries"); }
    status on_fence(int) override {
        events.emplace_back("fence");
        return error(OMPX_ERR_SYSTEM, "a second fence");
    }
    status on_get(int, int, std::string) override {
        events.emplace_back("get");
        return {};
    }
    void on_finalize(int) override { events.emplace_back("finalize"); }
    void on_abort(int, int code) override { events.push_back("abort " + std::to_string(code)); }
    void on_give_up(int, int) override { events.emplace_back("give up"); }
    void on_loss(int, std::optional<int>) override { events.emplace_back("loss"); }
    void on_closed(int) override { events.emplace_back("closed"); }
    void on_stacks_shown(int) override { events.emplace_back("stacks"); }
    void on_protocol_error(int, const std::string &what) override { events.push_back(what); }

    std::vector<std::string> events;
};

class rank_link_test : public ::testing::Test {
protected:
    void SetUp() override {
        auto loop = event_loop::create();
        ASSERT_TRUE(loop);
        loop_ = std::make_unique<event_loop>(loop.take());
        int ends[2];
        ASSERT_EQ(::pipe(ends), 0);
        pipe_[0] = unique_fd(ends[0]);
        pipe_[1] = unique_fd(ends[1]);
        auto made =
            rank_link::create(*loop_, seen_, seen_,
                              {.rank = 3, .size = 4, .node_size = 4, .job_id = "j", .host = "h"},
                              pipe_[0].get(), rank_end_);
        ASSERT_TRUE(made) << made.failure().message();
        link_ = made.take();
    }

    void send_from_rank(const std::string &packet) {
        ASSERT_EQ(::send(rank_end_.get(), packet.data(), packet.size(), 0),
                  static_cast<ssize_t>(packet.size()));
    }

    static std::string abort_packet(int code) {
        packet_writer packet(local::packet_type::abort);
        packet.number(static_cast<std::uint32_t>(code));
        packet.text("why");
        return packet.take();
    }

    std::unique_ptr<event_loop> loop_;
    recorder seen_;
    unique_fd pipe_[2];
    unique_fd rank_end_;
    std::unique_ptr<rank_link> link_;
};

TEST_F(rank_link_test, an_error_of_the_exchange_is_an_invalid_packet) {
    send_from_rank(packet_writer(local::packet_type::fence).take());
    link_->receive();
    EXPECT_EQ(seen_.events, (std::vector<std::string>{"fence", "a second fence"}));
}

TEST_F(rank_link_test, an_abort_arrives_though_the_rank_has_not_read_its_packets) {
    packet_writer hello(local::packet_type::hello);
    hello.number(static_cast<std::uint32_t>(::getpid()));
    send_from_rank(hello.take()); // the packet with the rank's number stays unread at its end
    send_from_rank(abort_packet(5));
    rank_end_.reset();
    link_->receive();
    EXPECT_EQ(seen_.events, (std::vector<std::string>{"hello", "abort 5", "closed"}));
}

TEST_F(rank_link_test, an_abort_arrives_though_a_packet_to_the_rank_fails_first) {
    packet_writer hello(local::packet_type::hello);
    hello.number(std::uint32_t{1});
    send_from_rank(hello.take());
    send_from_rank(abort_packet(7));
    rank_end_.reset();
    for (int i = 0; i < 2; ++i) { // reset, then a broken pipe
        link_->send({std::make_shared<std::string>("a packet that nothing reads")});
    }
    link_->receive();
    EXPECT_EQ(seen_.events, (std::vector<std::string>{"hello", "abort 7", "closed"}));
}

TEST_F(rank_link_test, the_end_of_a_rank_that_has_read_everything_is_reported_after_its_packets) {
    char first[4096];
    ASSERT_GT(::recv(rank_end_.get(), first, sizeof first, 0), 0);
    packet_writer hello(local::packet_type::hello);
    hello.number(std::uint32_t{1});
    send_from_rank(hello.take());
    send_from_rank(abort_packet(0));
    rank_end_.reset();
    link_->receive();
    EXPECT_EQ(seen_.events, (std::vector<std::string>{"hello", "abort 0", "closed"}));
}

TEST_F(rank_link_test, a_rank_that_has_not_joined_ends_without_an_event) {
    rank_end_.reset();
    link_->receive();
    EXPECT_EQ(seen_.events, std::vector<std::string>{});
}

} // namespace
} // namespace diomp::run
