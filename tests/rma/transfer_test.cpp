// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "diomp.h"
#include "support/nodes.h"
#include "support/patterns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <sys/mman.h>
#include <thread>
#include <vector>

namespace {

using diomp_test::pattern;

int const me = ompx_rank_num();
int const ranks = ompx_num_ranks();

/// Symmetric bytes for the length of a test.
class symmetric {
public:
    explicit symmetric(std::size_t nbytes)
        : data_(static_cast<std::uint8_t *>(ompx_alloc(nbytes, 0, OMPX_MEM_SYMMETRIC))) {
        std::memset(data_, 0, nbytes);
        ompx_barrier();
    }
    ~symmetric() { ompx_free(data_); }
    symmetric(const symmetric &) = delete;
    symmetric &operator=(const symmetric &) = delete;
    [[nodiscard]] std::uint8_t *get() const { return data_; }

private:
    std::uint8_t *data_;
};

/// Sizes around every decision of the copy: words, pairs, memmove, streaming.
const std::vector<std::size_t> sizes{0,      1,  2,   3,    4,    5,     7,       8,
                                     9,      15, 16,  17,   31,   32,    33,      63,
                                     64,     65, 127, 4096, 4097, 65536, 1 << 20, (4 << 20) + 1,
                                     9 << 20};

TEST(transfer, put_of_every_size_arrives_and_spills_nothing) {
    std::size_t const slot = sizes.back() + 64;
    symmetric const area(slot * 2);
    for (std::size_t const nbytes : sizes) {
        for (std::size_t const shift : {std::size_t{0}, std::size_t{3}}) {
            int const to = (me + 1) % ranks;
            int const from = (me + ranks - 1) % ranks;
            std::memset(area.get(), 0xee, nbytes + 64);
            ompx_barrier();
            auto const data = pattern(me, to, static_cast<int>(nbytes), nbytes);
            ASSERT_EQ(ompx_put(to, area.get() + 16 + shift, data.data(), nbytes), 0);
            ASSERT_EQ(ompx_barrier(), 0);
            auto const expected = pattern(from, me, static_cast<int>(nbytes), nbytes);
            ASSERT_TRUE(std::equal(expected.begin(), expected.end(), area.get() + 16 + shift))
                << nbytes;
            ASSERT_EQ(area.get()[15 + shift], 0xee) << nbytes;
            ASSERT_EQ(area.get()[16 + shift + nbytes], 0xee) << nbytes;
            ompx_barrier();
        }
    }
}

TEST(transfer, get_of_every_size_from_every_rank) {
    symmetric const area(sizes.back());
    auto const mine = pattern(me, 0, 1, sizes.back());
    std::memcpy(area.get(), mine.data(), mine.size());
    ompx_barrier();
    for (int from = 0; from < ranks; ++from) {
        auto const expected = pattern(from, 0, 1, sizes.back());
        for (std::size_t const nbytes : sizes) {
            std::vector<std::uint8_t> into(nbytes + 2, 0xee);
            ASSERT_EQ(ompx_get(into.data() + 1, from, area.get(), nbytes), 0);
            ASSERT_EQ(std::memcmp(into.data() + 1, expected.data(), nbytes), 0);
            ASSERT_EQ(into.front(), 0xee);
            ASSERT_EQ(into.back(), 0xee);
        }
    }
    ompx_barrier();
}

TEST(transfer, overlapping_ranges_within_one_rank_move_like_memmove) {
    constexpr std::size_t nbytes = 6 << 20;
    symmetric const area(nbytes + 4096);
    auto const data = pattern(me, me, 2, nbytes);
    for (std::ptrdiff_t const shift : {1, 8, 63, 4096}) {
        std::memcpy(area.get(), data.data(), nbytes);
        ASSERT_EQ(ompx_put(me, area.get() + shift, area.get(), nbytes), 0);
        ASSERT_EQ(std::memcmp(area.get() + shift, data.data(), nbytes), 0);
        ASSERT_EQ(ompx_get(area.get(), me, area.get() + shift, nbytes), 0);
        ASSERT_EQ(std::memcmp(area.get(), data.data(), nbytes), 0);
    }
    ompx_barrier();
}

TEST(transfer, events_complete_and_become_null) {
    symmetric const area(64);
    int const to = (me + 1) % ranks;
    std::uint64_t const value = 77u + static_cast<unsigned>(me);
    ompx_event_t put = nullptr;
    ASSERT_EQ(ompx_put_nb(to, area.get(), &value, sizeof(value), &put), 0);
    ASSERT_EQ(ompx_event_wait(&put), 0);
    ASSERT_EQ(put, nullptr);
    ompx_barrier();
    std::uint64_t seen = 0;
    ompx_event_t get = nullptr;
    ASSERT_EQ(ompx_get_nb(&seen, to, area.get(), sizeof(seen), &get), 0);
    for (int done = 0; done == 0;) {
        ASSERT_EQ(ompx_event_test(&get, &done), 0);
    }
    ASSERT_EQ(get, nullptr);
    EXPECT_EQ(seen, value);
    int done = 0;
    EXPECT_EQ(ompx_event_test(&get, &done), 0);
    EXPECT_EQ(done, 1);
    ompx_barrier();
}

TEST(transfer, without_an_event_the_next_fence_completes) {
    constexpr std::size_t slot = 100000;
    symmetric const area(slot * 2);
    int const to = (me + 1) % ranks;
    for (std::size_t const nbytes : {std::size_t{0}, std::size_t{8}, std::size_t{3001}, slot}) {
        auto const small = pattern(me, to, 1, nbytes);
        auto const other = pattern(me, to, 2, nbytes);
        ASSERT_EQ(ompx_put_nb(to, area.get(), small.data(), nbytes, nullptr), 0);
        ASSERT_EQ(ompx_put_nb(to, area.get() + slot, other.data(), nbytes, nullptr), 0);
        ASSERT_EQ(ompx_fence(), 0);
        std::vector<std::uint8_t> read(nbytes);
        ASSERT_EQ(ompx_get_nb(read.data(), to, area.get() + slot, nbytes, nullptr), 0);
        ASSERT_EQ(ompx_fence(), 0);
        EXPECT_EQ(read, other);
        ompx_barrier();
        int const from = (me + ranks - 1) % ranks;
        auto const expected = pattern(from, me, 1, nbytes);
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), area.get()));
        ompx_barrier();
    }
}

