// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/assert.h"
#include "memory/heap.h"
#include "support/sanitized.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace diomp::memory {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr std::uint64_t gib = std::uint64_t{1} << 30;
constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

/// Applies the same calls to a heap and to a list of live blocks, and compares the two.
class checked_heap {
public:
    checked_heap(heap::direction grows, std::uint64_t capacity)
        : tested(grows, capacity), grows_(grows) {}

    std::optional<std::uint64_t> allocate(std::size_t nbytes, std::size_t alignment,
                                          std::uint64_t limit = no_limit) {
        const auto offset = tested.allocate(nbytes, alignment, limit);
        if (!offset) {
            return offset;
        }
        EXPECT_EQ(*offset % std::max<std::uint64_t>(alignment, 64), 0u);
        const std::uint64_t size = (std::max<std::uint64_t>(nbytes, 1) + 63) / 64 * 64;
        EXPECT_LE(*offset + size, tested.capacity_bytes());
        EXPECT_LE(distance_of_end(*offset, size), limit);
        const auto next = live.lower_bound(*offset);
        if (next != live.end()) {
            EXPECT_LE(*offset + size, next->first) << "overlaps the next block";
        }
        if (next != live.begin()) {
            const auto previous = std::prev(next);
            EXPECT_LE(previous->first + previous->second, *offset) << "overlaps the previous block";
        }
        live.emplace(*offset, size);
        live_bytes += size;
        EXPECT_EQ(tested.used_bytes(), live_bytes);
        EXPECT_EQ(tested.num_blocks(), live.size());
        return offset;
    }

    void release(std::uint64_t offset) {
        const auto released = tested.release(offset);
        ASSERT_TRUE(released);
        const auto position = live.find(offset);
        ASSERT_NE(position, live.end());
        EXPECT_EQ(released->offset, offset);
        EXPECT_EQ(released->reserved, position->second);
        live_bytes -= position->second;
        const auto next = live.erase(position);
        EXPECT_LE(released->free_begin, offset);
        EXPECT_GE(released->free_end, offset + released->reserved);
        if (next != live.end()) {
            // A neighbour bounds the free range exactly: nothing is lost between them.
            EXPECT_TRUE(released->free_end == next->first);
        }
        if (next != live.begin()) {
            const auto previous = std::prev(next);
            EXPECT_TRUE(released->free_begin == previous->first + previous->second);
        }
        EXPECT_EQ(tested.extent(), expected_extent());
    }

    [[nodiscard]] std::uint64_t expected_extent() const {
        if (live.empty()) {
            return 0;
        }
        return grows_ == heap::direction::from_front
                   ? live.rbegin()->first + live.rbegin()->second
                   : tested.capacity_bytes() - live.begin()->first;
    }

    heap tested;
    std::map<std::uint64_t, std::uint64_t> live; // offset -> reserved size
    std::uint64_t live_bytes = 0;

private:
    [[nodiscard]] std::uint64_t distance_of_end(std::uint64_t offset, std::uint64_t size) const {
        return grows_ == heap::direction::from_front ? offset + size
                                                     : tested.capacity_bytes() - offset;
    }

    heap::direction grows_;
};

class heap_test : public testing::TestWithParam<heap::direction> {
protected:
    [[nodiscard]] heap make(std::uint64_t capacity) const { return {GetParam(), capacity}; }
    /// Offset of a block of `size` bytes at this distance from the heap's own end.
    [[nodiscard]] std::uint64_t at(const heap &of, std::uint64_t distance,
                                   std::uint64_t size) const {
        return GetParam() == heap::direction::from_front ? distance
                                                         : of.capacity_bytes() - distance - size;
    }
};

INSTANTIATE_TEST_SUITE_P(both_ends, heap_test,
                         testing::Values(heap::direction::from_front, heap::direction::from_end),
                         [](const auto &parameter) {
                             return parameter.param == heap::direction::from_front
                                        ? std::string("from_front")
                                        : std::string("from_end");
                         });

