// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ompx_realloc on all kinds of global memory.
#include "diomp.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

int const me = ompx_rank_num();
int const ranks = ompx_num_ranks();
int const next = (me + 1) % ranks;
int const before = (me + ranks - 1) % ranks;

ompx_segment_info_t segment() {
    ompx_segment_info_t info{};
    EXPECT_EQ(ompx_segment_info(&info), 0);
    return info;
}

ompx_addr_info_t about(const void *p) {
    ompx_addr_info_t info{};
    EXPECT_EQ(ompx_addr_info(p, &info), 0);
    return info;
}

std::int64_t value(int rank, std::size_t i) { return rank * 1000000 + static_cast<int>(i); }

class kinds : public testing::TestWithParam<ompx_mem_kind_t> {};

TEST_P(kinds, keep_their_contents) {
    std::size_t const blocks = segment().num_allocations;
    std::size_t const used = segment().symmetric_used + segment().local_used;
    auto *p = static_cast<std::int64_t *>(ompx_alloc(1000 * 8, 0, GetParam()));
    ASSERT_NE(p, nullptr);
    std::size_t kept = 1000;
    for (std::size_t i = 0; i < kept; ++i) {
        p[i] = value(me, i);
    }
    for (std::size_t const count : {100000UL, 7UL, 8UL, 3000UL, 3000UL}) {
        p = static_cast<std::int64_t *>(ompx_realloc(p, count * 8));
        ASSERT_NE(p, nullptr);
        EXPECT_EQ(about(p).kind, GetParam());
        EXPECT_EQ(about(p).base, p);
        EXPECT_GE(about(p).nbytes, count * 8);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % 64, 0U);
        kept = std::min(kept, count);
        for (std::size_t i = 0; i < kept; ++i) {
            ASSERT_EQ(p[i], value(me, i)) << count << ' ' << i;
        }
    }
    EXPECT_EQ(ompx_realloc(p, 0), nullptr);
    EXPECT_EQ(segment().num_allocations, blocks);
    EXPECT_EQ(segment().symmetric_used + segment().local_used, used);
    ASSERT_EQ(ompx_barrier(), 0);
}
INSTANTIATE_TEST_SUITE_P(all, kinds,
                         testing::Values(OMPX_MEM_SYMMETRIC, OMPX_MEM_ASYMMETRIC, OMPX_MEM_LOCAL));

/// What was put before the call is kept, and a put may follow at once.
TEST(reallocation, of_symmetric_memory_may_stand_between_puts) {
    constexpr std::size_t words = 50000;
    auto *p = static_cast<std::int64_t *>(ompx_alloc(words * 8, 0, OMPX_MEM_SYMMETRIC));
    std::vector<std::int64_t> source(words);
    for (int round = 0; round < 20; ++round) {
        for (std::size_t i = 0; i < words; ++i) {
            source[i] = value(me + round, i);
        }
        ASSERT_EQ(ompx_put_nb(next, p, source.data(), words * 8, nullptr), 0);
        p = static_cast<std::int64_t *>(
            ompx_realloc(p, (words + static_cast<std::size_t>(round % 3) * 9000) * 8));
        ASSERT_NE(p, nullptr);
        for (std::size_t i = 1; i < words; ++i) {
            ASSERT_EQ(p[i], value(before + round, i)) << round << ' ' << i;
        }
        std::int64_t const word = -round;
        ASSERT_EQ(ompx_put(next, p, &word, 8), 0); // not overwritten by the target's copy
        ASSERT_EQ(ompx_barrier(), 0);
        EXPECT_EQ(p[0], -round);
        ASSERT_EQ(ompx_barrier(), 0);
    }
    EXPECT_EQ(ompx_free(p), 0);
}