TEST(transfer, aligned_words_never_tear) {
    symmetric const area(64);
    auto *const word = reinterpret_cast<std::uint64_t *>(area.get());
    int const to = (me + 1) % ranks;
    // Between nodes a get is a round trip: milliseconds where others want the cores.
    std::uint64_t const rounds = diomp_test::is_mapped(to) ? 20000 : 2000;
    std::thread writer([&] {
        for (std::uint64_t i = 0; i < rounds; ++i) {
            std::uint64_t const value = (i & 0xffffffff) * 0x100000001ull;
            ompx_put(to, word, &value, 8);
        }
    });
    for (std::uint64_t i = 0; i < rounds; ++i) {
        std::uint64_t seen = 0;
        ompx_get(&seen, to, word, 8);
        ASSERT_EQ(seen >> 32, seen & 0xffffffff);
    }
    writer.join();
    ompx_barrier();
}

TEST(transfer, boxes_of_one_to_four_dimensions) {
    constexpr std::size_t element = 4;
    std::size_t const total = 9 * 8 * 7 * 6;
    symmetric const area(total * element);
    int const to = (me + 1) % ranks;
    int const from = (me + ranks - 1) % ranks;
    for (int dims = 1; dims <= 4; ++dims) {
        std::vector<std::size_t> const remote_dimensions{9, 8, 7, 6};
        std::vector<std::size_t> const local_dimensions{5, 6, 7, 4};
        std::vector<std::size_t> const volume{3, 4, dims == 3 ? std::size_t{7} : std::size_t{2}, 3};
        std::vector<std::size_t> const remote_offsets{2, 1, 0, 3};
        std::vector<std::size_t> const local_offsets{1, 2, 0, 1};
        std::memset(area.get(), 0xee, total * element);
        ompx_barrier();
        auto const data = pattern(me, to, dims, 5 * 6 * 7 * 4 * element);
        ASSERT_EQ(ompx_put_rect(to, area.get(), data.data(), element, dims, volume.data(),
                                remote_offsets.data(), local_offsets.data(),
                                remote_dimensions.data(), local_dimensions.data()),
                  0);
        ompx_barrier();
        // The reference walks every element by its definition.
        auto const sent = pattern(from, me, dims, data.size());
        std::vector<std::uint8_t> expected(total * element, 0xee);
        std::size_t count = 1;
        for (int d = 0; d < dims; ++d) {
            count *= volume[static_cast<std::size_t>(d)];
        }
        for (std::size_t i = 0; i < count; ++i) {
            std::size_t rest = i;
            std::size_t remote = 0;
            std::size_t local = 0;
            std::size_t remote_stride = 1;
            std::size_t local_stride = 1;
            for (std::size_t d = static_cast<std::size_t>(dims); d-- > 0;) {
                std::size_t const at = rest % volume[d];
                rest /= volume[d];
                remote += (remote_offsets[d] + at) * remote_stride;
                local += (local_offsets[d] + at) * local_stride;
                remote_stride *= remote_dimensions[d];
                local_stride *= local_dimensions[d];
            }
            std::memcpy(&expected[remote * element], &sent[local * element], element);
        }
        ASSERT_EQ(std::memcmp(area.get(), expected.data(), expected.size()), 0) << dims;
        // And back into a private array.
        std::vector<std::uint8_t> back(data.size(), 0xee);
        ASSERT_EQ(ompx_get_rect(back.data(), to, area.get(), element, dims, volume.data(),
                                local_offsets.data(), remote_offsets.data(),
                                local_dimensions.data(), remote_dimensions.data()),
                  0);
        for (std::size_t i = 0; i < back.size(); ++i) {
            ASSERT_TRUE(back[i] == data[i] || back[i] == 0xee);
        }
        ASSERT_EQ(std::count_if(back.begin(), back.end(), [](auto byte) { return byte != 0xee; }) >
                      0,
                  true);
        ompx_barrier();
    }
}