TEST_P(heap_test, an_empty_heap_reports_everything_as_free) {
    const heap tested = make(4096);
    EXPECT_EQ(tested.extent(), 0u);
    EXPECT_EQ(tested.used_bytes(), 0u);
    EXPECT_EQ(tested.num_blocks(), 0u);
    EXPECT_EQ(tested.largest_free(no_limit), 4096u);
    EXPECT_EQ(tested.largest_free(100), 64u);
    EXPECT_FALSE(tested.find(0));
    EXPECT_FALSE(tested.find(4095));
}

TEST_P(heap_test, blocks_follow_each_other_from_their_own_end) {
    heap tested = make(4096);
    EXPECT_EQ(tested.allocate(100, 1, no_limit), at(tested, 0, 128));
    EXPECT_EQ(tested.allocate(64, 64, no_limit), at(tested, 128, 64));
    EXPECT_EQ(tested.extent(), 192u);
    EXPECT_EQ(tested.used_bytes(), 192u);
}

TEST_P(heap_test, zero_bytes_take_a_granule_of_their_own) {
    heap tested = make(256);
    const auto first = tested.allocate(0, 1, no_limit);
    const auto second = tested.allocate(0, 1, no_limit);
    ASSERT_TRUE(first && second);
    EXPECT_NE(*first, *second);
    EXPECT_EQ(tested.find(*first)->nbytes, 0u);
    EXPECT_EQ(tested.find(*first)->reserved, 64u);
    EXPECT_TRUE(tested.release(*first));
    EXPECT_TRUE(tested.release(*second));
}

TEST_P(heap_test, the_capacity_can_be_used_to_the_last_granule) {
    heap tested = make(1024);
    const auto whole = tested.allocate(1024, 64, no_limit);
    ASSERT_TRUE(whole);
    EXPECT_EQ(*whole, 0u);
    EXPECT_EQ(tested.extent(), 1024u);
    EXPECT_EQ(tested.largest_free(no_limit), 0u);
    EXPECT_FALSE(tested.allocate(0, 1, no_limit));
    EXPECT_TRUE(tested.find(1023));
    EXPECT_FALSE(tested.find(1024));
    EXPECT_TRUE(tested.release(0));
    EXPECT_FALSE(tested.allocate(1025, 64, no_limit));
    EXPECT_EQ(tested.extent(), 0u);
}

TEST_P(heap_test, an_incomplete_last_granule_is_not_used) {
    heap tested = make(1000);
    EXPECT_EQ(tested.capacity_bytes(), 960u);
    EXPECT_TRUE(tested.allocate(960, 64, no_limit));
    heap nothing = make(63);
    EXPECT_FALSE(nothing.allocate(0, 1, no_limit));
    EXPECT_EQ(nothing.largest_free(no_limit), 0u);
}

TEST_P(heap_test, sizes_and_capacities_near_the_maximum_do_not_wrap) {
    for (const std::uint64_t capacity : {std::uint64_t{4096}, no_limit}) {
        heap tested = make(capacity);
        for (std::size_t below = 0; below < 200; ++below) {
            EXPECT_FALSE(
                tested.allocate(std::numeric_limits<std::size_t>::max() - below, 64, no_limit));
            EXPECT_FALSE(tested.allocate(std::numeric_limits<std::size_t>::max() / 2 - below, gib,
                                         no_limit));
        }
        EXPECT_EQ(tested.extent(), 0u);
        const std::uint64_t most = tested.largest_free(no_limit, gib);
        EXPECT_EQ(tested.largest_free(no_limit), tested.capacity_bytes());
        if (most != 0) {
            EXPECT_TRUE(tested.allocate(most, gib, no_limit));
        }
    }
}

TEST_P(heap_test, alignments_that_are_no_power_of_two_are_refused) {
    heap tested = make(8 * gib);
    for (const std::size_t alignment : {std::size_t{0}, std::size_t{3}, std::size_t{96},
                                        std::size_t{2 * gib}, std::size_t{1} << 63}) {
        EXPECT_FALSE(tested.allocate(64, alignment, no_limit)) << alignment;
        EXPECT_EQ(tested.largest_free(no_limit, alignment), 0u);
    }
    EXPECT_TRUE(tested.allocate(64, 1, no_limit));
}

