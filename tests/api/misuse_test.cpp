// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What bad use gets: each call returns its code (DIOMP_ERRORS=return), says rank, function,
// arguments and remedy, and the job goes on.
#include "diomp.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using testing::AllOf;
using testing::HasSubstr;

int const me = ompx_rank_num();
int const ranks = ompx_num_ranks();

std::string text() { return ompx_last_error(); }
std::string rank_is_named() { return "rank " + std::to_string(me) + " ("; }

class misuse : public testing::Test {
protected:
    static constexpr std::size_t nbytes = 4096;
    void SetUp() override {
        memory = static_cast<char *>(ompx_alloc(nbytes, 0, OMPX_MEM_SYMMETRIC));
        ompx_barrier();
    }
    void TearDown() override {
        // Still in step after every error.
        EXPECT_EQ(ompx_barrier(), 0);
        EXPECT_EQ(ompx_free(memory), 0);
    }
    char *memory = nullptr;
    char local[64] = {};
};

TEST_F(misuse, rank_out_of_range) {
    for (int const rank : {-1, ranks, 1 << 30}) {
        EXPECT_EQ(ompx_put(rank, memory, local, 8), OMPX_ERR_RANK);
        EXPECT_THAT(text(), AllOf(HasSubstr(rank_is_named()), HasSubstr("ompx_put"),
                                  HasSubstr("rank=" + std::to_string(rank)), HasSubstr("nbytes=8"),
                                  HasSubstr("remedy"),
                                  HasSubstr(ranks == 1 ? "diomp-run -n N"
                                                       : "0 to " + std::to_string(ranks - 1))));
        EXPECT_EQ(ompx_get(local, rank, memory, 8), OMPX_ERR_RANK);
        std::int64_t one = 1;
        EXPECT_EQ(ompx_atomic_add(rank, memory, &one, OMPX_INT64), OMPX_ERR_RANK);
        std::uint64_t signal = 0;
        EXPECT_EQ(ompx_put_signal(rank, memory, local, 8, &signal, 1, OMPX_SIGNAL_SET),
                  OMPX_ERR_RANK);
        EXPECT_EQ(ompx_global_ptr(memory, rank, nullptr), nullptr);
    }
}

TEST_F(misuse, address_outside_the_space) {
    int const to = (me + 1) % ranks;
    EXPECT_EQ(ompx_put(to, local, "12345678", 8), OMPX_ERR_ADDRESS);
    EXPECT_THAT(text(),
                AllOf(HasSubstr("outside the global address space"), HasSubstr("ompx_register")));
    EXPECT_EQ(ompx_get(local, to, "a literal", 8), OMPX_ERR_ADDRESS);
    std::int64_t const one = 1;
    alignas(8) char on_stack[8];
    EXPECT_EQ(ompx_atomic_add(to, on_stack, &one, OMPX_INT64), OMPX_ERR_ADDRESS);
}

TEST_F(misuse, range_past_the_end_of_the_segment) {
    ompx_segment_info_t info;
    ASSERT_EQ(ompx_segment_info(&info), 0);
    EXPECT_EQ(ompx_put(me, memory, local, info.nbytes + 1), OMPX_ERR_RANGE);
    EXPECT_THAT(text(), HasSubstr("past the end"));
    auto *const end = static_cast<char *>(info.base) + info.nbytes;
    int const to = (me + 1) % ranks;
    EXPECT_LT(ompx_put(to, end - 4, local, 8), 0);
}

TEST_F(misuse, range_past_the_end_of_the_allocation) {
    int const to = (me + 1) % ranks;
    EXPECT_EQ(ompx_put(to, memory + nbytes - 4, local, 8), OMPX_ERR_RANGE);
    EXPECT_THAT(text(), AllOf(HasSubstr("allocation of 4096 bytes"), HasSubstr("nbytes=8")));
    EXPECT_EQ(ompx_get(local, to, memory + nbytes - 4, 8), OMPX_ERR_RANGE);
    EXPECT_EQ(ompx_put(to, memory + nbytes - 8, local, 8), 0);
    // Its counterpart through the peer's own address is checked by the peer.
    auto *const there = static_cast<char *>(ompx_global_ptr(memory, to, nullptr));
    EXPECT_EQ(ompx_put(to, there + nbytes - 4, local, 8), OMPX_ERR_RANGE);
    EXPECT_EQ(ompx_put(to, there + nbytes - 8, local, 8), 0);
}