TEST(transfer, a_box_without_elements_moves_nothing) {
    symmetric const area(64);
    std::size_t const volume[]{0, 4};
    std::size_t const zero[]{0, 0};
    std::size_t const dimensions[]{4, 4};
    std::uint8_t const one = 1;
    EXPECT_EQ(ompx_put_rect(0, area.get(), &one, 1, 2, volume, zero, zero, dimensions, dimensions),
              0);
    ompx_barrier();
    EXPECT_EQ(area.get()[0], 0);
}

TEST(transfer, who_sees_the_signal_sees_the_data) {
    constexpr std::size_t lengths[] = {4096, 40000, 65536, 300000, 3000001};
    constexpr std::size_t largest = 3000064;
    symmetric const area(largest + 64);
    auto *const signal = reinterpret_cast<std::uint64_t *>(area.get() + largest);
    int const to = (me + 1) % ranks;
    int const from = (me + ranks - 1) % ranks;
    for (int round = 1; round <= 200; ++round) {
        std::size_t const nbytes =
            round <= 100 ? lengths[0]
                         : lengths[static_cast<std::size_t>(round) % std::size(lengths)];
        auto const data = pattern(me, to, round, nbytes);
        ASSERT_EQ(ompx_put_signal(to, area.get(), data.data(), data.size(), signal,
                                  static_cast<std::uint64_t>(round % 2 == 0 ? 1 : round),
                                  round % 2 == 0 ? OMPX_SIGNAL_ADD : OMPX_SIGNAL_SET),
                  0);
        ASSERT_EQ(ompx_signal_wait(signal, OMPX_CMP_EQ, static_cast<std::uint64_t>(round)), 0);
        auto const expected = pattern(from, me, round, nbytes);
        ASSERT_EQ(std::memcmp(area.get(), expected.data(), expected.size()), 0);
        ompx_barrier();
    }
}

