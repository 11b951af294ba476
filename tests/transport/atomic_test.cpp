// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Contract of atomic(), of conduits that have it: DIOMP_NETWORK_ATOMICS=native demands it.
#include "transport/world.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

namespace {

using namespace diomp_test;
using diomp::transport::atomic_call;
using diomp::transport::atomic_op;

bool is_demanded() {
    const char *const wish = std::getenv("DIOMP_NETWORK_ATOMICS");
    return wish != nullptr && std::string_view(wish) == "native" && ours().size() > 1;
}

bool is_there() { return ours().conduit().atomics() != nullptr; }

/// A word of the tests' memory of a rank, far from what other tests use meanwhile.
std::byte *cell(int owner, int number) { return ours().memory_of(owner) + 64 * number; }

std::uint64_t fetch(int owner, std::byte *word, const atomic_call &call) {
    std::uint64_t old = 0;
    completion done;
    EXPECT_TRUE(ours().conduit().atomics()->atomic(
        world_rank{owner}, reinterpret_cast<std::uintptr_t>(word), call, &old, done));
    ours().wait(done);
    EXPECT_EQ(done.failure, 0);
    return old;
}

std::uint64_t load(const std::byte *word, std::size_t nbytes) {
    std::uint64_t value = 0;
    std::memcpy(&value, word, nbytes);
    return value;
}

TEST(atomic, is_there_if_and_only_if_demanded) { EXPECT_EQ(is_there(), is_demanded()); }

TEST(atomic, every_operation_at_every_rank_of_both_sizes) {
    if (!is_there()) {
        GTEST_SKIP();
    }
    for (std::size_t const nbytes : {std::size_t{4}, std::size_t{8}}) {
        for (int owner = 0; owner < ours().size(); ++owner) {
            SCOPED_TRACE(testing::Message() << nbytes << " bytes at rank " << owner);
            // Beside the word is what it may not touch.
            std::byte *const word = cell(owner, 1 + ours().rank());
            std::uint64_t const mask = nbytes == 4 ? 0xffffffff : ~std::uint64_t{0};
            auto const ask = [&](atomic_op op, std::uint64_t operand, std::uint64_t expected = 0) {
                return fetch(owner, word, {op, nbytes, operand & mask, expected & mask}) & mask;
            };
            ask(atomic_op::exchange, 10);
            EXPECT_EQ(ask(atomic_op::add, 5), 10u);
            EXPECT_EQ(ask(atomic_op::add, ~std::uint64_t{0}), 15u); // minus one
            EXPECT_EQ(ask(atomic_op::compare_exchange, 99, 11), 14u);
            EXPECT_EQ(ask(atomic_op::compare_exchange, 0x80000001, 14), 14u);
            EXPECT_EQ(ask(atomic_op::exchange, ~std::uint64_t{1}), 0x80000001u);
            EXPECT_EQ(ask(atomic_op::add, 0), ~std::uint64_t{1} & mask);
        }
    }
    ours().meet();
}

TEST(atomic, of_four_bytes_leaves_its_neighbours_alone) {
    if (!is_there()) {
        GTEST_SKIP();
    }
    std::byte *const mine = cell(ours().rank(), 0);
    std::memset(mine, 0x55, 64);
    std::memset(mine + 4, 0, 4);
    ours().meet();
    int const next = (ours().rank() + 1) % ours().size();
    fetch(next, cell(next, 0) + 4, {atomic_op::add, 4, 0xffffffff});
    fetch(next, cell(next, 0) + 4, {atomic_op::add, 4, 2});
    ours().meet();
    EXPECT_EQ(load(mine, 8), 0x0000000155555555u);
    EXPECT_EQ(load(mine + 8, 4), 0x55555555u);
    ours().meet();
}

/// All threads of all ranks on one word, some of them without a result, the owner among them.
TEST(atomic, loses_nothing_and_a_flush_covers_those_without_a_result) {
    if (!is_there()) {
        GTEST_SKIP();
    }
    constexpr int num_threads = 3;
    constexpr int num_rounds = 500;
    std::byte *const sum = cell(0, 0);
    std::byte *const compared = cell(0, 1);
    if (ours().rank() == 0) {
        std::memset(sum, 0, 128);
    }
    ours().meet();
    auto const body = [&] {
        std::uint64_t seen = 0;
        for (int i = 0; i < num_rounds; ++i) {
            if (i % 2 == 0 || ours().rank() == 0) {
                fetch(0, sum, {atomic_op::add, 8, 1});
            } else {
                completion unused;
                EXPECT_TRUE(ours().conduit().atomics()->atomic(
                    world_rank{0}, reinterpret_cast<std::uintptr_t>(sum), {atomic_op::add, 8, 1},
                    nullptr, unused));
                EXPECT_TRUE(unused.is_done());
            }
            for (;;) {
                std::uint64_t const expected = seen;
                seen = fetch(0, compared, {atomic_op::compare_exchange, 8, expected + 1, expected});
                if (seen == expected) {
                    ++seen;
                    break;
                }
            }
        }
        ours().flush(0);
    };
    std::vector<std::thread> threads;
    for (int thread = 0; thread < num_threads; ++thread) {
        threads.emplace_back(body);
    }
    for (auto &thread : threads) {
        thread.join();
    }
    ours().meet();
    auto const expected = static_cast<std::uint64_t>(num_threads * num_rounds * ours().size());
    EXPECT_EQ(fetch(0, sum, {atomic_op::add, 8, 0}), expected);
    EXPECT_EQ(fetch(0, compared, {atomic_op::add, 8, 0}), expected);
    ours().meet();
}

} // namespace