TEST_F(misuse, null_pointers) {
    EXPECT_EQ(ompx_put(me, nullptr, local, 8), OMPX_ERR_ARG);
    EXPECT_THAT(text(), HasSubstr("dst is a null pointer"));
    EXPECT_EQ(ompx_put(me, memory, nullptr, 8), OMPX_ERR_ARG);
    EXPECT_THAT(text(), HasSubstr("src is a null pointer"));
    EXPECT_EQ(ompx_get(nullptr, me, memory, 8), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_put_nb(me, memory, nullptr, 8, nullptr), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_event_wait(nullptr), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_segment_info(nullptr), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_addr_info(memory, nullptr), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_register(nullptr, 8), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_signal_wait(nullptr, OMPX_CMP_EQ, 0), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_put_rect(me, memory, local, 4, 1, nullptr, nullptr, nullptr, nullptr, nullptr),
              OMPX_ERR_ARG);
}

TEST_F(misuse, null_pointers_of_boxes) {
    std::size_t const empty[]{0, 3};
    std::size_t const full[]{1, 3};
    std::size_t const zero[]{0, 0};
    std::size_t const dims[]{4, 4};
    auto *const signal = reinterpret_cast<std::uint64_t *>(memory);
    for (int const rank : {me, (me + 1) % ompx_num_ranks()}) {
        EXPECT_EQ(ompx_put_rect(rank, nullptr, nullptr, 8, 2, empty, zero, zero, dims, dims), 0);
        EXPECT_EQ(ompx_get_rect(nullptr, rank, nullptr, 8, 2, empty, zero, zero, dims, dims), 0);
        ompx_event_t event = nullptr;
        EXPECT_EQ(
            ompx_put_rect_nb(rank, nullptr, nullptr, 8, 2, empty, zero, zero, dims, dims, &event),
            0);
        EXPECT_EQ(ompx_event_wait(&event), 0);
        EXPECT_EQ(
            ompx_get_rect_nb(nullptr, rank, nullptr, 8, 2, empty, zero, zero, dims, dims, &event),
            0);
        EXPECT_EQ(ompx_event_wait(&event), 0);
        EXPECT_EQ(ompx_put_rect_signal(rank, nullptr, nullptr, 8, 2, empty, zero, zero, dims, dims,
                                       signal, 7, OMPX_SIGNAL_SET),
                  0);
        EXPECT_EQ(ompx_put_rect(rank, nullptr, nullptr, 8, 2, full, zero, zero, dims, dims),
                  OMPX_ERR_ARG);
        EXPECT_THAT(text(), HasSubstr("dst is a null pointer"));
        EXPECT_EQ(
            ompx_get_rect_nb(nullptr, rank, memory, 8, 2, full, zero, zero, dims, dims, &event),
            OMPX_ERR_ARG);
        EXPECT_THAT(text(), HasSubstr("dst is a null pointer"));
    }
}

TEST_F(misuse, negative_and_overflowing_sizes) {
    EXPECT_EQ(ompx_put(me, memory, local, static_cast<std::size_t>(-8)), OMPX_ERR_ARG);
    EXPECT_THAT(text(), AllOf(HasSubstr("negative"), HasSubstr("-8")));
    EXPECT_EQ(ompx_get(local, me, memory, SIZE_MAX), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_alloc(SIZE_MAX, 0, OMPX_MEM_LOCAL), nullptr);
    EXPECT_EQ(ompx_alloc(static_cast<std::size_t>(-64), 0, OMPX_MEM_LOCAL), nullptr);
    std::size_t const volume[]{SIZE_MAX / 2, 4};
    std::size_t const zero[]{0, 0};
    std::size_t const dimensions[]{SIZE_MAX, SIZE_MAX};
    EXPECT_EQ(ompx_put_rect(me, memory, local, 8, 2, volume, zero, zero, dimensions, dimensions),
              OMPX_ERR_ARG);
    std::size_t const small[]{2, 2};
    std::size_t const beyond[]{3, 0};
    std::size_t const four[]{4, 4};
    EXPECT_EQ(ompx_put_rect(me, memory, local, 1, 2, small, beyond, zero, four, four),
              OMPX_ERR_RANGE);
    EXPECT_THAT(text(), HasSubstr("dimension 0"));
}