TEST(reallocation, of_asymmetric_memory_gives_each_rank_its_size) {
    auto const count = [](int rank, int round) {
        return static_cast<std::size_t>(100 + 1000 * ((rank + round) % ranks));
    };
    auto *p = static_cast<std::int64_t *>(ompx_alloc(count(me, 0) * 8, 0, OMPX_MEM_ASYMMETRIC));
    for (int round = 1; round < 6; ++round) {
        p = static_cast<std::int64_t *>(ompx_realloc(p, count(me, round) * 8));
        ASSERT_NE(p, nullptr);
        // The last element of the next rank's block: its new second-level pointer is found.
        std::size_t nbytes = 0;
        auto *const there = static_cast<std::int64_t *>(ompx_global_ptr(p, next, &nbytes));
        ASSERT_NE(there, nullptr);
        ASSERT_GE(nbytes, count(next, round) * 8);
        std::int64_t const word = value(me, static_cast<std::size_t>(round));
        ASSERT_EQ(ompx_put(next, there + count(next, round) - 1, &word, 8), 0);
        ASSERT_EQ(ompx_barrier(), 0);
        EXPECT_EQ(p[count(me, round) - 1], value(before, static_cast<std::size_t>(round)));
        ASSERT_EQ(ompx_barrier(), 0);
    }
    EXPECT_EQ(ompx_free(p), 0);
}

TEST(reallocation, of_asymmetric_memory_to_nothing_on_some_ranks_keeps_empty_blocks) {
    std::size_t const blocks = segment().num_allocations;
    auto *p = static_cast<std::int64_t *>(ompx_alloc(me == 0 ? 0 : 800, 0, OMPX_MEM_ASYMMETRIC));
    ASSERT_NE(p, nullptr);
    for (int round = 0; round < 6 && ranks > 1; ++round) {
        bool const is_empty = me % 2 == round % 2;
        p = static_cast<std::int64_t *>(ompx_realloc(p, is_empty ? 0 : 1000));
        ASSERT_NE(p, nullptr);
        EXPECT_EQ(about(p).kind, OMPX_MEM_ASYMMETRIC);
        std::int64_t const word = value(me, static_cast<std::size_t>(round));
        if (next % 2 != round % 2) {
            ASSERT_EQ(ompx_put(next, ompx_global_ptr(p, next, nullptr), &word, 8), 0);
        }
        ASSERT_EQ(ompx_barrier(), 0);
        if (!is_empty) {
            EXPECT_EQ(p[0], value(before, static_cast<std::size_t>(round)));
        }
        ASSERT_EQ(ompx_barrier(), 0);
    }
    EXPECT_EQ(ompx_realloc(p, 0), nullptr);
    EXPECT_EQ(segment().num_allocations, blocks);
    ASSERT_EQ(ompx_barrier(), 0);
}

TEST(reallocation, of_nothing_allocates_symmetric_memory) {
    void *const p = ompx_realloc(nullptr, 100);
    ASSERT_NE(p, nullptr);
    EXPECT_EQ(about(p).kind, OMPX_MEM_SYMMETRIC);
    std::size_t offset = about(p).offset;
    std::size_t least = 0;
    ASSERT_EQ(ompx_allreduce(&least, &offset, 1, OMPX_UINT64, OMPX_MIN, nullptr), 0);
    EXPECT_EQ(least, offset);
    void *const empty = ompx_realloc(nullptr, 0);
    EXPECT_NE(empty, nullptr);
    EXPECT_EQ(ompx_free(empty), 0);
    EXPECT_EQ(ompx_free(p), 0);
}

class failed : public testing::TestWithParam<ompx_mem_kind_t> {};