TEST(transfer, waits_for_every_type_and_comparison) {
    symmetric const area(64);
    int const to = (me + 1) % ranks;
    auto *const cell = reinterpret_cast<std::int32_t *>(area.get());
    std::int32_t const minus = -5;
    ASSERT_EQ(ompx_put(to, cell, &minus, sizeof(minus)), 0);
    std::int32_t const zero = 0;
    ASSERT_EQ(ompx_wait_until(cell, OMPX_INT32, OMPX_CMP_LT, &zero), 0);
    ASSERT_EQ(ompx_wait_until(cell, OMPX_INT32, OMPX_CMP_NE, &zero), 0);
    ASSERT_EQ(ompx_wait_until(cell, OMPX_INT32, OMPX_CMP_LE, &minus), 0);
    ASSERT_EQ(ompx_wait_until(cell, OMPX_INT32, OMPX_CMP_EQ, &minus), 0);
    // As an unsigned number the same bits are large.
    std::uint32_t const one = 1;
    ASSERT_EQ(ompx_wait_until(cell, OMPX_UINT32, OMPX_CMP_GT, &one), 0);
    ASSERT_EQ(ompx_wait_until(cell, OMPX_UINT32, OMPX_CMP_GE, &one), 0);
    ompx_barrier();
}

TEST(transfer, memory_that_the_program_already_has_is_reachable_once_registered) {
    constexpr std::size_t nbytes = 700000; // several chunks of the message path
    auto *const own = static_cast<std::uint8_t *>(std::malloc(nbytes));
    std::memset(own, 0, nbytes);
    ASSERT_EQ(ompx_register(own, nbytes), 0);
    symmetric const addresses(sizeof(void *));
    std::memcpy(addresses.get(), &own, sizeof(own));
    ompx_barrier();
    int const to = (me + 1) % ranks;
    int const from = (me + ranks - 1) % ranks;
    std::uint8_t *there = nullptr;
    ompx_get(&there, to, addresses.get(), sizeof(there));
    auto const data = pattern(me, to, 9, nbytes - 100);
    ASSERT_EQ(ompx_put(to, there + 50, data.data(), data.size()), 0);
    ompx_barrier();
    auto const expected = pattern(from, me, 9, nbytes - 100);
    ASSERT_EQ(std::memcmp(own + 50, expected.data(), expected.size()), 0);
    std::vector<std::uint8_t> back(data.size());
    ASSERT_EQ(ompx_get(back.data(), to, there + 50, back.size()), 0);
    ASSERT_EQ(back, data);
    ompx_barrier();
    // A box and an atomic, the same way.
    std::size_t const volume[]{3, 5};
    std::size_t const offsets[]{1, 2};
    std::size_t const dimensions[]{10, 10};
    ASSERT_EQ(ompx_put_rect(to, there, data.data(), 1, 2, volume, offsets, offsets, dimensions,
                            dimensions),
              0);
    ompx_barrier();
    auto const sent = pattern(from, me, 9, 100);
    EXPECT_EQ(std::memcmp(own + 12, sent.data() + 12, 5), 0);
    EXPECT_EQ(std::memcmp(own + 32, sent.data() + 32, 5), 0);
    std::memset(own, 0, 8);
    ompx_barrier();
    std::int64_t const one = 1;
    for (int i = 0; i < 100; ++i) {
        ASSERT_EQ(ompx_atomic_add(to, there - (reinterpret_cast<std::uintptr_t>(there) % 8), &one,
                                  OMPX_INT64),
                  0);
    }
    ompx_barrier();
    EXPECT_EQ(*reinterpret_cast<std::int64_t *>(own), 100);
    ompx_barrier();
    ASSERT_EQ(ompx_unregister(own), 0);
    std::free(own);
    ompx_barrier();
}