TEST_F(misuse, zero_lengths_are_valid) {
    int const to = (me + 1) % ranks;
    EXPECT_EQ(ompx_put(to, memory, local, 0), 0);
    EXPECT_EQ(ompx_get(local, to, memory + nbytes, 0), 0);
    EXPECT_EQ(ompx_put(to, nullptr, nullptr, 0), 0);
}

TEST_F(misuse, free_of_what_was_not_allocated_or_twice) {
    EXPECT_EQ(ompx_free(local), OMPX_ERR_ADDRESS);
    EXPECT_EQ(ompx_free(memory + 64), OMPX_ERR_ADDRESS);
    EXPECT_THAT(text(), HasSubstr("64 bytes inside an allocation"));
    void *const once = ompx_alloc(100, 0, OMPX_MEM_LOCAL);
    EXPECT_EQ(ompx_free(once), 0);
    EXPECT_EQ(ompx_free(once), OMPX_ERR_ADDRESS);
    EXPECT_THAT(text(), HasSubstr("freed before"));
    EXPECT_EQ(ompx_free(nullptr), 0);
    if (ranks > 1) {
        EXPECT_EQ(ompx_free(ompx_global_ptr(memory, (me + 1) % ranks, nullptr)), OMPX_ERR_ADDRESS);
    }
}

TEST_F(misuse, use_after_free) {
    auto *const freed = static_cast<char *>(ompx_alloc(100, 0, OMPX_MEM_SYMMETRIC));
    ASSERT_EQ(ompx_free(freed), 0);
    EXPECT_EQ(ompx_put((me + 1) % ranks, freed, local, 8), OMPX_ERR_ADDRESS);
}

TEST_F(misuse, symmetric_allocation_with_differing_sizes) {
    if (ranks == 1) {
        GTEST_SKIP() << "needs two ranks";
    }
    std::size_t const asked = me == 0 ? 1000 : 2000;
    EXPECT_EQ(ompx_alloc(asked, 0, OMPX_MEM_SYMMETRIC), nullptr);
    EXPECT_EQ(ompx_last_error_status(), OMPX_ERR_MISMATCH);
    EXPECT_THAT(text(), AllOf(HasSubstr("1000"), HasSubstr("2000"), HasSubstr(rank_is_named())));
    // Different calls.
    if (me == 0) {
        EXPECT_EQ(ompx_barrier(), OMPX_ERR_MISMATCH);
    } else {
        EXPECT_EQ(ompx_alloc(64, 0, OMPX_MEM_SYMMETRIC), nullptr);
    }
    EXPECT_THAT(text(), HasSubstr("barrier"));
    // The heaps are equal again: the next allocation agrees.
    void *const both = ompx_alloc(500, 0, OMPX_MEM_SYMMETRIC);
    ASSERT_NE(both, nullptr);
    std::uint64_t offset = 0;
    ompx_addr_info_t info;
    ASSERT_EQ(ompx_addr_info(both, &info), 0);
    std::memcpy(memory, &info.offset, sizeof(info.offset));
    ompx_barrier();
    ASSERT_EQ(ompx_get(&offset, (me + 1) % ranks, memory, sizeof(offset)), 0);
    EXPECT_EQ(offset, info.offset);
    ompx_barrier();
    EXPECT_EQ(ompx_free(both), 0);
}

// Rank 0 does not wait in its call, so it is told at the end of a later one.
TEST_F(misuse, a_mismatch_that_is_noticed_late_leaves_the_heaps_equal) {
    if (ranks == 1) {
        GTEST_SKIP() << "needs two ranks";
    }
    void *const freed = ompx_alloc(1000, 0, OMPX_MEM_SYMMETRIC);
    ASSERT_NE(freed, nullptr);
    std::vector<std::int32_t> all(static_cast<std::size_t>(ranks) * 8);
    std::vector<std::int32_t> const own(8, me);
    int const first = me == 0 ? ompx_gather(all.data(), own.data(), 8 * sizeof(own[0]), 1, nullptr)
                              : ompx_scan(all.data(), own.data(), 8, OMPX_INT32, OMPX_SUM, nullptr);
    EXPECT_EQ(first == 0 || first == OMPX_ERR_MISMATCH, true) << first;
    EXPECT_EQ(ompx_free(freed), 0);
    void *const made = ompx_alloc(2000, 0, OMPX_MEM_SYMMETRIC);
    ASSERT_NE(made, nullptr);
    int const second = ompx_barrier();
    EXPECT_EQ(second == 0 || second == OMPX_ERR_MISMATCH, true) << second;
    EXPECT_TRUE(first != 0 || second != 0);
    ompx_addr_info_t info;
    ASSERT_EQ(ompx_addr_info(made, &info), 0);
    auto const offset = static_cast<std::int64_t>(info.offset);
    std::int64_t largest = 0;
    std::int64_t least = 0;
    EXPECT_EQ(ompx_allreduce(&largest, &offset, 1, OMPX_INT64, OMPX_MAX, nullptr), 0);
    EXPECT_EQ(ompx_allreduce(&least, &offset, 1, OMPX_INT64, OMPX_MIN, nullptr), 0);
    EXPECT_EQ(largest, least);
    EXPECT_EQ(ompx_free(made), 0);
}

