// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Contract of put_rows and get_rows: what they say they have taken arrives, and nothing beside it.
// DIOMP_TEST_ROWS=<bytes> demands of a conduit that it takes rows up to that length.
#include "support/patterns.h"
#include "transport/world.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

using namespace diomp_test;
using diomp::transport::rows;

bool is_demanded(std::size_t row_bytes) {
    const char *const most = std::getenv("DIOMP_TEST_ROWS");
    return most != nullptr && row_bytes <= std::strtoul(most, nullptr, 10);
}

int next() { return (ours().rank() + 1) % ours().size(); }
int previous() { return (ours().rank() + ours().size() - 1) % ours().size(); }

/// Rows in nested loops, on both sides, by their pitches.
struct grid {
    std::size_t row_bytes;
    std::vector<std::size_t> counts;
    std::vector<std::ptrdiff_t> remote_pitches;
    std::vector<std::ptrdiff_t> local_pitches;

    [[nodiscard]] rows shape() const { return {row_bytes, counts, remote_pitches, local_pitches}; }

    /// Calls f(remote offset, local offset) for each row.
    template <typename F>
    void for_each_row(F &&f) const {
        std::vector<std::size_t> at(counts.size());
        for (;;) {
            std::ptrdiff_t remote = 0;
            std::ptrdiff_t local = 0;
            for (std::size_t i = 0; i < counts.size(); ++i) {
                remote += static_cast<std::ptrdiff_t>(at[i]) * remote_pitches[i];
                local += static_cast<std::ptrdiff_t>(at[i]) * local_pitches[i];
            }
            f(remote, local);
            std::size_t level = 0;
            while (level < counts.size() && ++at[level] == counts[level]) {
                at[level++] = 0;
            }
            if (level == counts.size()) {
                return;
            }
        }
    }
    [[nodiscard]] std::size_t extent(const std::vector<std::ptrdiff_t> &pitches) const {
        std::size_t end = row_bytes;
        for (std::size_t i = 0; i < counts.size(); ++i) {
            end += (counts[i] - 1) * static_cast<std::size_t>(pitches[i]);
        }
        return end;
    }
};

const std::vector<grid> &grids() {
    static const std::vector<grid> all = {
        {1, {7}, {3}, {2}},
        {8, {100}, {64}, {8}}, // gathered here, scattered there
        {24, {5, 4}, {32, 1000}, {100, 700}},
        {100, {3, 1, 5, 2}, {128, 400, 512, 3000}, {101, 303, 400, 2100}},
        {4096, {9, 3}, {5000, 50000}, {4096, 40000}},
        {10000, {6, 2}, {12000, 80000}, {10000, 60000}},
        {300000,
         {4},
         {
             300001,
         },
         {300100}},
        {16, {20000, 3}, {40, 900000}, {16, 400000}}, // larger than any message
    };
    return all;
}

/// True if the conduit has taken it; the caller moves the rows one by one otherwise.
bool move_together(bool puts, int peer, std::byte *there, std::byte *here, const grid &what,
                   completion &done) {
    auto *const rows = ours().conduit().rows();
    if (ours().is_direct(peer) || rows == nullptr) {
        EXPECT_TRUE(rows != nullptr || !is_demanded(what.row_bytes));
        return false;
    }
    auto const address = reinterpret_cast<std::uintptr_t>(there);
    auto taken = puts ? rows->put_rows(world_rank{peer}, address, here, what.shape(), done)
                      : rows->get_rows(world_rank{peer}, address, here, what.shape(), done);
    EXPECT_TRUE(taken.ok());
    bool const is_taken = taken.ok() && taken.value();
    EXPECT_TRUE(is_taken || !is_demanded(what.row_bytes));
    return is_taken;
}

void move(bool puts, int peer, std::byte *there, std::byte *here, const grid &what) {
    completion done;
    if (!move_together(puts, peer, there, here, what, done)) {
        what.for_each_row([&](std::ptrdiff_t remote, std::ptrdiff_t local) {
            if (puts) {
                ours().put(peer, there + remote, here + local, what.row_bytes);
            } else {
                ours().start_get(peer, there + remote, here + local, what.row_bytes, done);
            }
        });
    }
    ours().wait(done);
}

std::byte *as_bytes(std::vector<std::uint8_t> &values) {
    return reinterpret_cast<std::byte *>(values.data());
}