/// What would end the owner, if it did what it is asked to, is an error of the asking rank.
TEST(transfer, writes_to_registered_memory_that_is_read_only_are_errors) {
    constexpr std::size_t nbytes = 300000; // several chunks of the message path
    auto const map = [](int rights) {
        return static_cast<std::uint8_t *>(
            ::mmap(nullptr, nbytes, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    };
    int const mode = ompx_set_errors(OMPX_ERRORS_RETURN, OMPX_SCOPE_LIBRARY);
    auto *const hidden = map(PROT_NONE);
    EXPECT_EQ(ompx_register(hidden, nbytes), OMPX_ERR_ADDRESS);
    EXPECT_THAT(ompx_last_error(), testing::HasSubstr("cannot read"));
    auto *const own = map(PROT_READ);
    ASSERT_EQ(ompx_register(own, nbytes), 0);
    std::vector<std::uint8_t *> everyones(static_cast<std::size_t>(ranks));
    ASSERT_EQ(ompx_allgather(everyones.data(), &own, sizeof(own), nullptr), 0);
    int const to = (me + 1) % ranks;
    std::uint8_t *const there = everyones[static_cast<std::size_t>(to)];
    std::vector<std::uint8_t> data(nbytes, 1);
    ASSERT_EQ(ompx_get(data.data(), to, there, nbytes), 0);
    EXPECT_EQ(std::count(data.begin(), data.end(), 0), static_cast<long>(nbytes));
    if (ranks > 1) {
        auto const first_error = [](int called) { // a put may report it at the fence
            int const fenced = ompx_fence();
            return called != 0 ? called : fenced;
        };
        std::uint64_t const one = 1;
        std::uint64_t old = 0;
        auto *const word = reinterpret_cast<std::uint64_t *>(there);
        for (std::size_t const n : {std::size_t{8}, nbytes}) {
            EXPECT_EQ(first_error(ompx_put(to, there, data.data(), n)), OMPX_ERR_ADDRESS) << n;
        }
        EXPECT_EQ(first_error(ompx_put_signal(to, nullptr, nullptr, 0, word, 1, OMPX_SIGNAL_SET)),
                  OMPX_ERR_ADDRESS);
        EXPECT_EQ(first_error(ompx_atomic_add(to, word, &one, OMPX_UINT64)), OMPX_ERR_ADDRESS);
        EXPECT_EQ(first_error(ompx_atomic_fetch(to, word, &one, &old, OMPX_UINT64, OMPX_SUM)),
                  OMPX_ERR_ADDRESS);
    }
    ASSERT_EQ(ompx_barrier(), 0);
    EXPECT_EQ(own[0], 0);
    ASSERT_EQ(ompx_unregister(own), 0);
    ompx_set_errors(static_cast<ompx_errors_t>(mode), OMPX_SCOPE_LIBRARY);
    ::munmap(own, nbytes);
    ::munmap(hidden, nbytes);
    ompx_barrier();
}

TEST(transfer, remote_pointers_load_what_the_owner_stores) {
    symmetric const area(64);
    area.get()[7] = static_cast<std::uint8_t>(40 + me);
    ompx_barrier();
    for (int rank = 0; rank < ranks; ++rank) {
        auto const *there =
            static_cast<const std::uint8_t *>(ompx_remote_ptr(area.get() + 7, rank));
        // As the owner sees it, mapped here or not.
        auto const *const global =
            static_cast<const std::uint8_t *>(ompx_global_ptr(area.get() + 7, rank, nullptr));
        std::uint8_t seen = 0;
        ASSERT_EQ(ompx_get(&seen, rank, global, 1), 0);
        EXPECT_EQ(seen, 40 + rank);
        if (!diomp_test::is_mapped(rank)) {
            EXPECT_EQ(there, nullptr) << rank;
            continue;
        }
        ASSERT_NE(there, nullptr) << rank;
        EXPECT_EQ(*there, 40 + rank);
        EXPECT_EQ(global, there);
    }
    EXPECT_EQ(ompx_remote_ptr(area.get(), ranks), nullptr);
    EXPECT_EQ(ompx_remote_ptr(area.get(), -1), nullptr);
    int on_stack = 0;
    EXPECT_EQ(ompx_remote_ptr(&on_stack, (me + 1) % ranks), nullptr);
    ompx_barrier();
}

TEST(transfer, threads_of_one_rank_transfer_at_once) {
    constexpr int threads = 4;
    constexpr std::size_t nbytes = 3000;
    symmetric const area(threads * nbytes);
    int const to = (me + 1) % ranks;
    int const from = (me + ranks - 1) % ranks;
    std::vector<std::thread> team;
    for (int t = 0; t < threads; ++t) {
        team.emplace_back([&, t] {
            auto const data = pattern(me, to, t, nbytes);
            for (int i = 0; i < 200; ++i) {
                ompx_put(to, area.get() + static_cast<std::size_t>(t) * nbytes, data.data(),
                         nbytes);
            }
        });
    }
    for (auto &thread : team) {
        thread.join();
    }
    ompx_barrier();
    for (int t = 0; t < threads; ++t) {
        auto const expected = pattern(from, me, t, nbytes);
        EXPECT_EQ(
            std::memcmp(area.get() + static_cast<std::size_t>(t) * nbytes, expected.data(), nbytes),
            0);
    }
    ompx_barrier();
}

} // namespace
