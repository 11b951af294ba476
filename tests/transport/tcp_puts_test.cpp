// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Small puts of the TCP conduit: adjacent ones become one frame, those of several threads wait
// apart, and whatever way they take, each byte arrives and each put is counted.
#include "transport/tcp/coalescer.h"
#include "transport/tcp/connection.h"
#include "transport/tcp/peer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <sys/socket.h>
#include <thread>
#include <vector>

namespace {

namespace tcp = diomp::transport::tcp;
using diomp::unique_fd;
using diomp::world_rank;
using testing::ElementsAre;
using testing::Pair;

constexpr std::size_t most = 64;

tcp::frame put_to(std::uint64_t address, std::size_t nbytes) {
    return {.what = tcp::kind::put, .nbytes = nbytes, .address = address};
}

/// (address, data) of each frame.
std::vector<std::pair<std::uint64_t, std::string>> frames_in(tcp::coalescer &from) {
    auto const bytes = from.take({});
    std::vector<std::pair<std::uint64_t, std::string>> found;
    for (std::size_t at = 0; at < bytes.size();) {
        tcp::frame head;
        std::memcpy(&head, bytes.data() + at, sizeof(head));
        at += sizeof(head);
        found.emplace_back(
            head.address,
            std::string(reinterpret_cast<const char *>(bytes.data() + at), tcp::body_bytes(head)));
        at += tcp::body_bytes(head);
    }
    return found;
}

TEST(tcp_gathering, adjacent_puts_become_one) {
    tcp::coalescer here;
    here.append_put(put_to(1000, 2), "ab", most);
    here.append_put(put_to(1002, 3), "cde", most);
    here.append_put(put_to(1005, 1), "f", most);
    EXPECT_THAT(frames_in(here), ElementsAre(Pair(1000, "abcdef")));
}

TEST(tcp_gathering, others_do_not) {
    tcp::coalescer here;
    here.append_put(put_to(1000, 2), "ab", most);
    here.append_put(put_to(1003, 1), "d", most); // a gap
    here.append_put(put_to(1003, 1), "D", most); // again
    here.append_put(put_to(1002, 1), "c", most); // before
    here.append_put(put_to(1000, 2), "AB", most);
    EXPECT_THAT(frames_in(here), ElementsAre(Pair(1000, "ab"), Pair(1003, "d"), Pair(1003, "D"),
                                             Pair(1002, "c"), Pair(1000, "AB")));
}

TEST(tcp_gathering, not_beyond_the_limit) {
    tcp::coalescer here;
    std::string const half(most / 2, 'x');
    here.append_put(put_to(0, half.size()), half.data(), most);
    here.append_put(put_to(half.size(), half.size()), half.data(), most);
    here.append_put(put_to(most, 1), "y", most);
    EXPECT_THAT(frames_in(here), ElementsAre(Pair(0, half + half), Pair(most, "y")));
}

TEST(tcp_gathering, not_across_another_frame_or_what_has_left) {
    tcp::coalescer here;
    tcp::frame const flush{.what = tcp::kind::flush, .number = 1};
    here.append_put(put_to(1000, 1), "a", most);
    here.append(&flush, sizeof(flush));
    here.append_put(put_to(1001, 1), "b", most);
    EXPECT_THAT(frames_in(here), ElementsAre(Pair(1000, "a"), Pair(0, ""), Pair(1001, "b")));
    // As long as what has left, and something else.
    here.append_put(put_to(1000, 1), "a", most);
    static_cast<void>(here.take({}));
    std::string const noise(sizeof(tcp::frame) + 1, '\0');
    here.append(noise.data(), noise.size());
    here.append_put(put_to(1001, 1), "b", most);
    EXPECT_EQ(here.size(), noise.size() + sizeof(tcp::frame) + 1);
    here.clear();
    EXPECT_TRUE(here.empty());
}

TEST(tcp_send_queue, order_is_kept_and_sources_are_free_when_written) {
    tcp::send_queue queue;
    tcp::send_items items;
    std::vector<std::byte> spare;
    diomp::transport::completion source_free;
    std::string const large(100, 'x');
    tcp::frame const head = put_to(0, 1);
    queue.append_put(head, "a");
    queue.append_uncopied(large.data(), large.size(), &source_free);
    queue.append(head, {}, "b", 1);
    EXPECT_FALSE(queue.publish(false)) << "may not be written";
    EXPECT_TRUE(queue.publish(true));
    std::size_t const copied = 2 * (sizeof(head) + 1);
    EXPECT_EQ(queue.visible_bytes(), copied);
    queue.move_to(items, spare);
    EXPECT_FALSE(queue.publish(true));
    EXPECT_EQ(items.size(), 3);
    EXPECT_EQ(items.copied_bytes(), copied);
    items.consume(sizeof(head) + 1 + large.size() - 1, spare);
    EXPECT_EQ(items.front().data(), reinterpret_cast<const std::byte *>(&large.back()));
    EXPECT_FALSE(source_free.is_done());
    items.consume(1, spare);
    EXPECT_TRUE(source_free.is_done());
    EXPECT_EQ(items.copied_bytes(), copied / 2);
    items.discard();
    EXPECT_TRUE(items.empty());
}

/// Writes puts to memory; addresses count from its beginning. Answers nothing.
class memory final : public tcp::frame_handler {
public:
    explicit memory(std::size_t nbytes) : bytes(nbytes) {}