TEST(rows, puts_are_there_after_flush_and_touch_nothing_between) {
    constexpr std::size_t offset = 5;
    int round = 0;
    for (grid const &each : grids()) {
        std::size_t const extent = each.extent(each.remote_pitches);
        std::byte *const mine = ours().memory_of(ours().rank()) + offset;
        std::memset(mine, 0x55, extent);
        ours().meet();
        auto const local_bytes = each.extent(each.local_pitches);
        auto sent = pattern(ours().rank(), next(), round, local_bytes);
        move(true, next(), ours().memory_of(next()) + offset, as_bytes(sent), each);
        ours().flush(next());
        ours().meet();
        auto const theirs = pattern(previous(), ours().rank(), round, local_bytes);
        std::vector<std::uint8_t> expected(extent, 0x55);
        each.for_each_row([&](std::ptrdiff_t remote, std::ptrdiff_t local) {
            std::copy_n(theirs.begin() + local, each.row_bytes, expected.begin() + remote);
        });
        EXPECT_EQ(std::memcmp(mine, expected.data(), extent), 0) << round;
        ++round;
        ours().meet();
    }
}

TEST(rows, gets_bring_all_rows_and_touch_nothing_between) {
    int round = 0;
    for (grid const &each : grids()) {
        auto const extent = each.extent(each.remote_pitches);
        auto const mine = pattern(ours().rank(), 1, round, extent);
        std::memcpy(ours().memory_of(ours().rank()), mine.data(), extent);
        ours().meet();
        auto const theirs = pattern(next(), 1, round, extent);
        std::vector<std::uint8_t> got(each.extent(each.local_pitches), 0x55);
        std::vector<std::uint8_t> expected(got);
        each.for_each_row([&](std::ptrdiff_t remote, std::ptrdiff_t local) {
            std::copy_n(theirs.begin() + remote, each.row_bytes, expected.begin() + local);
        });
        move(false, next(), ours().memory_of(next()), as_bytes(got), each);
        EXPECT_TRUE(got == expected) << round;
        ++round;
        ours().meet();
    }
}

TEST(rows, a_flush_covers_them_beside_puts_without_a_wait_between) {
    grid const &what = grids()[4];
    std::size_t const extent = what.extent(what.remote_pitches);
    constexpr int num_boxes = 20;
    std::vector<std::vector<std::uint8_t>> sent;
    for (int i = 0; i < num_boxes; ++i) {
        sent.push_back(pattern(ours().rank(), i, 3, what.extent(what.local_pitches)));
    }
    completion source_free;
    completion flushed;
    for (int i = 0; i < num_boxes; ++i) {
        auto const index = static_cast<std::size_t>(i);
        std::byte *const there = ours().memory_of(next()) + index * (extent + 8);
        if (!move_together(true, next(), there, as_bytes(sent[index]), what, source_free)) {
            what.for_each_row([&](std::ptrdiff_t remote, std::ptrdiff_t local) {
                ours().put(next(), there + remote, as_bytes(sent[index]) + local, what.row_bytes);
            });
        }
        std::uint64_t const mark = 1000 + index;
        ours().put(next(), there + extent, &mark, sizeof(mark));
    }
    ASSERT_TRUE(ours().start_flush(next(), flushed));
    ours().wait(flushed);
    EXPECT_EQ(flushed.failure, 0);
    ours().wait(source_free);
    ours().meet();
    for (int i = 0; i < num_boxes; ++i) {
        auto const index = static_cast<std::size_t>(i);
        const std::byte *const here = ours().memory_of(ours().rank()) + index * (extent + 8);
        auto const theirs = pattern(previous(), i, 3, what.extent(what.local_pitches));
        std::uint64_t mark = 0;
        std::memcpy(&mark, here + extent, sizeof(mark));
        EXPECT_EQ(mark, 1000 + index);
        what.for_each_row([&](std::ptrdiff_t remote, std::ptrdiff_t local) {
            EXPECT_EQ(std::memcmp(here + remote, theirs.data() + local, what.row_bytes), 0) << i;
        });
    }
    ours().meet();
}

TEST(rows, by_threads_to_all) {
    constexpr int num_threads = 3;
    constexpr int num_rounds = 40;
    std::atomic<int> mismatches{0};
    auto const body = [&](int thread) {
        for (int round = 0; round < num_rounds; ++round) {
            grid const &what = grids()[static_cast<std::size_t>(round) % 4 + 1];
            for (int peer = 0; peer < ours().size(); ++peer) {
                std::byte *const there =
                    ours().memory_of(peer) +
                    static_cast<std::size_t>(ours().rank() * num_threads + thread) * 300000;
                auto sent = pattern(ours().rank(), thread, round, what.extent(what.local_pitches));
                auto back = std::vector<std::uint8_t>(sent.size(), 0x55);
                move(true, peer, there, as_bytes(sent), what);
                ours().flush(peer);
                move(false, peer, there, as_bytes(back), what);
                what.for_each_row([&](std::ptrdiff_t, std::ptrdiff_t local) {
                    mismatches +=
                        std::memcmp(back.data() + local, sent.data() + local, what.row_bytes) == 0
                            ? 0
                            : 1;
                });
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

} // namespace
