// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Contract of messages, sleeping and waking.
#include "support/patterns.h"
#include "transport/world.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <span>
#include <thread>

namespace {

using namespace diomp_test;
using std::chrono::microseconds;

int next() { return (ours().rank() + 1) % ours().size(); }
int previous() { return (ours().rank() + ours().size() - 1) % ours().size(); }

template <typename T>
std::span<const std::byte> bytes_of(const T &value) {
    return std::as_bytes(std::span<const T>(&value, 1));
}

template <typename T>
T value_in(const message &each) {
    T value{};
    if (each.payload.size() >= sizeof(value)) {
        std::memcpy(&value, each.payload.data(), sizeof(value));
    }
    return value;
}

TEST(messages, payloads_of_every_size_arrive) {
    std::size_t const most = ours().conduit().max_message_bytes(world_rank{next()});
    ASSERT_GE(most, 240u);
    ASSERT_EQ(ours().conduit().max_message_bytes(world_rank{previous()}) >= 240, true);
    std::vector<std::size_t> lengths{0, 1, 7, 8, 9, 100, 240, most / 2, most - 1, most};
    std::size_t received = 0;
    std::size_t wrong = 0;
    ours().on_message([&](const message &each) {
        auto const expected = pattern(previous(), each.handler, 0, each.payload.size());
        bool const right = each.source == world_rank{previous()} && each.handler == received &&
                           std::ranges::equal(std::as_bytes(std::span(expected)), each.payload);
        wrong += right ? 0 : 1;
        ++received;
    });
    ours().meet();
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        auto const payload = pattern(ours().rank(), static_cast<int>(i), 0, lengths[i]);
        ours().send(next(), static_cast<handler_id>(i), std::as_bytes(std::span(payload)));
    }
    ours().wait_until([&] { return received == lengths.size(); }, "all messages");
    EXPECT_EQ(wrong, 0u);
    ours().meet();
}

enum class purpose : int { letter, answer, farewell };

/// What one thread of one rank sends; the receiver checks that the numbers go up one by one.
/// A farewell's number is how many answers its receiver will not get.
struct numbered {
    int thread;
    int number;
    purpose what;
};

/// What every rank sends to every rank: letters from several threads, each answered from its
/// handler where the queue has room.
class flood {
public:
    static constexpr int num_threads = 2;
    static constexpr int num_messages = 5000;

    flood() {
        ours().on_message([this](const message &each) { take(each); });
    }

    void send() {
        std::atomic<int> running{num_threads};
        std::vector<std::thread> threads;
        for (int thread = 0; thread < num_threads; ++thread) {
            threads.emplace_back([&, thread] {
                for (int number = 0; number < num_messages; ++number) {
                    send_to_all(numbered{thread, number, purpose::letter});
                }
                --running;
            });
        }
        ours().wait_until([&] { return running == 0 && received_ == total_; }, "the flood");
        for (auto &thread : threads) {
            thread.join();
        }
    }

    /// Nothing is under way after it.
    void await_answers() {
        for (int peer = 0; peer < size_; ++peer) {
            ours().send(peer, 0,
                        bytes_of(numbered{0, unanswered_[static_cast<std::size_t>(peer)],
                                          purpose::farewell}));
        }
        ours().wait_until([&] { return farewells_ == size_ && answers_ + not_coming_ == total_; },
                          "the answers");
    }

    [[nodiscard]] int out_of_order() const { return out_of_order_; }

private:
    void send_to_all(const numbered &content) const {
        for (int peer = 0; peer < size_; ++peer) {
            ours().send(peer, 0, bytes_of(content));
        }
    }

    void take(const message &each) {
        auto const content = value_in<numbered>(each);
        switch (content.what) {
        case purpose::answer:
            ++answers_;
            break;
        case purpose::farewell:
            not_coming_ += content.number;
            ++farewells_;
            break;
        case purpose::letter:
            answer(each, content);
            break;
        }
    }