TEST_P(heap_test, every_alignment_up_to_one_gib_is_kept_and_its_padding_reused) {
    checked_heap checked(GetParam(), 64 * gib);
    for (std::uint64_t alignment = 1; alignment <= gib; alignment *= 2) {
        EXPECT_TRUE(checked.allocate(64, 64));
        EXPECT_TRUE(checked.allocate(alignment + 1, alignment));
    }
    const std::uint64_t extent = checked.tested.extent();
    EXPECT_TRUE(checked.allocate(gib / 4, 64)) << "fits into the padding";
    EXPECT_EQ(checked.tested.extent(), extent);
}

TEST_P(heap_test, reach_limit_bounds_the_far_end_and_not_the_choice) {
    heap roomy = make(4096);
    heap narrow = make(4096);
    for (heap *tested : {&roomy, &narrow}) {
        ASSERT_TRUE(tested->allocate(1024, 64, 1024));
    }
    EXPECT_FALSE(narrow.allocate(1, 1, 1024));
    EXPECT_FALSE(narrow.allocate(65, 1, 1024 + 64));
    EXPECT_EQ(narrow.largest_free(1024 + 64), 64u);
    EXPECT_EQ(narrow.allocate(64, 1, 1024 + 64), roomy.allocate(64, 1, no_limit));
    EXPECT_EQ(narrow.extent(), roomy.extent());
}

TEST_P(heap_test, the_tightest_hole_is_taken_and_the_nearest_of_equal_ones) {
    heap tested = make(1 << 20);
    const std::vector<std::size_t> sizes = {512, 64, 128, 64, 256, 64, 128, 64};
    std::vector<std::uint64_t> offsets;
    for (const std::size_t size : sizes) {
        offsets.push_back(*tested.allocate(size, 64, no_limit));
    }
    for (const std::size_t hole : {0u, 2u, 4u, 6u}) {
        ASSERT_TRUE(tested.release(offsets[hole]));
    }
    EXPECT_EQ(tested.allocate(100, 64, no_limit), offsets[2]);
    EXPECT_EQ(tested.allocate(100, 64, no_limit), offsets[6]);
    EXPECT_EQ(tested.allocate(200, 64, no_limit), offsets[4]);
    EXPECT_EQ(tested.allocate(512, 64, no_limit), offsets[0]);
    EXPECT_EQ(tested.extent(), 1280u);
}

TEST_P(heap_test, an_aligned_request_finds_room_behind_many_tight_holes) {
    // 200 holes of exactly one page that all begin off a page boundary, then one that suits.
    heap tested = make(16 << 20);
    std::vector<std::uint64_t> holes;
    ASSERT_TRUE(tested.allocate(64, 64, no_limit));
    for (int i = 0; i < 200; ++i) {
        holes.push_back(*tested.allocate(4096, 64, no_limit));
        ASSERT_TRUE(tested.allocate(64, 64, no_limit));
    }
    const std::uint64_t wide = *tested.allocate(3 * 4096, 64, no_limit);
    ASSERT_TRUE(tested.allocate(64, 64, no_limit));
    for (const std::uint64_t offset : holes) {
        if (offset % 4096 != 0) {
            ASSERT_TRUE(tested.release(offset));
        }
    }
    ASSERT_TRUE(tested.release(wide));
    const std::uint64_t extent = tested.extent();
    const auto aligned = tested.allocate(4096, 4096, extent);
    ASSERT_TRUE(aligned);
    EXPECT_EQ(*aligned % 4096, 0u);
    EXPECT_GE(*aligned, wide);
    EXPECT_LE(*aligned + 4096, wide + 3 * 4096);
    EXPECT_EQ(tested.extent(), extent);
}

TEST_P(heap_test, only_a_live_blocks_beginning_can_be_released) {
    heap tested = make(4096);
    const std::uint64_t first = *tested.allocate(256, 64, no_limit);
    const std::uint64_t second = *tested.allocate(256, 64, no_limit);
    for (const std::uint64_t wrong :
         {first + 1, first + 64, first + 255, std::uint64_t{4096}, std::uint64_t{2048}, no_limit}) {
        EXPECT_FALSE(tested.release(wrong)) << wrong;
    }
    EXPECT_EQ(tested.num_blocks(), 2u);
    EXPECT_TRUE(tested.release(first));
    EXPECT_FALSE(tested.release(first)) << "a hole";
    EXPECT_TRUE(tested.release(second));
    EXPECT_FALSE(tested.release(second)) << "beyond the extent";
    EXPECT_EQ(tested.used_bytes(), 0u);
}