TEST_F(misuse, running_out_says_what_to_set) {
    ompx_segment_info_t before;
    ASSERT_EQ(ompx_segment_info(&before), 0);
    EXPECT_EQ(ompx_alloc(before.nbytes * 2, 0, OMPX_MEM_SYMMETRIC), nullptr);
    EXPECT_EQ(ompx_last_error_status(), OMPX_ERR_NOMEM);
    EXPECT_THAT(text(), AllOf(HasSubstr(std::to_string(before.nbytes * 2)), HasSubstr("used"),
                              HasSubstr("free"), HasSubstr("DIOMP_SEGMENT_SIZE")));
    EXPECT_EQ(ompx_alloc(8, 0, static_cast<ompx_mem_kind_t>(17)), nullptr);
    EXPECT_EQ(ompx_last_error_status(), OMPX_ERR_ARG);
    // Only one rank is short: all fail together.
    void *const hog = me == 0 ? ompx_alloc(before.largest_free, 0, OMPX_MEM_LOCAL) : nullptr;
    EXPECT_EQ(hog != nullptr, me == 0);
    EXPECT_EQ(ompx_alloc(1 << 20, 0, OMPX_MEM_SYMMETRIC), nullptr);
    if (me != 0) {
        EXPECT_THAT(text(), HasSubstr("rank 0 has no space"));
    }
    EXPECT_EQ(ompx_free(hog), 0);
    ompx_segment_info_t after;
    ASSERT_EQ(ompx_segment_info(&after), 0);
    EXPECT_EQ(after.largest_free, before.largest_free);
}

TEST_F(misuse, alignment) {
    EXPECT_EQ(ompx_alloc(64, 3, OMPX_MEM_LOCAL), nullptr);
    EXPECT_EQ(ompx_alloc(64, std::size_t{1} << 40, OMPX_MEM_LOCAL), nullptr);
    std::int64_t const one = 1;
    EXPECT_EQ(ompx_atomic_add(me, memory + 3, &one, OMPX_INT64), OMPX_ERR_ARG);
    EXPECT_THAT(text(), HasSubstr("not aligned"));
}

TEST_F(misuse, types_and_operators) {
    std::int64_t const one = 1;
    EXPECT_EQ(ompx_atomic_add(me, memory, &one, 999), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_atomic_fetch(me, memory, &one, nullptr, OMPX_INT64, OMPX_LAND), OMPX_ERR_ARG);
    EXPECT_THAT(text(), HasSubstr("type=OMPX_INT64, op=OMPX_LAND)"));
    double sum = 0;
    EXPECT_EQ(ompx_allreduce(&sum, &sum, 1, OMPX_DOUBLE, OMPX_BOR, nullptr), OMPX_ERR_ARG);
    EXPECT_THAT(text(), HasSubstr("count=1, type=OMPX_DOUBLE, op=OMPX_BOR, group=world)"));
    EXPECT_EQ(ompx_waitRMA(0), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_waitRMA(64), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_waitRMA(OMPX_RMA_PUT | OMPX_RMA_GET), 0);
    EXPECT_EQ(ompx_wait_until(memory, OMPX_DOUBLE, OMPX_CMP_EQ, &one), OMPX_ERR_ARG);
    EXPECT_THAT(text(), HasSubstr("type=OMPX_DOUBLE, cmp=OMPX_CMP_EQ)"));
    EXPECT_EQ(ompx_wait_until(memory, OMPX_INT64, static_cast<ompx_cmp_t>(7), &one), OMPX_ERR_ARG);
    EXPECT_THAT(text(), HasSubstr("cmp=7)"));
    EXPECT_EQ(ompx_rank_device(0), OMPX_ERR_ARG); // this program has none
    EXPECT_THAT(text(), AllOf(HasSubstr("drives 0 devices"), HasSubstr("-fopenmp-targets")));
}