TEST_P(failed, leaves_the_block_as_it_was) {
    auto *const p = static_cast<std::int64_t *>(ompx_alloc(1000 * 8, 0, GetParam()));
    for (std::size_t i = 0; i < 1000; ++i) {
        p[i] = value(me, i);
    }
    auto const info = segment();
    auto const is_unchanged = [&] {
        for (std::size_t i = 0; i < 1000; ++i) {
            EXPECT_EQ(p[i], value(me, i));
        }
        EXPECT_EQ(segment().num_allocations, info.num_allocations);
        EXPECT_EQ(about(p).nbytes, 8000U);
    };
    EXPECT_EQ(ompx_realloc(p, std::size_t{1} << 40), nullptr);
    EXPECT_THAT(std::string(ompx_last_error()), testing::HasSubstr("ompx_realloc"));
    is_unchanged();
    EXPECT_EQ(ompx_realloc(p, SIZE_MAX), nullptr);
    is_unchanged();
    if (GetParam() != OMPX_MEM_LOCAL && ranks > 1) {
        // Space on this rank only; with different blocks it is a mismatch.
        if (GetParam() == OMPX_MEM_ASYMMETRIC) {
            EXPECT_EQ(ompx_realloc(p, me == ranks - 1 ? std::size_t{1} << 40 : 800), nullptr);
            is_unchanged();
        } else {
            EXPECT_EQ(ompx_realloc(p, me == 0 ? 100 : 200), nullptr);
            EXPECT_THAT(std::string(ompx_last_error()), testing::HasSubstr("disagree"));
            is_unchanged();
        }
        void *const other = ompx_alloc(1000 * 8, 0, GetParam());
        EXPECT_EQ(ompx_realloc(me == 0 ? p : other, 800), nullptr);
        EXPECT_THAT(std::string(ompx_last_error()), testing::HasSubstr("disagree"));
        // One rank allocates or frees instead.
        if (GetParam() == OMPX_MEM_SYMMETRIC) {
            EXPECT_EQ(ompx_realloc(me == 0 ? nullptr : p, 800), nullptr);
            EXPECT_THAT(std::string(ompx_last_error()), testing::HasSubstr("reallocation"));
        }
        if (me == 0) {
            EXPECT_EQ(ompx_free(p), OMPX_ERR_MISMATCH);
        } else {
            EXPECT_EQ(ompx_realloc(p, 800), nullptr);
        }
        EXPECT_THAT(std::string(ompx_last_error()), testing::HasSubstr("disagree"));
        EXPECT_EQ(ompx_free(other), 0);
        is_unchanged();
    }
    EXPECT_EQ(ompx_free(p), 0);
}
INSTANTIATE_TEST_SUITE_P(all, failed,
                         testing::Values(OMPX_MEM_SYMMETRIC, OMPX_MEM_ASYMMETRIC, OMPX_MEM_LOCAL));

TEST(reallocation, of_other_addresses_is_an_error) {
    auto *const p = static_cast<char *>(ompx_alloc(1000, 0, OMPX_MEM_LOCAL));
    int on_stack = 0;
    EXPECT_EQ(ompx_realloc(&on_stack, 100), nullptr);
    EXPECT_THAT(std::string(ompx_last_error()), testing::HasSubstr("not in this rank's segment"));
    EXPECT_EQ(ompx_realloc(p + 64, 100), nullptr);
    EXPECT_THAT(std::string(ompx_last_error()), testing::HasSubstr("not at its start"));
    EXPECT_EQ(ompx_free(p), 0);
    EXPECT_EQ(ompx_realloc(p, 100), nullptr);
    ASSERT_EQ(ompx_barrier(), 0);
}

TEST(reallocation, of_an_owners_array) {
    auto array = diomp::make_symmetric<int[]>(10);
    array[9] = me;
    diomp::reallocate(array, 5000);
    EXPECT_EQ(array[9], me);
    array[4999] = 1;
    EXPECT_THROW(diomp::reallocate(array, 0), diomp::error);
    EXPECT_THROW(diomp::reallocate(array, SIZE_MAX / 2), diomp::error);
    EXPECT_THROW(diomp::reallocate(array, std::size_t{1} << 40), diomp::error);
    EXPECT_EQ(array[9], me);
    ASSERT_EQ(ompx_barrier(), 0);
}

} // namespace
