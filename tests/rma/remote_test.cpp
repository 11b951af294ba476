// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers between ranks that do not map each other, over a conduit that completes them late and
// in any order.
#include "rma/expectations.h"
#include "rma/internal/ack_window.h"
#include "support/patterns.h"
#include "support/remote_ranks.h"

#include <gtest/gtest.h>

namespace {

using namespace diomp;
using diomp_test::pattern;
using namespace diomp::test;

/// Sizes around every decision: short messages, gathered puts, windows of messages.
const std::vector<std::size_t> sizes{1, 7, 8, 200, 512, 513, 4096, 65536, 300001};

void wait_for(remote_rank &rank, ompx_event_t event) {
    ASSERT_TRUE(rank.engine
                    .wait_for_message(
                        [&] {
                            rank.transfers.nonblocking().advance(*event);
                            return event->is_done();
                        },
                        [&] { return event->describe(); })
                    .ok());
    EXPECT_TRUE(event->outcome.ok());
    event->release();
}

TEST(remote, puts_of_every_size_arrive_by_the_fence_and_gets_read_them) {
    remote_ranks ranks(3);
    std::byte *const area = ranks.allocate(400000);
    ranks.run([&](int me) {
        int const to = (me + 1) % 3;
        int const from = (me + 2) % 3;
        for (std::size_t const nbytes : sizes) {
            auto data = pattern(me, to, 1, nbytes);
            auto &transfers = ranks[me].transfers;
            expect_path(transfers.put(world_rank{to}, ranks.at(me, area) + 3, data.data(), nbytes),
                        rma::path::conduit);
            data.assign(nbytes, 0xee); // the source may be reused
            ASSERT_TRUE(transfers.fence().ok());
            ranks.meet();
            expect_bytes(ranks.at(me, area) + 3, pattern(from, me, 1, nbytes));
            // The peer's own address names the same place.
            expect_path(transfers.get(world_rank{to}, ranks.at(to, area) + 3, data.data(), nbytes),
                        rma::path::conduit);
            EXPECT_EQ(data, pattern(me, to, 1, nbytes));
            ranks.meet();
        }
    });
}

TEST(remote, ranks_of_a_node_are_still_direct) {
    remote_ranks ranks(4, {.node_size = 2});
    std::byte *const area = ranks.allocate(64);
    word const value = 5;
    EXPECT_EQ(ranks[0].transfers.put(world_rank{0}, area, &value, 8).value(), rma::path::self);
    EXPECT_EQ(ranks[0].transfers.put(world_rank{1}, area, &value, 8).value(), rma::path::direct);
    EXPECT_EQ(ranks[0].transfers.put(world_rank{2}, area, &value, 8).value(), rma::path::conduit);
    EXPECT_FALSE(ranks[0].transfers.all_direct());
    std::vector<world_rank> const members{world_rank{1}, world_rank{2}};
    ASSERT_TRUE(ranks[0].transfers.fence(members).ok());
    EXPECT_EQ(*reinterpret_cast<word *>(ranks.at(2, area)), 5u);
}

TEST(remote, events_complete_whatever_the_order) {
    remote_ranks ranks(2);
    constexpr std::size_t count = 40;
    constexpr std::size_t slot = 20000;
    std::byte *const area = ranks.allocate(count * slot);
    ranks.run([&](int me) {
        int const to = 1 - me;
        std::vector<std::vector<std::uint8_t>> sent;
        std::vector<std::vector<std::uint8_t>> read(count);
        std::vector<ompx_event_t> events(count);
        for (std::size_t i = 0; i < count; ++i) {
            sent.push_back(pattern(me, to, static_cast<int>(i), i % 2 == 0 ? 16 : slot));
            expect_path(ranks[me].transfers.nonblocking().start_put(
                            world_rank{to}, ranks.at(me, area) + i * slot, sent[i].data(),
                            sent[i].size(), &events[i]),
                        rma::path::conduit);
        }
        for (std::size_t i = count; i-- > 0;) {
            if (events[i] != nullptr) {
                wait_for(ranks[me], events[i]);
            }
            // Complete at the target: seen there without any fence.
            expect_bytes(ranks.at(to, area) + i * slot, sent[i]);
        }
        for (std::size_t i = 0; i < count; ++i) {
            read[i].resize(sent[i].size());
            expect_path(ranks[me].transfers.nonblocking().start_get(
                            world_rank{to}, ranks.at(me, area) + i * slot, read[i].data(),
                            read[i].size(), &events[i]),
                        rma::path::conduit);
        }
        for (std::size_t i = 0; i < count; ++i) {
            if (events[i] != nullptr) {
                wait_for(ranks[me], events[i]);
            }
            EXPECT_EQ(read[i], sent[i]);
        }
    });
}

TEST(remote, transfers_without_an_event_are_complete_after_the_next_fence) {
    remote_ranks ranks(3);
    std::size_t const slot = 300001;
    std::byte *const area = ranks.allocate(2 * slot * sizes.size());
    ranks.run([&](int me) {
        auto &transfers = ranks[me].transfers;
        int const to = (me + 1) % 3;
        std::vector<std::vector<std::uint8_t>> sent;
        std::vector<std::vector<std::uint8_t>> read;
        for (int round = 0; round < 3; ++round) {
            sent.clear();
            read.clear();
            for (std::size_t i = 0; i < sizes.size(); ++i) {
                sent.push_back(pattern(me, to, static_cast<int>(i) + round, sizes[i]));
                read.emplace_back(sizes[i]);
            }
            for (std::size_t i = 0; i < sizes.size(); ++i) {
                expect_path(transfers.nonblocking().start_put(world_rank{to},
                                                              ranks.at(me, area) + i * slot,
                                                              sent[i].data(), sizes[i], nullptr),
                            rma::path::conduit);
            }
            ASSERT_TRUE(transfers.fence().ok());
            for (std::size_t i = 0; i < sizes.size(); ++i) {
                expect_bytes(ranks.at(to, area) + i * slot, sent[i]);
                expect_path(transfers.nonblocking().start_get(world_rank{to},
                                                              ranks.at(me, area) + i * slot,
                                                              read[i].data(), sizes[i], nullptr),
                            rma::path::conduit);
            }
            std::vector<world_rank> const peer{world_rank{to}};
            ASSERT_TRUE(transfers.fence(peer).ok());
            EXPECT_EQ(read, sent);
        }
    });
}

TEST(remote, a_transfer_without_an_event_that_fails_is_reported_by_the_next_fence_alone) {
    remote_ranks ranks(2);
    std::byte *const area = ranks.allocate(100000);
    std::vector<std::byte> buffer(100000);
    ranks[0].transport.lose(world_rank{1});
    expect_path(ranks[0].transfers.nonblocking().start_get(world_rank{1}, area, buffer.data(),
                                                           buffer.size(), nullptr),
                rma::path::conduit);
    auto const fenced = ranks[0].transfers.fence();
    ASSERT_FALSE(fenced.ok());
    EXPECT_EQ(fenced.failure().code(), OMPX_ERR_PEER);
    EXPECT_TRUE(ranks[0].transfers.fence().ok());
}

TEST(remote, a_fence_does_not_wait_for_transfers_that_other_threads_begin_meanwhile) {
    remote_ranks ranks(2);
    std::byte *const area = ranks.allocate(4096);
    std::atomic<bool> over{false};
    std::atomic<int> begun{0};
    std::thread busy([&] {
        std::array<std::byte, 64> buffer{};
        while (!over) {
            expect_path(ranks[0].transfers.nonblocking().start_get(world_rank{1}, area,
                                                                   buffer.data(), 64, nullptr),
                        rma::path::conduit);
            ++begun;
            ranks[0].engine.poll(); // else it is far ahead of what is completed
        }
        EXPECT_TRUE(ranks[0].transfers.fence().ok());
    });
    for (int i = 0; i < 50; ++i) {
        for (int const seen = begun; begun < seen + 2;) {
            std::this_thread::yield(); // it goes on meanwhile
        }
        EXPECT_TRUE(ranks[0].transfers.fence().ok());
    }
    over = true;
    busy.join();
}

TEST(remote, continuations_run_once_when_the_transfer_is_complete) {
    remote_ranks ranks(2);
    constexpr int count = 30;
    std::byte *const area = ranks.allocate(count * 1000);
    std::atomic<int> complete{0};
    std::vector<std::vector<std::uint8_t>> sent;
    for (int i = 0; i < count; ++i) {
        sent.push_back(pattern(0, 1, i, 1000));
    }
    for (int i = 0; i < count; ++i) {
        auto const index = static_cast<std::size_t>(i);
        std::byte *const location = area + index * 1000;
        expect_path(ranks[0].transfers.nonblocking().put_then(
                        world_rank{1}, location, sent[index].data(), 1000,
                        [&, index, location](status outcome) {
                            EXPECT_TRUE(outcome.ok());
                            expect_bytes(ranks.at(1, location), sent[index]);
                            complete.fetch_add(1);
                        }),
                    rma::path::conduit);
    }
    // Nobody waits in rank 0: its progress thread does it.
    while (complete.load() < count) {
        std::this_thread::yield();
    }
    std::vector<std::uint8_t> back(1000);
    std::atomic<bool> arrived{false};
    expect_path(ranks[0].transfers.nonblocking().get_then(world_rank{1}, area, back.data(),
                                                          back.size(),
                                                          [&](status outcome) {
                                                              EXPECT_TRUE(outcome.ok());
                                                              arrived.store(true);
                                                          }),
                rma::path::conduit);
    while (!arrived.load()) {
        std::this_thread::yield();
    }
    EXPECT_EQ(back, sent[0]);
}

/// Bytes, and whether the conduit sends messages behind puts.
class remote_signal : public testing::TestWithParam<std::tuple<std::size_t, bool>> {};

TEST_P(remote_signal, who_sees_the_signal_sees_the_data) {
    std::size_t const nbytes = std::get<0>(GetParam());
    bool const behind = std::get<1>(GetParam());
    remote_ranks ranks(2, {.sends_behind_puts = behind});
    std::byte *const area = ranks.allocate(nbytes + 64);
    auto *const signal = reinterpret_cast<word *>(ranks.allocate(8));
    ranks.run([&](int me) {
        for (int round = 1; round <= 30; ++round) {
            auto const data = pattern(me, 1 - me, round, nbytes);
            ASSERT_TRUE(ranks[me]
                            .transfers.signals()
                            .put(world_rank{1 - me}, ranks.at(me, area), data.data(), nbytes,
                                 ranks.at(me, signal), 1, OMPX_SIGNAL_ADD)
                            .ok());
            word const wanted = static_cast<word>(round);
            ASSERT_TRUE(ranks[me]
                            .engine
                            .wait_for_message([&] { return load(ranks.at(me, signal)) == wanted; },
                                              [] { return std::string("waiting for the signal"); })
                            .ok());
            expect_bytes(ranks.at(me, area), pattern(1 - me, me, round, nbytes));
            ranks.meet();
        }
        ASSERT_TRUE(ranks[me].transfers.fence().ok());
    });
    // Short data goes in messages in any case.
    EXPECT_EQ(ranks[0].transport.num_sent_behind() > 0, behind && nbytes >= 5000);
}

INSTANTIATE_TEST_SUITE_P(sizes, remote_signal,
                         testing::Combine(testing::Values(0, 8, 190, 192, 193, 700, 5000, 100000),
                                          testing::Bool()));

TEST(remote, no_atomic_is_lost_and_a_fence_completes_those_nobody_waits_for) {
    remote_ranks ranks(3);
    auto *const cells = reinterpret_cast<word *>(ranks.allocate(64));
    constexpr word rounds = 400;
    ranks.run([&](int me) {
        auto const add_on_two_threads = [&](void *result_of) {
            auto const body = [&] {
                word const one = 1;
                for (word i = 0; i < rounds; ++i) {
                    ASSERT_TRUE(ranks[me]
                                    .transfers.atomics()
                                    .fetch(world_rank{0}, ranks.at(me, cells), &one, result_of,
                                           OMPX_UINT64, OMPX_SUM)
                                    .ok());
                }
            };
            std::thread other(body);
            body();
            other.join();
        };
        add_on_two_threads(nullptr);
        ASSERT_TRUE(ranks[me].transfers.fence().ok());
        ranks.meet();
        EXPECT_EQ(load(cells), 3 * 2 * rounds);
        ranks.meet();
        word seen = 0;
        word const expected = 3 * 2 * rounds;
        word const mine = 100 + static_cast<word>(me);
        ASSERT_TRUE(ranks[me]
                        .transfers.atomics()
                        .compare_swap(world_rank{0}, ranks.at(me, cells), &expected, &mine, &seen,
                                      OMPX_UINT64)
                        .ok());
        EXPECT_TRUE(seen == expected || (seen >= 100 && seen < 103)) << seen;
        ranks.meet();
        EXPECT_GE(load(cells), 100u);
        EXPECT_LT(load(cells), 103u);
    });
}

class remote_registered : public testing::TestWithParam<std::size_t> {};

TEST_P(remote_registered, private_memory_is_reached_by_messages) {
    remote_ranks ranks(2, {.message_bytes = GetParam()});
    std::vector<std::byte> memory(700000);
    ASSERT_TRUE(ranks[1].directory.add(reinterpret_cast<word>(memory.data()), memory.size()).ok());
    auto &transfers = ranks[0].transfers;
    for (std::size_t const nbytes : {std::size_t{1}, std::size_t{300}, std::size_t{131072},
                                     std::size_t{131073}, std::size_t{699990}}) {
        auto const data = pattern(0, 1, 2, nbytes);
        expect_path(transfers.put(world_rank{1}, memory.data() + 5, data.data(), nbytes),
                    rma::path::message);
        expect_bytes(memory.data() + 5, data);
        std::vector<std::uint8_t> back(nbytes);
        expect_path(transfers.get(world_rank{1}, memory.data() + 5, back.data(), nbytes),
                    rma::path::message);
        EXPECT_EQ(back, data);
    }
    word const one = 1;
    word old = 7;
    auto *const cell = reinterpret_cast<word *>(memory.data());
    *cell = 41;
    ASSERT_TRUE(
        transfers.atomics().fetch(world_rank{1}, cell, &one, &old, OMPX_UINT64, OMPX_SUM).ok());
    EXPECT_EQ(old, 41u);
    EXPECT_EQ(*cell, 42u);
    // Data in private memory, signal in the segment; and the other way round.
    auto *const signal = reinterpret_cast<word *>(ranks.allocate(8));
    auto const data = pattern(0, 1, 3, 200000);
    expect_path(transfers.signals().put(world_rank{1}, memory.data(), data.data(), data.size(),
                                        signal, 9, OMPX_SIGNAL_SET),
                rma::path::message);
    ASSERT_TRUE(transfers.fence().ok());
    EXPECT_EQ(load(ranks.at(1, signal)), 9u);
    expect_bytes(memory.data(), data);
    ASSERT_TRUE(
        transfers.signals().put(world_rank{1}, signal, &one, 8, cell, 77, OMPX_SIGNAL_SET).ok());
    ASSERT_TRUE(transfers.fence().ok());
    EXPECT_EQ(load(cell), 77u);
}

INSTANTIATE_TEST_SUITE_P(message_bytes, remote_registered, testing::Values(240, 8192, 1 << 20));

TEST(remote, an_answer_about_registered_memory_that_is_out_of_date_does_no_harm) {
    remote_ranks ranks(2);
    std::vector<std::byte> memory(1000);
    auto const base = reinterpret_cast<word>(memory.data());
    auto const code = [&](std::size_t nbytes) {
        std::vector<std::byte> const zeros(nbytes);
        auto moved = ranks[0].transfers.put(world_rank{1}, memory.data(), zeros.data(), nbytes);
        return moved ? OMPX_SUCCESS : moved.failure().code();
    };
    ASSERT_TRUE(ranks[1].directory.add(base, 500).ok());
    EXPECT_EQ(code(500), OMPX_SUCCESS);
    EXPECT_EQ(code(501), OMPX_ERR_RANGE);
    ASSERT_TRUE(ranks[1].directory.remove(base).ok());
    EXPECT_EQ(code(500), OMPX_ERR_ADDRESS);
    EXPECT_EQ(code(500), OMPX_ERR_ADDRESS);
    ASSERT_TRUE(ranks[1].directory.add(base, 1000).ok());
    EXPECT_EQ(code(1000), OMPX_SUCCESS);
    // Smaller than the answer that rank 0 has kept.
    ASSERT_TRUE(ranks[1].directory.remove(base).ok());
    ASSERT_TRUE(ranks[1].directory.add(base, 10).ok());
    memory[9] = std::byte{1};
    EXPECT_EQ(code(1000), OMPX_ERR_RANGE);
    EXPECT_EQ(memory[9], std::byte{1}); // refused before the first byte
    EXPECT_EQ(code(10), OMPX_SUCCESS);
    // Larger.
    ASSERT_TRUE(ranks[1].directory.remove(base).ok());
    ASSERT_TRUE(ranks[1].directory.add(base, 1000).ok());
    EXPECT_EQ(code(1000), OMPX_SUCCESS);
}

TEST(remote, a_signal_to_memory_that_was_unregistered_is_told_by_the_fence) {
    remote_ranks ranks(2);
    std::vector<word> memory(10);
    auto const base = reinterpret_cast<word>(memory.data());
    ASSERT_TRUE(ranks[1].directory.add(base, 80).ok());
    auto const send = [&] {
        word const value = 3;
        return ranks[0]
            .transfers.signals()
            .put(world_rank{1}, memory.data(), &value, 8, memory.data() + 1, 1, OMPX_SIGNAL_SET)
            .ok();
    };
    ASSERT_TRUE(send());
    ASSERT_TRUE(ranks[0].transfers.fence().ok());
    ASSERT_TRUE(ranks[1].directory.remove(base).ok());
    memory[0] = 0;
    ASSERT_TRUE(send());
    status const fenced = ranks[0].transfers.fence();
    ASSERT_FALSE(fenced.ok());
    EXPECT_EQ(fenced.failure().code(), OMPX_ERR_ADDRESS);
    EXPECT_EQ(memory[0], 0u);
    EXPECT_TRUE(ranks[0].transfers.fence().ok()); // told once
}

TEST(remote, second_level_pointers_are_fetched_once) {
    remote_ranks ranks(2);
    std::uint64_t const mine = ranks[0].segment.allocate_asymmetric(1000, 64).value();
    std::uint64_t const theirs = ranks[1].segment.allocate_asymmetric(5000, 64).value();
    std::byte *const own = ranks[0].segment.base() + mine;
    for (int round = 0; round < 3; ++round) {
        word const value = 10 + static_cast<word>(round);
        expect_path(ranks[0].transfers.put(world_rank{1}, own + 8, &value, 8), rma::path::conduit);
        ASSERT_TRUE(ranks[0].transfers.fence().ok());
        EXPECT_EQ(*reinterpret_cast<word *>(ranks[1].segment.base() + theirs + 8), value);
    }
    EXPECT_EQ(ranks[0].space.cache_counts().fetched, 1u);
    EXPECT_EQ(ranks[0].space.cache_counts().hits, 2u);
    auto const part = ranks[0].space.counterpart(world_rank{1}, own);
    ASSERT_TRUE(part.ok());
    EXPECT_EQ(part.value().address, ranks[1].segment.base() + theirs);
    EXPECT_EQ(part.value().nbytes, 5000u);
    ranks[1].segment.release(theirs);
    ranks[0].segment.release(mine);
}

TEST(remote, ranges_are_checked_as_for_local_ranks) {
    remote_ranks ranks(4, {.node_size = 2});
    std::byte *const area = ranks.allocate(1 << 20);
    std::vector<std::byte> const data(2 << 20);
    auto const failure = [&](int rank, void *address, std::size_t nbytes) {
        auto moved = ranks[0].transfers.put(world_rank{rank}, address, data.data(), nbytes);
        EXPECT_FALSE(moved.ok());
        return moved ? std::string() : moved.failure().message();
    };
    EXPECT_EQ(failure(1, area, data.size()), failure(2, area, data.size()));
    EXPECT_NE(failure(2, area, data.size()).find("symmetric memory"), std::string::npos);
    EXPECT_NE(failure(2, ranks.at(3, area), 8).find("segment of rank 3, not of rank 2"),
              std::string::npos);
    std::byte *const slot = ranks.arena().slot(world_rank{2});
    EXPECT_NE(failure(2, slot + 64, 8).find("programs use"), std::string::npos);
    EXPECT_NE(failure(2, slot + ranks.arena().usable_bytes() - 8, 16).find("rank 2's segment"),
              std::string::npos);
}

TEST(remote, counts_outlive_those_who_gave_up_waiting) {
    // Longer than the ranks: what was given up may still arrive.
    std::vector<std::byte> memory(100000);
    std::vector<std::byte> buffer(100000);
    remote_ranks ranks(2, {}, 0.5);
    std::byte *const area = ranks.allocate(4096);
    ASSERT_TRUE(ranks[1].directory.add(reinterpret_cast<word>(memory.data()), memory.size()).ok());
    auto &transfers = ranks[0].transfers;
    expect_path(transfers.get(world_rank{1}, memory.data(), buffer.data(), 8), rma::path::message);
    ranks[0].transport.hold(true);
    auto got = transfers.get(world_rank{1}, area, buffer.data(), 4096);
    ASSERT_FALSE(got.ok());
    EXPECT_EQ(got.failure().code(), OMPX_ERR_TIMEOUT);
    EXPECT_NE(got.failure().message().find("get of 4096 bytes from rank 1"), std::string::npos);
    {
        std::vector<std::byte> gone(100000);
        auto moved = transfers.put(world_rank{1}, memory.data(), gone.data(), gone.size());
        ASSERT_FALSE(moved.ok());
        EXPECT_EQ(moved.failure().code(), OMPX_ERR_TIMEOUT);
    }
    ASSERT_FALSE(transfers.fence().ok());
    ompx_event_t event = nullptr;
    ASSERT_TRUE(
        transfers.nonblocking().start_get(world_rank{1}, area, buffer.data(), 8, &event).ok());
    ASSERT_NE(event, nullptr);
    ranks[0].transport.hold(false);
    wait_for(ranks[0], event);
    ASSERT_TRUE(transfers.fence().ok());
}

TEST(remote, a_lost_peer_is_an_error_of_the_transfer) {
    remote_ranks ranks(2);
    std::byte *const area = ranks.allocate(4096);
    ranks[0].transport.lose(world_rank{1});
    std::vector<std::byte> buffer(4096);
    auto got = ranks[0].transfers.get(world_rank{1}, area, buffer.data(), buffer.size());
    ASSERT_FALSE(got.ok());
    EXPECT_EQ(got.failure().code(), OMPX_ERR_PEER);
    std::atomic<int> told{0};
    ASSERT_TRUE(
        ranks[0]
            .transfers.nonblocking()
            .put_then(world_rank{1}, area, buffer.data(), buffer.size(),
                      [&](status outcome) { told.store(outcome ? 1 : outcome.failure().code()); })
            .ok());
    while (told.load() == 0) {
        std::this_thread::yield();
    }
    EXPECT_EQ(told.load(), OMPX_ERR_PEER);
}

TEST(remote, a_signal_to_a_lost_peer_is_an_error_and_no_fence_waits_for_it) {
    remote_ranks ranks(2, {.sends_behind_puts = true});
    std::byte *const area = ranks.allocate(5000);
    auto *const signal = reinterpret_cast<word *>(ranks.allocate(8));
    ranks[0].transport.lose(world_rank{1});
    std::vector<std::byte> const data(5000);
    while (ranks[0].transport.num_sent_behind() < 3) {
        auto sent = ranks[0].transfers.signals().put(world_rank{1}, area, data.data(), data.size(),
                                                     signal, 1, OMPX_SIGNAL_ADD);
        ASSERT_FALSE(sent.ok());
        EXPECT_EQ(sent.failure().code(), OMPX_ERR_PEER);
    }
    EXPECT_TRUE(ranks[0].transfers.fence().ok());
}

TEST(ack_window, waits_for_all_before_and_for_none_after) {
    rma::ack_window window;
    auto const first = window.try_open().value();
    auto const second = window.try_open().value();
    auto const end = window.end();
    auto const third = window.try_open().value();
    EXPECT_FALSE(window.all_closed_before(end));
    window.close(second, world_rank{1});
    EXPECT_FALSE(window.all_closed_before(end));
    window.close(first, world_rank{1});
    EXPECT_TRUE(window.all_closed_before(end));
    EXPECT_FALSE(window.all_closed_before(window.end()));
    window.close(third, world_rank{1});
    EXPECT_TRUE(window.all_closed_before(window.end()));
}

TEST(ack_window, is_full_until_the_oldest_is_closed) {
    rma::ack_window window;
    for (std::uint64_t i = 0; i < rma::ack_window::capacity; ++i) {
        ASSERT_EQ(window.try_open(), i);
    }
    EXPECT_FALSE(window.try_open().has_value());
    for (std::uint64_t i = 1; i < rma::ack_window::capacity; ++i) {
        window.close(i, world_rank{0});
    }
    EXPECT_FALSE(window.try_open().has_value());
    window.close(0, world_rank{0});
    EXPECT_EQ(window.try_open(), rma::ack_window::capacity);
}

} // namespace