TEST_P(heap_test, find_knows_every_byte_of_a_block_and_none_outside) {
    heap tested = make(4096);
    const std::uint64_t first = *tested.allocate(100, 64, no_limit);
    const std::uint64_t second = *tested.allocate(64, 64, no_limit);
    for (std::uint64_t offset = 0; offset < 4096; ++offset) {
        const auto found = tested.find(offset);
        if (offset >= first && offset < first + 128) {
            ASSERT_TRUE(found);
            EXPECT_EQ(found->offset, first);
            EXPECT_EQ(found->nbytes, 100u);
            EXPECT_EQ(found->reserved, 128u);
        } else if (offset >= second && offset < second + 64) {
            ASSERT_TRUE(found);
            EXPECT_EQ(found->offset, second);
        } else {
            EXPECT_FALSE(found);
        }
    }
    EXPECT_FALSE(tested.find(no_limit));
}

TEST_P(heap_test, release_reports_the_free_range_around_the_block) {
    heap tested = make(4096);
    std::vector<std::uint64_t> offsets;
    for (int i = 0; i < 5; ++i) {
        offsets.push_back(*tested.allocate(128, 64, no_limit));
    }
    ASSERT_TRUE(tested.release(offsets[1]));
    ASSERT_TRUE(tested.release(offsets[3]));
    const auto middle = tested.release(offsets[2]);
    ASSERT_TRUE(middle);
    EXPECT_EQ(middle->free_begin, at(tested, 128, 384));
    EXPECT_EQ(middle->free_end, at(tested, 128, 384) + 384);
    EXPECT_EQ(tested.extent(), 640u);
    // The outermost block takes the holes before it along and, on request, the rest behind it.
    const auto last = tested.release(offsets[4], 2048);
    ASSERT_TRUE(last);
    EXPECT_EQ(last->free_begin, at(tested, 128, 1920));
    EXPECT_EQ(last->free_end - last->free_begin, 1920u);
    EXPECT_EQ(tested.extent(), 128u);
}

TEST_P(heap_test, holes_are_told_from_a_size_on) {
    heap subject = make(1 << 20);
    std::vector<std::uint64_t> offsets;
    for (std::size_t const nbytes : {640U, 64U, 128U, 64U, 6400U, 64U}) {
        offsets.push_back(*subject.allocate(nbytes, 64, 1 << 20));
    }
    EXPECT_THAT(subject.holes(0), IsEmpty());
    for (std::size_t const i : {0U, 2U, 4U}) {
        ASSERT_TRUE(subject.release(offsets[i]));
    }
    EXPECT_THAT(subject.holes(640),
                UnorderedElementsAre(heap::hole{offsets[0], 640}, heap::hole{offsets[4], 6400}));
    EXPECT_THAT(subject.holes(0).size(), 3U);
    EXPECT_THAT(subject.holes(6401), IsEmpty());
    ASSERT_TRUE(subject.release(offsets[5])); // then the outermost hole is the rest
    EXPECT_THAT(subject.holes(641), IsEmpty());
}

TEST_P(heap_test, an_undone_allocation_leaves_no_trace) {
    std::mt19937_64 random(7);
    heap tested = make(1 << 20);
    heap untouched = make(1 << 20);
    std::vector<std::uint64_t> live;
    for (int i = 0; i < 2000; ++i) {
        const std::size_t size = random() % 3000;
        const std::size_t alignment = std::size_t{1} << (random() % 13);
        const auto undone = tested.allocate(random() % 9000, alignment, no_limit);
        if (undone) {
            ASSERT_TRUE(tested.release(*undone));
        }
        const auto offset = tested.allocate(size, alignment, no_limit);
        ASSERT_EQ(offset, untouched.allocate(size, alignment, no_limit));
        if (offset) {
            live.push_back(*offset);
        }
        if (!live.empty() && (!offset || random() % 2 == 0)) {
            std::swap(live[random() % live.size()], live.back());
            ASSERT_TRUE(tested.release(live.back()));
            ASSERT_TRUE(untouched.release(live.back()));
            live.pop_back();
        }
        ASSERT_EQ(tested.extent(), untouched.extent());
    }
}

