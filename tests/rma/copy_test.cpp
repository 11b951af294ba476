// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rma/copy.h"
#include "rma/internal/copy_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

namespace {

using namespace diomp::rma;
using copy_function = std::function<void(void *, const void *, std::size_t)>;

constexpr std::size_t margin = 160; ///< more than any loop writes at a time

unsigned char pattern(std::size_t i) { return static_cast<unsigned char>(i * 31 + i / 251); }

/// The right bytes, and none beside them.
void expect_copied(const copy_function &copy, std::size_t nbytes, std::size_t to,
                   std::size_t from) {
    std::vector<unsigned char> source(nbytes + 2 * margin);
    for (std::size_t i = 0; i < source.size(); ++i) {
        source[i] = pattern(i);
    }
    std::vector<unsigned char> target(nbytes + 2 * margin, 0xee);
    copy(target.data() + margin / 2 + to, source.data() + from, nbytes);
    for (std::size_t i = 0; i < target.size(); ++i) {
        std::size_t const begin = margin / 2 + to;
        bool const is_inside = i >= begin && i < begin + nbytes;
        ASSERT_EQ(target[i], is_inside ? pattern(from + i - begin) : 0xee)
            << "byte " << i << " of a copy of " << nbytes << " to +" << to << " from +" << from;
    }
}

void expect_all_sizes(const copy_function &copy, std::size_t least) {
    for (std::size_t nbytes = least; nbytes <= 700; ++nbytes) {
        expect_copied(copy, nbytes, nbytes % 33, nbytes % 7);
    }
    for (std::size_t const nbytes :
         {4096UL, 4097UL, 65536UL, 262143UL, 262144UL, 262145UL, 300001UL, 600007UL}) {
        for (std::size_t const offset : {0UL, 1UL, 8UL, 15UL, 31UL}) {
            expect_copied(copy, nbytes, offset, 0);
            expect_copied(copy, nbytes, 0, offset);
        }
    }
}

TEST(copy, every_size_and_alignment) {
    expect_all_sizes([](void *to, const void *from,
                        std::size_t nbytes) { copy_bytes(to, from, nbytes, auto_threshold); },
                     0);
}

TEST(copy, puts_of_every_size_and_alignment) {
    expect_all_sizes([](void *to, const void *from,
                        std::size_t nbytes) { put_bytes(to, from, nbytes, auto_threshold); },
                     0);
}

// Enough of them that each way of a copy has had its trials, to memory that is new and that is not.
TEST(copy, puts_to_one_place_and_to_many) {
    constexpr std::size_t largest = std::size_t{64} << 10;
    constexpr std::size_t num_places = 24;
    std::vector<unsigned char> source(largest);
    std::vector<unsigned char> target(largest * num_places);
    for (std::size_t const nbytes : {4096UL, 5000UL, 16384UL, 65535UL}) {
        for (std::size_t i = 0; i < 400; ++i) {
            std::size_t const place = i % 100 < 50 ? i % num_places : 0;
            std::ranges::fill(source, static_cast<unsigned char>(i));
            unsigned char *const to = target.data() + place * largest;
            to[nbytes % largest] = 0xee;
            put_bytes(to, source.data(), nbytes, auto_threshold);
            ASSERT_EQ(std::memcmp(to, source.data(), nbytes), 0) << i;
            ASSERT_EQ(to[nbytes % largest], 0xee);
        }
    }
}

TEST(copy, through_the_caches) { expect_all_sizes(copy_cached, 0); }

TEST(copy, past_the_caches) { expect_all_sizes(copy_streaming, 0); }

TEST(copy, every_loop_of_vectors_that_the_processor_has) {
    for (loops::detail::loop const each : loops::vector_loops()) {
        for (std::size_t nbytes = loops::min_vector_bytes; nbytes <= loops::min_vector_bytes + 700;
             nbytes += 1 + nbytes % 3) {
            expect_copied(each, nbytes, nbytes % 65, nbytes % 7);
        }
        expect_copied(each, 65536, 0, 0);
        expect_copied(each, 65537, 63, 1);
    }
}

TEST(copy, by_the_processors_own_loop) { expect_all_sizes(loops::copy_string, 0); }

// Whatever is chosen, it copies.
TEST(copy, after_calibration) {
    calibrate_copies();
    expect_all_sizes(copy_cached, 0);
}

TEST(copy, to_several_places) {
    for (bool const streaming : {false, true}) {
        auto const copy = [streaming](void *to, const void *from, std::size_t nbytes) {
            // Two more, aligned otherwise than the first.
            std::vector<std::vector<std::byte>> beside(
                2, std::vector<std::byte>(nbytes + 2 * margin, std::byte{0x5a}));
            std::vector<std::byte *> const places = {
                beside[0].data() + 1, static_cast<std::byte *>(to), beside[1].data() + margin};
            copy_to_all(places, from, nbytes, streaming);
            for (std::size_t const i : {std::size_t{0}, std::size_t{1}}) {
                std::size_t const begin = i == 0 ? 1 : margin;
                ASSERT_EQ(std::memcmp(beside[i].data() + begin, from, nbytes), 0);
                ASSERT_EQ(beside[i][begin - 1], std::byte{0x5a});
                ASSERT_EQ(beside[i][begin + nbytes], std::byte{0x5a});
            }
        };
        for (std::size_t const nbytes :
             {0UL, 1UL, 63UL, 700UL, 4097UL, 16384UL, 16385UL, 65536UL, 262145UL}) {
            expect_copied(copy, nbytes, nbytes % 33, nbytes % 7);
        }
    }
}

/// The quickest of some copies between places that lie so far into their pages.
std::chrono::duration<double> time_of_copy(std::size_t nbytes, std::size_t to, std::size_t from) {
    constexpr std::size_t page_bytes = 4096;
    std::vector<unsigned char> source(nbytes + 2 * page_bytes, 1);
    std::vector<unsigned char> target(nbytes + 2 * page_bytes, 2);
    auto const location = [](std::vector<unsigned char> &in, std::size_t offset) {
        auto const address = reinterpret_cast<std::uintptr_t>(in.data());
        return in.data() + (page_bytes - address % page_bytes) + offset;
    };
    auto best = std::chrono::duration<double>::max();
    for (int round = 0; round < 30; ++round) {
        auto const begin = std::chrono::steady_clock::now();
        copy_bytes(location(target, to), location(source, from), nbytes, auto_threshold);
        best =
            std::min<std::chrono::duration<double>>(best, std::chrono::steady_clock::now() - begin);
    }
    EXPECT_TRUE(
        std::equal(location(target, to), location(target, to) + nbytes, location(source, from)));
    return best;
}

// The C library's memcpy does depend on them (glibc's bug 30994 on Zen 4).
TEST(copy, takes_the_same_time_wherever_the_ends_lie_in_their_pages) {
    if (DIOMP_THREAD_SANITIZER) {
        GTEST_SKIP() << "the thread sanitizer gets the C library's";
    }
    for (std::size_t const nbytes : {65536UL, 300000UL, 524288UL, 900000UL}) {
        auto const typical_bytes = time_of_copy(nbytes, 0, 0);
        for (std::size_t const behind : {1UL, 8UL, 15UL}) {
            EXPECT_LT(time_of_copy(nbytes, behind, 0), 6 * typical_bytes)
                << nbytes << " bytes, " << behind << " behind";
        }
    }
}

// The threshold that a user sets counts from its first byte.
TEST(copy, a_threshold_of_one_byte) {
    expect_all_sizes(
        [](void *to, const void *from, std::size_t nbytes) { copy_bytes(to, from, nbytes, 1); }, 0);
}

TEST(copy, ranges_that_overlap) {
    for (std::size_t const nbytes : {3UL, 48UL, 100UL, 200UL, 4096UL, 40000UL, 3000000UL}) {
        for (std::size_t const distance : {1UL, 32UL, 64UL, 129UL}) {
            for (std::size_t const threshold : {auto_threshold, std::size_t{1}}) {
                std::vector<unsigned char> bytes(nbytes + distance);
                for (std::size_t i = 0; i < bytes.size(); ++i) {
                    bytes[i] = pattern(i);
                }
                std::vector<unsigned char> expected = bytes;
                std::memmove(expected.data() + distance, expected.data(), nbytes);
                copy_bytes(bytes.data() + distance, bytes.data(), nbytes, threshold);
                ASSERT_TRUE(bytes == expected) << nbytes << " bytes upwards by " << distance;
                std::memmove(expected.data(), expected.data() + distance, nbytes);
                copy_bytes(bytes.data(), bytes.data() + distance, nbytes, threshold);
                ASSERT_TRUE(bytes == expected) << nbytes << " bytes downwards by " << distance;
            }
        }
    }
}

// Long enough for both ways of each size to be tried.
TEST(copy, while_it_learns) {
    for (std::size_t const nbytes : {(std::size_t{1} << 20) + 5, (std::size_t{5} << 20) + 3}) {
        std::vector<std::uint64_t> source(nbytes / 8 + 1);
        std::vector<std::uint64_t> target(source.size());
        for (std::uint64_t round = 1; round <= 40; ++round) {
            std::ranges::fill(source, round * 0x0101010101010101U);
            copy_bytes(target.data(), source.data(), nbytes, auto_threshold);
            ASSERT_EQ(std::memcmp(target.data(), source.data(), nbytes), 0) << "round " << round;
        }
    }
}

} // namespace