    std::byte *find_body_buffer(tcp::connection & /*on*/, const tcp::frame &head,
                                std::span<const std::byte> /*front*/) override {
        return head.address + head.nbytes <= bytes.size() ? bytes.data() + head.address : nullptr;
    }
    bool handle_frame(tcp::connection & /*on*/, const tcp::frame &head,
                      std::span<const std::byte> /*front*/, const std::byte * /*body*/) override {
        num_frames += head.what == tcp::kind::put ? 1 : 0;
        return true;
    }

    std::vector<std::byte> bytes;
    int num_frames = 0;
};

class tcp_puts : public testing::Test {
protected:
    tcp_puts() { connect(here_, there_); }

    static void connect(unique_fd &here, unique_fd &there) {
        int ends[2] = {-1, -1};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
        here = unique_fd(ends[0]);
        there = unique_fd(ends[1]);
    }
    void put(tcp::connection &by, std::uint64_t address, std::byte value) {
        peer_.set_connection(by);
        peer_.send_put(by, put_to(address, 1), &value, source_free_, false);
    }

    unique_fd here_, there_;
    tcp::peer peer_{world_rank(1), "there"};
    diomp::transport::completion source_free_;
};

TEST_F(tcp_puts, of_one_thread_have_their_place_at_once) {
    tcp::connection sender(std::move(here_), peer_);
    tcp::connection receiver(std::move(there_), peer_);
    memory taker(100);
    for (std::size_t i = 0; i < 100; ++i) {
        put(sender, i, static_cast<std::byte>(i));
    }
    EXPECT_EQ(peer_.num_puts(), 100);
    EXPECT_TRUE(sender.has_queued_data());
    sender.transmit();
    receiver.incoming().receive(taker);
    EXPECT_EQ(taker.num_frames, 1);
    EXPECT_EQ(taker.bytes[99], std::byte{99});
}

TEST_F(tcp_puts, of_a_second_thread_wait_until_they_are_collected) {
    tcp::connection sender(std::move(here_), peer_);
    tcp::connection receiver(std::move(there_), peer_);
    memory taker(100);
    put(sender, 0, std::byte{1});
    std::thread([&] {
        put(sender, 50, std::byte{2});
        put(sender, 51, std::byte{3});
    }).join();
    sender.transmit();
    receiver.incoming().receive(taker);
    EXPECT_EQ(peer_.num_puts(), 1);
    EXPECT_EQ(taker.bytes[50], std::byte{0}) << "left before it was wanted";
    peer_.drain_coalescers();
    EXPECT_EQ(peer_.num_puts(), 3);
    sender.transmit();
    receiver.incoming().receive(taker);
    EXPECT_EQ(taker.bytes[0], std::byte{1});
    EXPECT_EQ(taker.bytes[50], std::byte{2});
    EXPECT_EQ(taker.bytes[51], std::byte{3});
    EXPECT_EQ(taker.num_frames, 2);
    peer_.drain_coalescers();
    EXPECT_FALSE(sender.has_queued_data());
    EXPECT_TRUE(source_free_.is_done());
}

TEST_F(tcp_puts, many_leave_without_being_wanted) {
    tcp::connection sender(std::move(here_), peer_);
    tcp::connection receiver(std::move(there_), peer_);
    constexpr std::size_t num = 40000;
    memory taker(2 * num);
    put(sender, 0, std::byte{1});
    std::thread([&] {
        for (std::size_t i = 0; i < num; ++i) {
            put(sender, 2 * i, std::byte{7});
            receiver.incoming().receive(taker);
        }
    }).join();
    EXPECT_GT(taker.num_frames, static_cast<int>(num / 2));
    EXPECT_LT(num + 1 - peer_.num_puts(), 200) << "those that wait";
}

TEST_F(tcp_puts, of_many_threads_all_arrive_and_are_counted) {
    tcp::connection sender(std::move(here_), peer_);
    tcp::connection receiver(std::move(there_), peer_);
    constexpr std::size_t num_threads = 10; // more than nests
    constexpr std::size_t each = 5000;
    memory taker(num_threads * each);
    std::atomic<std::size_t> num_done{0};
    std::vector<std::thread> threads;
    for (std::size_t thread = 0; thread < num_threads; ++thread) {
        threads.emplace_back([&, thread] {
            for (std::size_t i = 0; i < each; ++i) {
                put(sender, thread * each + i, static_cast<std::byte>(thread + 1));
                if (i % 512 == 511) {
                    peer_.drain_coalescers();
                    sender.transmit();
                }
            }
            peer_.drain_coalescers();
            ++num_done;
        });
    }
    while (num_done < num_threads || sender.has_queued_data()) {
        sender.transmit();
        receiver.incoming().receive(taker);
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    while (receiver.incoming().receive(taker)) {
    }
    EXPECT_EQ(peer_.num_puts(), num_threads * each);
    for (std::size_t at = 0; at < taker.bytes.size(); ++at) {
        ASSERT_EQ(taker.bytes[at], static_cast<std::byte>(at / each + 1)) << at;
    }
    EXPECT_LT(taker.num_frames, static_cast<int>(num_threads * each / 2));
}

// A flush covers what another thread has put before, also while a third one gives it its place.
TEST_F(tcp_puts, are_counted_when_they_have_been_collected_whoever_does_it) {
    tcp::connection sender(std::move(here_), peer_);
    tcp::connection receiver(std::move(there_), peer_);
    constexpr std::uint64_t num = 3000;
    memory taker(1);
    put(sender, 0, std::byte{1});
    std::atomic<std::uint64_t> put_so_far{0};
    std::atomic<std::uint64_t> seen_so_far{0};
    std::thread writer([&] {
        for (std::uint64_t i = 1; i <= num; ++i) {
            put(sender, 0, std::byte{1});
            put_so_far = i;
            while (seen_so_far < i) {
                std::this_thread::yield();
            }
        }
    });
    std::thread poller([&] {
        while (seen_so_far < num) {
            peer_.drain_coalescers();
            sender.transmit();
            receiver.incoming().receive(taker);
        }
    });
    std::uint64_t num_missing = 0;
    for (std::uint64_t i = 1; i <= num; ++i) {
        while (put_so_far < i) {
            std::this_thread::yield();
        }
        peer_.drain_coalescers();
        num_missing += peer_.num_puts() < i + 1 ? 1 : 0;
        seen_so_far = i;
    }
    writer.join();
    poller.join();
    EXPECT_EQ(num_missing, 0);
}

TEST_F(tcp_puts, go_to_the_socket_that_replaces_their_own) {
    tcp::connection held(peer_);
    unique_fd other_here;
    unique_fd other_there;
    connect(other_here, other_there);
    tcp::connection receiver(std::move(other_there), peer_);
    memory taker(10);
    put(held, 0, std::byte{1});
    std::thread([&] { put(held, 1, std::byte{2}); }).join();
    ASSERT_TRUE(held.lifecycle().adopt(std::move(other_here)));
    std::thread([&] { put(held, 2, std::byte{3}); }).join();
    peer_.drain_coalescers();
    ASSERT_TRUE(held.lifecycle().confirm());
    receiver.incoming().receive(taker);
    EXPECT_EQ(peer_.num_puts(), 3);
    EXPECT_EQ(taker.bytes[0], std::byte{1});
    EXPECT_EQ(taker.bytes[1], std::byte{2});
    EXPECT_EQ(taker.bytes[2], std::byte{3});
}

TEST_F(tcp_puts, to_a_lost_peer_are_counted_and_forgotten) {
    tcp::connection sender(std::move(here_), peer_);
    put(sender, 0, std::byte{1});
    std::thread([&] { put(sender, 1, std::byte{2}); }).join();
    sender.disconnect("for the test");
    peer_.drain_coalescers();
    std::thread([&] { put(sender, 2, std::byte{3}); }).join();
    peer_.drain_coalescers();
    EXPECT_EQ(peer_.num_puts(), 3);
    EXPECT_FALSE(sender.has_queued_data());
    EXPECT_EQ(sender.copied_bytes(), 0);
}

} // namespace
