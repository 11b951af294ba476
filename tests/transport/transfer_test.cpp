// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Contract of put, get and flush: every size, every peer, any number in flight, any thread.
#include "support/patterns.h"
#include "transport/world.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

namespace {

using namespace diomp_test;

constexpr std::size_t big = std::size_t{64} << 20;
constexpr std::size_t sizes[] = {0,    1,    7,    8,     63,    64,     100,    4096,    8191,
                                 8192, 8193, 9000, 65536, 65537, 262144, 300000, 1048576, big};

/// Where rank `from` writes at rank `to`: parts do not overlap for up to 8 ranks of small data.
std::byte *part(int owner, int writer) {
    return ours().memory_of(owner) + static_cast<std::size_t>(writer) * (std::size_t{40} << 20);
}

int next() { return (ours().rank() + 1) % ours().size(); }
int previous() { return (ours().rank() + ours().size() - 1) % ours().size(); }

bool holds(const std::byte *at, const std::vector<std::uint8_t> &expected) {
    return expected.empty() || std::memcmp(at, expected.data(), expected.size()) == 0;
}

TEST(transfer, puts_of_every_size_are_there_after_flush) {
    int round = 0;
    for (std::size_t const nbytes : sizes) {
        std::size_t const offset = static_cast<std::size_t>(round) % 5 * 3; // unaligned as well
        auto const sent = pattern(ours().rank(), next(), round, nbytes);
        std::byte *const here = ours().memory_of(ours().rank());
        std::memset(here, 0x55, offset + nbytes + 1);
        ours().meet();
        ours().put(next(), ours().memory_of(next()) + offset, sent.data(), nbytes);
        ours().flush(next());
        ours().meet();
        EXPECT_TRUE(holds(here + offset, pattern(previous(), ours().rank(), round, nbytes)))
            << nbytes;
        EXPECT_EQ(here[offset + nbytes], std::byte{0x55}) << nbytes;
        ++round;
        ours().meet();
    }
}

TEST(transfer, gets_of_every_size) {
    int round = 0;
    for (std::size_t const nbytes : sizes) {
        std::size_t const offset = static_cast<std::size_t>(round) % 5 * 3;
        auto const mine = pattern(ours().rank(), 0, round, nbytes);
        std::copy_n(mine.begin(), nbytes,
                    reinterpret_cast<std::uint8_t *>(ours().memory_of(ours().rank()) + offset));
        ours().meet();
        std::vector<std::uint8_t> got(nbytes + 1, 0x55);
        ours().get(next(), ours().memory_of(next()) + offset, got.data(), nbytes);
        EXPECT_EQ(got.back(), 0x55);
        got.pop_back();
        EXPECT_EQ(got, pattern(next(), 0, round, nbytes)) << nbytes;
        ++round;
        ours().meet();
    }
}

TEST(transfer, a_quarter_of_a_gibibyte_in_one_piece) {
    constexpr std::size_t nbytes = std::size_t{256} << 20;
    constexpr std::size_t odd = 3;
    if (ours().rank() == 0) {
        auto const sent = pattern(0, next(), 1, nbytes);
        std::byte *const there = ours().memory_of(next()) + odd;
        ours().put(next(), there, sent.data(), nbytes);
        ours().flush(next());
        std::vector<std::byte> back(nbytes);
        ours().get(next(), there, back.data(), nbytes);
        EXPECT_TRUE(holds(back.data(), sent));
    }
    ours().meet(); // the others serve here, by the conduit's own thread
}

TEST(transfer, a_flush_covers_small_and_large_puts_in_flight) {
    constexpr std::size_t num_puts = 3000;
    constexpr std::size_t stride = 12000;
    for (int round = 0; round < 3; ++round) {
        std::vector<std::vector<std::uint8_t>> sent;
        for (std::size_t i = 0; i < num_puts; ++i) {
            std::size_t const nbytes = i % 7 == 0 ? stride : 1 + i * 37 % 2000;
            sent.push_back(pattern(ours().rank(), static_cast<int>(i), round, nbytes));
        }
        completion source_free;
        completion done;
        for (std::size_t i = 0; i < num_puts; ++i) {
            std::byte *const to = part(next(), 0) + i * stride;
            if (ours().is_direct(next())) {
                std::memcpy(to, sent[i].data(), sent[i].size());
            } else {
                ASSERT_TRUE(ours().conduit().rma()->put(
                    world_rank{next()}, reinterpret_cast<std::uintptr_t>(to), sent[i].data(),
                    sent[i].size(), source_free));
            }
        }
        ASSERT_TRUE(ours().start_flush(next(), done));
        ours().wait(done);
        ours().wait(source_free);
        ours().meet();
        for (std::size_t i = 0; i < num_puts; ++i) {
            std::size_t const nbytes = i % 7 == 0 ? stride : 1 + i * 37 % 2000;
            ASSERT_TRUE(holds(part(ours().rank(), 0) + i * stride,
                              pattern(previous(), static_cast<int>(i), round, nbytes)))
                << i;
        }
        ours().meet();
    }
}

TEST(transfer, flush_of_nothing_is_done) {
    completion done;
    for (int peer = 0; peer < ours().size(); ++peer) {
        ASSERT_TRUE(ours().start_flush(peer, done));
        EXPECT_TRUE(done.is_done());
    }
    ASSERT_TRUE(ours().start_flush_all(done));
    EXPECT_TRUE(done.is_done());
    ours().meet();
}

TEST(transfer, flushes_may_overlap) {
    constexpr std::size_t num_flushes = 64;
    std::vector<std::uint64_t> values(num_flushes);
    std::vector<completion> done(num_flushes);
    completion source_free;
    for (std::size_t i = 0; i < num_flushes; ++i) {
        values[i] = i + 1;
        std::byte *const to = part(next(), 0) + i * 8;
        if (ours().is_direct(next())) {
            std::memcpy(to, &values[i], 8);
        } else {
            ASSERT_TRUE(ours().conduit().rma()->put(world_rank{next()},
                                                    reinterpret_cast<std::uintptr_t>(to),
                                                    &values[i], 8, source_free));
        }
        ASSERT_TRUE(ours().start_flush(next(), done[i]));
        // A second flush with nothing new still waits for the first.
        ASSERT_TRUE(ours().start_flush_all(done[i]));
    }
    for (std::size_t i = 0; i < num_flushes; ++i) {
        ours().wait(done[i]);
    }
    ours().meet();
    for (std::size_t i = 0; i < num_flushes; ++i) {
        std::uint64_t seen = 0;
        std::memcpy(&seen, part(ours().rank(), 0) + i * 8, 8);
        EXPECT_EQ(seen, i + 1);
    }
    ours().meet();
}

TEST(transfer, storm_of_puts_and_gets_to_all_by_threads) {
    constexpr int num_threads = 3;
    constexpr int num_rounds = 200;
    constexpr std::size_t cell = 20000;
    auto const at = [](int owner, int writer, int thread, int slot) {
        return part(owner, writer) + static_cast<std::size_t>(thread * 8 + slot) * cell;
    };
    std::atomic<int> mismatches{0};
    auto const body = [&](int thread) {
        for (int round = 0; round < num_rounds; ++round) {
            for (int peer = 0; peer < ours().size(); ++peer) {
                std::size_t const nbytes =
                    1 + static_cast<std::size_t>(round * 7919 + thread * 104729) % cell;
                std::byte *const there = at(peer, ours().rank(), thread, round % 8);
                auto const sent = pattern(ours().rank(), peer, round * 4 + thread, nbytes);
                ours().put(peer, there, sent.data(), nbytes);
                ours().flush(peer);
                std::vector<std::uint8_t> back(nbytes);
                ours().get(peer, there, back.data(), nbytes);
                mismatches += back == sent ? 0 : 1;
            }
        }
    };
    std::vector<std::thread> threads;
    for (int thread = 0; thread < num_threads; ++thread) {
        threads.emplace_back(body, thread);
    }
    for (auto &thread : threads) {
        thread.join();
    }
    EXPECT_EQ(mismatches, 0);
    ours().meet();
}

TEST(transfer, many_gets_in_flight) {
    constexpr std::size_t num_gets = 10000;
    auto *const mine = reinterpret_cast<std::uint64_t *>(ours().memory_of(ours().rank()));
    for (std::size_t i = 0; i < num_gets; ++i) {
        mine[i] = i * 3 + static_cast<std::size_t>(ours().rank());
    }
    ours().meet();
    std::vector<std::uint64_t> got(num_gets);
    completion done;
    for (std::size_t i = 0; i < num_gets; ++i) {
        const std::byte *const from = ours().memory_of(next()) + i * 8;
        if (ours().is_direct(next())) {
            std::memcpy(&got[i], from, 8);
        } else {
            ASSERT_TRUE(ours().conduit().rma()->get(
                world_rank{next()}, reinterpret_cast<std::uintptr_t>(from), &got[i], 8, done));
        }
    }
    ours().wait(done);
    for (std::size_t i = 0; i < num_gets; ++i) {
        ASSERT_EQ(got[i], i * 3 + static_cast<std::size_t>(next()));
    }
    ours().meet();
}

} // namespace