TEST_P(heap_test, random_use_never_overlaps_and_coalesces_completely) {
    for (const unsigned seed : {1u, 2u, 3u, 4u}) {
        SCOPED_TRACE(seed);
        std::mt19937_64 random(seed);
        checked_heap checked(GetParam(), 4 << 20);
        std::vector<std::uint64_t> live;
        for (int i = 0; i < 20000 && !HasFailure(); ++i) {
            const bool grow = random() % 100 < (i % 4000 < 2000 ? 65u : 35u);
            if (grow || live.empty()) {
                const std::size_t size = random() % (std::size_t{1} << (random() % 17));
                const std::size_t alignment = std::size_t{1} << (random() % 16);
                if (const auto offset = checked.allocate(size, alignment)) {
                    live.push_back(*offset);
                }
            } else {
                std::swap(live[random() % live.size()], live.back());
                checked.release(live.back());
                live.pop_back();
            }
            if (i % 100 == 0) {
                heap probe = checked.tested;
                const std::size_t alignment = std::size_t{1} << (random() % 16);
                const std::uint64_t most = probe.largest_free(no_limit, alignment);
                EXPECT_TRUE(most == 0 || probe.allocate(most, alignment, no_limit));
                const std::uint64_t any = checked.tested.largest_free(no_limit);
                heap second_probe = checked.tested;
                EXPECT_FALSE(second_probe.allocate(any + 1, 64, no_limit));
            }
        }
        while (!live.empty()) {
            checked.release(live.back());
            live.pop_back();
        }
        EXPECT_EQ(checked.tested.extent(), 0u);
        EXPECT_EQ(checked.tested.used_bytes(), 0u);
        EXPECT_EQ(checked.tested.num_blocks(), 0u);
        EXPECT_EQ(checked.tested.largest_free(no_limit), checked.tested.capacity_bytes());
    }
}

// The bound holds for a release build; others only have to end.
#if DIOMP_SANITIZED || !defined(__OPTIMIZE__)
constexpr double time_limit_s = 60;
#else
constexpr double time_limit_s = has_asserts ? 3.0 : 1.5;
#endif

TEST_P(heap_test, a_million_random_calls_are_quick_and_fragment_little) {
    constexpr int num_calls = 1'000'000;
    constexpr std::size_t max_live = 10'000;
    std::mt19937_64 random(12345);
    heap tested = make(64 * gib);
    std::vector<std::uint64_t> live;
    live.reserve(max_live);
    std::uint64_t peak_used = 0;
    std::uint64_t peak_extent = 0;
    const auto start = std::clock();
    for (int i = 0; i < num_calls; ++i) {
        if (live.size() < max_live && (live.empty() || random() % 100 < 55)) {
            const std::size_t size = 1 + random() % (std::size_t{1} << (6 + random() % 12));
            live.push_back(*tested.allocate(size, 64, no_limit));
            peak_used = std::max(peak_used, tested.used_bytes());
            peak_extent = std::max(peak_extent, tested.extent());
        } else {
            std::swap(live[random() % live.size()], live.back());
            ASSERT_TRUE(tested.release(live.back()));
            live.pop_back();
        }
    }
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    RecordProperty("seconds", std::to_string(seconds));
    const double waste = static_cast<double>(peak_extent) / static_cast<double>(peak_used);
    RecordProperty("extent_over_used", std::to_string(waste));
    EXPECT_LT(seconds, time_limit_s);
    EXPECT_LT(waste, 1.5) << peak_extent << " bytes for " << peak_used << " in use";
    for (const std::uint64_t offset : live) {
        ASSERT_TRUE(tested.release(offset));
    }
    EXPECT_EQ(tested.extent(), 0u);
}

} // namespace
} // namespace diomp::memory