    void answer(const message &each, const numbered &content) {
        int &expected = seen_[each.source.index()][static_cast<std::size_t>(content.thread)];
        out_of_order_ += content.number == expected ? 0 : 1;
        ++expected;
        // A handler may send; when the queue is full it must not wait.
        numbered const reply{content.thread, content.number, purpose::answer};
        if (!ours().conduit().messages(each.source).try_send(each.source, 0, bytes_of(reply))) {
            ++unanswered_[each.source.index()];
        }
        ++received_;
    }

    int size_ = ours().size();
    int total_ = num_threads * num_messages * size_;
    // Handlers run one at a time, whatever thread polls.
    std::vector<std::vector<int>> seen_{static_cast<std::size_t>(size_),
                                        std::vector<int>(num_threads)};
    std::vector<int> unanswered_ = std::vector<int>(static_cast<std::size_t>(size_));
    std::atomic<int> received_{0};
    std::atomic<int> answers_{0};
    std::atomic<int> not_coming_{0};
    std::atomic<int> farewells_{0};
    std::atomic<int> out_of_order_{0};
};

TEST(messages, a_flood_from_threads_keeps_order_and_is_answered_from_handlers) {
    flood ours_and_theirs;
    ours().meet();
    ours_and_theirs.send();
    EXPECT_EQ(ours_and_theirs.out_of_order(), 0);
    ours_and_theirs.await_answers();
    ours().meet();
}

TEST(messages, a_sleeper_is_woken_by_a_message) {
    std::atomic<int> received{0};
    ours().on_message([&](const message &) { ++received; });
    ours().meet();
    auto &waits = ours().conduit().waits();
    int wanted = 0;
    for (int round = 1; round <= 20; ++round) {
        if (ours().rank() % 2 == round % 2) {
            ours().send(next(), 0, {});
        }
        if (previous() % 2 == round % 2) {
            ++wanted;
            auto const begin = std::chrono::steady_clock::now();
            while (received < wanted) {
                std::uint32_t const seen = waits.activity();
                if (ours().poll() == 0) {
                    waits.sleep(seen, microseconds{20'000'000});
                }
            }
            EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{5});
        }
        ours().meet();
    }
}

TEST(messages, bulk_data_reaches_its_handler_whole) {
    std::vector<std::size_t> const sizes{0, 1, 100, 8193, 65536, 262144};
    constexpr std::size_t payload_bytes = 128;
    std::atomic<std::size_t> received{0};
    std::atomic<std::size_t> wrong{0};
    ours().set_am_long_handler(
        [&](const message &each) {
            auto const payload = pattern(previous(), each.handler, 1, payload_bytes);
            auto const data = pattern(previous(), each.handler, 2, each.long_payload.size());
            bool const right =
                each.source == world_rank{previous()} &&
                std::ranges::equal(std::as_bytes(std::span(payload)), each.payload) &&
                std::ranges::equal(std::as_bytes(std::span(data)), each.long_payload) &&
                sizes[each.handler] == each.long_payload.size();
            wrong += right ? 0 : 1;
            ++received;
        },
        {});
    ours().meet();
    std::size_t sent = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        int const number = static_cast<int>(i);
        auto const payload = pattern(ours().rank(), number, 1, payload_bytes);
        auto const data = pattern(ours().rank(), number, 2, sizes[i]);
        completion free;
        auto const started =
            ours().send_long(next(), static_cast<handler_id>(i), std::as_bytes(std::span(payload)),
                             std::as_bytes(std::span(data)), free);
        ASSERT_TRUE(started.ok());
        sent += started.value() ? 1 : 0;
        ours().wait(free);
    }
    // Which of them go this way is the conduit's choice; all ranks of a ring of one kind choose
    // alike.
    auto const told = static_cast<std::uint32_t>(sent);
    std::atomic<int> expected{-1};
    ours().on_message(
        [&](const message &each) { expected = static_cast<int>(value_in<std::uint32_t>(each)); });
    ours().meet();
    ours().send(next(), 0, bytes_of(told));
    ours().wait_until([&] { return expected >= 0 && static_cast<int>(received) == expected; },
                      "all bulk messages");
    EXPECT_EQ(wrong, 0u);
    std::vector<std::byte> const too_large(diomp_test::world::memory_bytes);
    completion never;
    EXPECT_FALSE(ours().send_long(next(), 0, {}, too_large, never).value());
    EXPECT_TRUE(never.is_done());
    ours().meet();
    ours().set_am_long_handler({}, {});
    ours().meet();
}