TEST_F(misuse, registration) {
    static char mine[1000];
    EXPECT_EQ(ompx_unregister(mine), OMPX_ERR_ADDRESS);
    ASSERT_EQ(ompx_register(mine, sizeof(mine)), 0);
    EXPECT_EQ(ompx_register(mine + 10, 10), OMPX_ERR_ADDRESS);
    EXPECT_THAT(text(), HasSubstr("overlaps"));
    EXPECT_EQ(ompx_register(memory, 64), OMPX_ERR_ADDRESS);
    // Non-PIE or PIE, all ranks run the same program: the address of `mine` is the same only by
    // luck, so ask the owner.
    EXPECT_EQ(ompx_put(me, mine + 996, local, 8), OMPX_ERR_RANGE);
    ompx_barrier();
    ASSERT_EQ(ompx_unregister(mine), 0);
    EXPECT_EQ(ompx_put(me, mine, local, 8), OMPX_ERR_ADDRESS);
}

TEST_F(misuse, registration_of_addresses_without_memory) {
    auto const page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    void *const gap =
        ::mmap(nullptr, 3 * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(gap, MAP_FAILED);
    ASSERT_EQ(::munmap(static_cast<char *>(gap) + page_bytes, page_bytes), 0);
    EXPECT_EQ(ompx_register(gap, 3 * page_bytes), OMPX_ERR_ADDRESS);
    EXPECT_THAT(text(), AllOf(HasSubstr("addresses without memory"), HasSubstr("remedy")));
    EXPECT_EQ(ompx_register_symmetric(gap, page_bytes + 1), OMPX_ERR_ADDRESS);
    EXPECT_EQ(ompx_register(reinterpret_cast<void *>(0x1000), 1), OMPX_ERR_ADDRESS);
    EXPECT_EQ(ompx_register(local, PTRDIFF_MAX), OMPX_ERR_ADDRESS);
    EXPECT_EQ(ompx_register(gap, page_bytes), 0);
    EXPECT_EQ(ompx_unregister(gap), 0);
    // One rank's range is not memory: an error on all.
    static char mine[64];
    EXPECT_EQ(ompx_register_symmetric(me == 0 ? gap : mine, me == 0 ? 3 * page_bytes : 64),
              ranks == 1 ? OMPX_ERR_ADDRESS
              : me == 0  ? OMPX_ERR_ADDRESS
                         : OMPX_ERR_MISMATCH);
    EXPECT_EQ(ompx_register_symmetric(me == 0 ? static_cast<char *>(gap) + page_bytes : mine, 64),
              OMPX_ERR_ADDRESS);
    ::munmap(gap, 3 * page_bytes);
}

TEST_F(misuse, contexts_that_are_none) {
    ompx_context_t context = nullptr;
    ASSERT_EQ(ompx_context_create(&context), 0);
    ompx_context_t const copy = context;
    ASSERT_EQ(ompx_context_put_nb(context, (me + 1) % ranks, memory, local, 8), 0);
    ASSERT_EQ(ompx_context_free(&context), 0);
    EXPECT_EQ(context, nullptr);
    std::int64_t value = 1;
    std::uint64_t *const signal = nullptr;
    for (ompx_context_t none : {copy, ompx_context_t{}, reinterpret_cast<ompx_context_t>(0x1234),
                                reinterpret_cast<ompx_context_t>(local)}) {
        EXPECT_EQ(ompx_context_put_nb(none, me, memory, local, 8), OMPX_ERR_ARG);
        EXPECT_THAT(text(), AllOf(HasSubstr("context"), HasSubstr("ompx_context_create")));
        EXPECT_EQ(ompx_context_get_nb(none, local, me, memory, 8), OMPX_ERR_ARG);
        EXPECT_EQ(
            ompx_context_put_signal_nb(none, me, memory, local, 8, signal, 1, OMPX_SIGNAL_SET),
            OMPX_ERR_ARG);
        EXPECT_EQ(
            ompx_context_atomic_fetch_nb(none, me, memory, &value, &value, OMPX_INT64, OMPX_SUM),
            OMPX_ERR_ARG);
        EXPECT_EQ(ompx_context_atomic_compare_swap_nb(none, me, memory, &value, &value, &value,
                                                      OMPX_INT64),
                  OMPX_ERR_ARG);
        EXPECT_EQ(ompx_context_fence(none), OMPX_ERR_ARG);
        EXPECT_EQ(ompx_context_free(&none), OMPX_ERR_ARG);
    }
    ASSERT_EQ(ompx_barrier(), 0);
}

TEST_F(misuse, a_context_of_several_threads) {
    ompx_context_t context = nullptr;
    ASSERT_EQ(ompx_context_create(&context), 0);
    std::atomic<int> others = 0;
    auto const put = [&] {
        char mine[64] = {};
        for (int i = 0; i < 2000; ++i) {
            int const outcome = i % 16 == 0 ? ompx_context_fence(context)
                                            : ompx_context_put_nb(context, (me + 1) % ranks, memory,
                                                                  mine, sizeof(mine));
            others += outcome != 0 && outcome != OMPX_ERR_STATE ? 1 : 0;
        }
    };
    std::thread second(put);
    std::thread third(put);
    second.join();
    third.join();
    EXPECT_EQ(others, 0) << "done, or the error that another thread uses it";
    EXPECT_EQ(ompx_context_free(&context), 0);
    ASSERT_EQ(ompx_barrier(), 0);
}

TEST_F(misuse, events_that_are_none) {
    // Of an operation that is still in flight if the other rank is on another node.
    int const to = (me + 1) % ranks;
    ompx_event_t event = nullptr;
    std::vector<ompx_event_t> none{reinterpret_cast<ompx_event_t>(0x1234),
                                   reinterpret_cast<ompx_event_t>(local),
                                   reinterpret_cast<ompx_event_t>(-1)};
    for (std::size_t i = 0; i < 3; ++i) {
        ASSERT_EQ(ompx_put_nb(to, memory, local, 64, &event), 0);
        if (event != nullptr) {
            none.push_back(event);
        }
        ASSERT_EQ(ompx_event_wait(&event), 0);
    }
    ASSERT_EQ(ompx_allreduce_nb(local, local, 1, OMPX_INT32, OMPX_SUM, ompx_group_world, &event),
              0);
    none.push_back(event);
    ASSERT_EQ(ompx_event_wait(&event), 0);
    for (ompx_event_t each : none) {
        if (each == nullptr) {
            continue;
        }
        ompx_event_t const before = each;
        int done = 7;
        std::size_t index = 0;
        EXPECT_EQ(ompx_event_wait(&each), OMPX_ERR_ARG);
        EXPECT_THAT(text(),
                    AllOf(HasSubstr("ompx_event_wait"), HasSubstr("once"), HasSubstr("remedy")));
        EXPECT_EQ(ompx_event_test(&each, &done), OMPX_ERR_ARG);
        EXPECT_EQ(done, 7) << "outputs are set on success only";
        EXPECT_EQ(ompx_event_wait_all(&each, 1), OMPX_ERR_ARG);
        EXPECT_EQ(ompx_event_wait_any(&each, 1, nullptr, &index), OMPX_ERR_ARG);
        EXPECT_EQ(each, before);
    }
    ASSERT_EQ(ompx_allreduce_nb(local, local, 1, OMPX_INT32, OMPX_SUM, ompx_group_world, &event),
              0);
    if (event != nullptr) {
        ompx_event_t twice[2] = {event, event};
        EXPECT_EQ(ompx_event_wait_all(twice, 2), OMPX_ERR_ARG);
        EXPECT_EQ(twice[0], nullptr);
    }
}

TEST_F(misuse, lists_that_are_too_long) {
    auto *const words = reinterpret_cast<std::uint64_t *>(memory);
    std::uint64_t const value = 0;
    std::size_t index = 0;
    std::size_t num_found = 0;
    ompx_event_t events[1] = {};
    for (std::size_t const count : {SIZE_MAX, SIZE_MAX - 4, std::size_t{1} << 62}) {
        EXPECT_EQ(ompx_signal_wait_any(words, count, nullptr, OMPX_CMP_EQ, 1, &index),
                  OMPX_ERR_ARG);
        EXPECT_THAT(text(), AllOf(HasSubstr("ompx_signal_wait_any"), HasSubstr("negative"),
                                  HasSubstr("remedy")));
        EXPECT_EQ(ompx_signal_test_all(words, count, nullptr, OMPX_CMP_EQ, 1), OMPX_ERR_ARG);
        EXPECT_EQ(ompx_wait_until_some(words, OMPX_UINT64, count, nullptr, OMPX_CMP_EQ, &value, 1,
                                       &index, &num_found),
                  OMPX_ERR_ARG);
        EXPECT_EQ(ompx_event_wait_all(events, count), OMPX_ERR_ARG);
        EXPECT_EQ(ompx_event_wait_any(events, count, nullptr, &index), OMPX_ERR_ARG);
        EXPECT_EQ(ompx_lock_at_init(reinterpret_cast<ompx_lock_t *>(memory), count), OMPX_ERR_ARG);
        ompx_channel_t const none = OMPX_CHANNEL_NONE;
        EXPECT_EQ(ompx_channel_wait_any(&none, count, &index), OMPX_ERR_ARG);
    }
    // Nothing to wait for needs no list.
    EXPECT_EQ(ompx_signal_wait_some(nullptr, 0, nullptr, OMPX_CMP_EQ, 1, nullptr, &num_found), 0);
    EXPECT_EQ(ompx_signal_wait_fetch(words, OMPX_CMP_NE, ~value, nullptr), 0);
}

TEST_F(misuse, boxes_say_what_to_pass) {
    std::size_t const one[]{1, 1, 1};
    std::size_t const zero[]{0, 0, 0};
    std::size_t const huge[]{SIZE_MAX / 4, SIZE_MAX / 4, SIZE_MAX / 4};
    EXPECT_EQ(ompx_put_rect(me, memory, local, 0, 3, one, zero, zero, one, one), OMPX_ERR_ARG);
    EXPECT_THAT(text(), HasSubstr("remedy"));
    EXPECT_EQ(ompx_put_rect(me, memory, local, 4, 3, one, zero, zero, huge, huge), OMPX_ERR_ARG);
    EXPECT_THAT(text(), AllOf(HasSubstr("larger than the address space"), HasSubstr("remedy")));
}

TEST_F(misuse, local_memory_has_no_counterpart) {
    if (ranks == 1) {
        GTEST_SKIP() << "needs two ranks";
    }
    int const to = (me + 1) % ranks;
    void *const mine = ompx_alloc(64, 0, OMPX_MEM_LOCAL);
    EXPECT_EQ(ompx_put(to, mine, local, 8), OMPX_ERR_ADDRESS);
    EXPECT_THAT(text(), HasSubstr("local memory"));
    EXPECT_EQ(ompx_free(mine), 0);
    // A third rank's address.
    if (ranks > 2) {
        void *const third = ompx_global_ptr(memory, (me + 2) % ranks, nullptr);
        EXPECT_EQ(ompx_put(to, third, local, 8), OMPX_ERR_ADDRESS);
        EXPECT_THAT(text(),
                    HasSubstr("in the segment of rank " + std::to_string((me + 2) % ranks)));
    }
}

TEST_F(misuse, errors_are_kept_per_thread) {
    EXPECT_EQ(ompx_put(ranks, memory, local, 8), OMPX_ERR_RANK);
    std::thread([] { EXPECT_STREQ(ompx_last_error(), ""); }).join();
    EXPECT_THAT(text(), HasSubstr("ompx_put"));
    for (int code = 0; code >= -13; --code) {
        EXPECT_STRNE(ompx_status_string(code), "unknown status") << code;
    }
}

// Last in the file: nothing works afterwards.
TEST(misuse_at_the_end, calls_after_finalize) {
    ASSERT_EQ(ompx_finalize(), 0);
    EXPECT_EQ(ompx_is_initialized(), 0);
    char byte = 0;
    EXPECT_EQ(ompx_put(0, &byte, &byte, 1), OMPX_ERR_STATE);
    EXPECT_THAT(text(), HasSubstr("after ompx_finalize"));
    EXPECT_EQ(ompx_barrier(), OMPX_ERR_STATE);
    EXPECT_EQ(ompx_rank_num(), OMPX_ERR_STATE);
    EXPECT_EQ(ompx_finalize(), OMPX_ERR_STATE);
    EXPECT_EQ(ompx_alloc(8, 0, OMPX_MEM_SYMMETRIC), nullptr);
}

} // namespace