// Conduits that choose where data goes ask first; the others bring it to the sink as ever. What has
// been diverted no longer touches its place.
TEST(messages, bulk_data_goes_where_it_is_wanted) {
    constexpr std::size_t nbytes = 200'000;
    constexpr int num_rounds = 20;
    std::vector<std::byte> place(nbytes);
    std::atomic<bool> wants_it{true};
    std::atomic<int> received{0};
    std::atomic<int> num_straight{0};
    std::atomic<int> wrong{0};
    ours().set_am_long_handler(
        [&](const message &each) {
            auto const data = pattern(previous(), each.handler, 2, each.long_payload.size());
            bool const is_right =
                std::ranges::equal(std::as_bytes(std::span(data)), each.long_payload);
            wrong += is_right && each.long_payload.size() == nbytes ? 0 : 1;
            num_straight += each.long_payload.data() == place.data() ? 1 : 0;
            ++received;
        },
        [&](const message &announced, std::size_t announced_bytes) {
            wrong += announced.long_payload.empty() && announced.payload.size() == 8 &&
                             announced_bytes == nbytes && announced.source == world_rank{previous()}
                         ? 0
                         : 1;
            return wants_it ? place.data() : nullptr;
        });
    ours().meet();
    // Those that do can always send so much.
    bool const chooses_places = ours().conduit().max_am_long(world_rank{previous()}) >= nbytes;
    int sent = 0;
    for (int round = 0; round < num_rounds; ++round) {
        auto const data = pattern(ours().rank(), round, 2, nbytes);
        std::array<std::byte, 8> const payload{};
        completion free;
        auto const started = ours().send_long(next(), static_cast<handler_id>(round), payload,
                                              std::as_bytes(std::span(data)), free);
        ASSERT_TRUE(started.ok());
        sent += started.value() ? 1 : 0;
        if (round == num_rounds / 2 - 1 && chooses_places) {
            ours().wait_until([&] { return received >= num_rounds / 2; }, "half of them");
            EXPECT_GE(num_straight, num_rounds / 2);
        }
        if (round == num_rounds / 2) {
            // Some of it may be on its way to the place now.
            wants_it = false;
            if (auto *const longs = ours().conduit().am_long(); longs != nullptr) {
                longs->revoke_recv_buffer(place.data());
            }
            std::ranges::fill(place, std::byte{0xee});
        }
        ours().wait(free);
    }
    std::atomic<int> expected{-1};
    ours().on_message(
        [&](const message &each) { expected = static_cast<int>(value_in<std::uint32_t>(each)); });
    ours().meet();
    ours().send(next(), 0, bytes_of(static_cast<std::uint32_t>(sent)));
    ours().wait_until([&] { return received == expected; }, "all bulk messages");
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(std::ranges::count(place, std::byte{0xee}), static_cast<std::ptrdiff_t>(nbytes));
    if (ours().conduit().max_am_long(world_rank{next()}) >= nbytes) {
        EXPECT_EQ(sent, num_rounds);
    }
    ours().meet();
    ours().set_am_long_handler({}, {});
    ours().meet();
}

TEST(messages, a_napping_rank_is_woken_by_the_network) {
    bool has_neighbours = std::getenv("DIOMP_NODE_SIZE") != nullptr; // perhaps others only
    for (int peer = 0; peer < ours().size(); ++peer) {
        has_neighbours = has_neighbours || (peer != ours().rank() && ours().is_direct(peer));
    }
    if (has_neighbours) {
        GTEST_SKIP() << "neighbours ring for the progress thread, which wakes who naps";
    }
    bool has_come = false;
    ours().on_message([&](const message &) { has_come = true; });
    ours().meet();
    auto const begin = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(20 * ours().rank()));
    ours().send(next(), 0, {});
    auto &waits = ours().conduit().waits();
    for (;;) {
        std::uint32_t const seen = waits.activity();
        if (ours().poll() == 0 && !has_come) {
            waits.idle_wait(diomp::transport::wait_kind::message, seen, microseconds{20'000'000},
                            [&] { return has_come; });
        }
        if (has_come) {
            break;
        }
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
    ours().meet();
}

// A number goes around a ring of words, a hundred times; each rank sleeps until it comes.
TEST(messages, a_rank_that_naps_until_there_is_a_store_is_woken_by_the_writer) {
    bool has_neighbours = true;
    for (int peer = 0; peer < ours().size(); ++peer) {
        has_neighbours = has_neighbours && ours().is_direct(peer);
    }
    if (!has_neighbours) {
        GTEST_SKIP() << "ranks that are not mapped here store nothing";
    }
    constexpr std::uint64_t num_rounds = 100;
    auto &waits = ours().conduit().waits();
    auto const word_of = [](int rank) {
        return std::atomic_ref(*reinterpret_cast<std::uint64_t *>(ours().memory_of(rank)));
    };
    auto const nap_until = [&](std::uint64_t number) {
        auto const has_come = [&] { return word_of(ours().rank()).load() >= number; };
        for (;;) {
            std::uint32_t const seen = waits.activity();
            if (waits.idle_wait(diomp::transport::wait_kind::store, seen, microseconds{20'000'000},
                                has_come)) {
                return;
            }
        }
    };
    word_of(ours().rank()).store(0);
    ours().meet();
    auto const begin = std::chrono::steady_clock::now();
    for (std::uint64_t round = 1; round <= num_rounds; ++round) {
        if (ours().rank() != 0) {
            nap_until(round);
        }
        word_of(next()).store(round); // with the fence that the runtime leaves out
        if (waits.store_sleepers().load() > 0) {
            waits.wake_for_store(world_rank{next()});
        }
        if (ours().rank() == 0) {
            nap_until(round);
        }
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15));
    ours().meet();
    EXPECT_EQ(waits.store_sleepers().load(), 0u);
    ours().meet();
}

TEST(messages, a_nap_asks_first_and_does_not_sleep_if_all_is_there) {
    auto &waits = ours().conduit().waits();
    auto const begin = std::chrono::steady_clock::now();
    for (auto const what :
         {diomp::transport::wait_kind::store, diomp::transport::wait_kind::message}) {
        int asked = 0;
        EXPECT_TRUE(waits.idle_wait(what, waits.activity(), microseconds{20'000'000},
                                    [&] { return ++asked > 0; }));
        EXPECT_EQ(asked, 1);
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
    ours().meet();
}

TEST(messages, wake_napping_ends_naps_of_either_kind) {
    auto &waits = ours().conduit().waits();
    for (auto const what :
         {diomp::transport::wait_kind::store, diomp::transport::wait_kind::message}) {
        std::atomic<bool> has_come{false};
        std::thread helper;
        auto const begin = std::chrono::steady_clock::now();
        while (!has_come) {
            waits.idle_wait(what, waits.activity(), microseconds{20'000'000}, [&] {
                if (!helper.joinable()) { // the nap has been announced
                    helper = std::thread([&] {
                        has_come = true;
                        waits.wake_idle_waiters();
                    });
                }
                return has_come.load();
            });
        }
        helper.join();
        EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
    }
    ours().meet();
}

TEST(messages, wake_ends_sleep) {
    auto &waits = ours().conduit().waits();
    std::uint32_t const seen = waits.activity();
    std::thread waker([&] { waits.wake(); });
    auto const begin = std::chrono::steady_clock::now();
    waits.sleep(seen, microseconds{20'000'000});
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{5});
    waker.join();
    ours().meet();
}

TEST(messages, every_path_has_a_description) {
    for (int peer = 0; peer < ours().size(); ++peer) {
        EXPECT_NE(ours().conduit().describe_path(world_rank{peer}), "");
    }
    EXPECT_NE(ours().conduit().direct_base(world_rank{ours().rank()}), nullptr);
    ours().meet();
}

} // namespace
