// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/device_segment.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

using namespace diomp;
using memory::heap;
using offload::device_allocation;
using offload::device_segment;
using offload::key_kind;

namespace {

constexpr std::size_t size_bytes = std::size_t{1} << 20;

/// Its memory is never touched.
class segment_of_a_device : public testing::Test {
protected:
    static std::byte *base() { return reinterpret_cast<std::byte *>(0x10000000); }

    std::uint64_t take(ompx_mem_kind_t kind, std::size_t nbytes, std::uint64_t number = 0) {
        // Local memory here is what OpenMP maps.
        auto const offset =
            segment_.allocate({kind, kind == OMPX_MEM_LOCAL, 0, nbytes, nullptr, number}, 64);
        EXPECT_TRUE(offset.has_value());
        return offset.value_or(0);
    }

    device_segment segment_{0, base(), size_bytes};
};

TEST_F(segment_of_a_device, symmetric_memory_does_not_depend_on_what_is_mapped) {
    device_segment other(0, base(), size_bytes);
    take(OMPX_MEM_LOCAL, 5000);
    auto const here = take(OMPX_MEM_SYMMETRIC, 300);
    auto const there = other.allocate({OMPX_MEM_SYMMETRIC, false, 0, 300, nullptr, 0}, 64);
    EXPECT_EQ(here, there);
}

TEST_F(segment_of_a_device, finds_what_contains_an_offset) {
    auto const offset = take(OMPX_MEM_LOCAL, 100);
    auto const inside = segment_.find(offset + 99);
    ASSERT_TRUE(inside);
    EXPECT_EQ(inside->offset, offset);
    EXPECT_EQ(inside->nbytes, 100u);
    EXPECT_EQ(inside->kind, OMPX_MEM_LOCAL);
    EXPECT_FALSE(segment_.find(offset + 4096));
}

TEST_F(segment_of_a_device, one_past_the_end_of_full_granules_belongs_to_the_block_before) {
    auto const first = take(OMPX_MEM_SYMMETRIC, 128);
    auto const at_end = segment_.find(first + 128);
    ASSERT_TRUE(at_end);
    EXPECT_EQ(at_end->offset, first);
    auto const second = take(OMPX_MEM_SYMMETRIC, 64);
    ASSERT_EQ(second, first + 128);
    EXPECT_EQ(segment_.find(first + 128)->offset, second);
}

TEST_F(segment_of_a_device, asymmetric_parts_are_found_by_number) {
    take(OMPX_MEM_LOCAL, 1000);
    auto const offset = take(OMPX_MEM_ASYMMETRIC, 10, 3);
    auto const told = segment_.find_and_share({key_kind::number, 3}, 0, world_rank{1}, true);
    ASSERT_TRUE(told);
    EXPECT_EQ(told->offset, offset);
    EXPECT_EQ(segment_.find(offset)->kind, OMPX_MEM_ASYMMETRIC);
    ASSERT_TRUE(segment_.release(offset));
    EXPECT_FALSE(segment_.find_and_share({key_kind::number, 3}, 0, world_rank{1}, true));
}

TEST_F(segment_of_a_device, remembers_who_was_told_and_tells_nobody_after_retirement) {
    auto const offset = take(OMPX_MEM_LOCAL, 64);
    EXPECT_TRUE(segment_.find_and_share({key_kind::offset, offset}, 0, world_rank{4}, false));
    EXPECT_TRUE(segment_.find_and_share({key_kind::offset, offset}, 8, world_rank{4}, false));
    EXPECT_TRUE(segment_.find_and_share({key_kind::offset, offset}, 0, world_rank{2}, true));
    segment_.find_and_use(offset);
    auto const sharers = segment_.begin_release(offset);
    ASSERT_TRUE(sharers);
    EXPECT_TRUE(sharers->mapped_ranks);
    EXPECT_TRUE(sharers->is_used);
    ASSERT_EQ(sharers->others.size(), 1u);
    EXPECT_EQ(sharers->others.front(), world_rank{4});
    EXPECT_FALSE(segment_.find_and_share({key_kind::offset, offset}, 0, world_rank{5}, false));
    EXPECT_TRUE(segment_.find(offset)); // the owner itself may still use it
    EXPECT_FALSE(segment_.begin_release(offset));
    EXPECT_TRUE(segment_.release(offset));
    EXPECT_FALSE(segment_.release(offset));
}

TEST_F(segment_of_a_device, what_is_mapped_does_not_depend_on_what_the_program_allocates) {
    device_segment other(0, base(), size_bytes);
    take(OMPX_MEM_ASYMMETRIC, 5000, 1);
    ASSERT_TRUE(other.allocate({OMPX_MEM_ASYMMETRIC, false, 0, 64, nullptr, 1}, 64));
    ASSERT_TRUE(other.allocate({OMPX_MEM_LOCAL, false, 0, 64, nullptr, 0}, 64));
    auto const here = take(OMPX_MEM_LOCAL, 4096);
    EXPECT_EQ(here, other.allocate({OMPX_MEM_LOCAL, true, 0, 4096, nullptr, 0}, 64));
    EXPECT_EQ(segment_.find(here)->kind, OMPX_MEM_LOCAL);
    EXPECT_TRUE(segment_.find(here)->by_openmp);
}

TEST_F(segment_of_a_device, large_arrays_begin_a_little_behind_a_page) {
    device_segment other(0, base(), 64 * size_bytes);
    device_allocation wanted{OMPX_MEM_LOCAL, true, 0, 0, nullptr, 0};
    for (std::size_t const nbytes : {262144UL, 100UL, 1000000UL, 262145UL, 4096UL, 1048576UL}) {
        wanted.nbytes = nbytes;
        auto const offset = other.allocate(wanted, 64);
        ASSERT_TRUE(offset);
        if (nbytes >= 262144) {
            EXPECT_EQ(*offset % 4096, 128u) << nbytes << " bytes";
        }
    }
}

TEST_F(segment_of_a_device, space_that_is_given_back_is_used_again) {
    std::size_t const half = size_bytes / 2;
    std::size_t const nearly = half - 4096; // large blocks of the second half begin behind a page
    std::size_t const own = 256 * 32 * 8;   // words of barriers
    auto const first = take(OMPX_MEM_LOCAL, nearly);
    EXPECT_FALSE(segment_.allocate({OMPX_MEM_LOCAL, true, 0, 4096, nullptr, 0}, 64));
    auto const symmetric = take(OMPX_MEM_SYMMETRIC, half - own - 64);
    EXPECT_FALSE(segment_.allocate({OMPX_MEM_ASYMMETRIC, false, 0, 128, nullptr, 1}, 64));
    ASSERT_TRUE(segment_.release(first));
    ASSERT_TRUE(segment_.release(symmetric));
    EXPECT_EQ(take(OMPX_MEM_LOCAL, nearly), first);
    auto const told = segment_.info();
    EXPECT_EQ(told.num_allocations, 1u);
    EXPECT_EQ(told.local_used, nearly);
    EXPECT_EQ(told.symmetric_used, 0u);
}

TEST_F(segment_of_a_device, says_when_data_is_mapped_again_whose_copy_is_used) {
    char data[128];
    auto const map_again = [&](const char *from, std::size_t nbytes) {
        bool again = false;
        auto const offset =
            segment_.allocate({OMPX_MEM_LOCAL, true, 0, nbytes, from, 0}, 64, &again);
        EXPECT_TRUE(offset && segment_.release(*offset));
        return again;
    };
    auto const offset = segment_.allocate({OMPX_MEM_LOCAL, true, 0, 100, data, 0}, 64);
    ASSERT_TRUE(offset);
    EXPECT_FALSE(map_again(data, 8)); // nobody has asked
    ASSERT_TRUE(segment_.find_and_use(*offset + 10));
    EXPECT_TRUE(map_again(data + 99, 20));
    EXPECT_FALSE(map_again(data + 100, 20));
    ASSERT_TRUE(segment_.begin_release(*offset));
    EXPECT_FALSE(segment_.find_and_use(*offset));
    EXPECT_TRUE(map_again(data, 8)); // until it is free
    ASSERT_TRUE(segment_.release(*offset));
    EXPECT_FALSE(map_again(data, 100));
}

/// What ranks allocate alike has one key, in segments of any size and on devices of all kinds.
TEST_F(segment_of_a_device, counterparts_have_one_key_in_segments_of_different_sizes) {
    device_segment larger(0, base(), 5 * size_bytes + 3 * 4096);
    device_segment remote(0, base(), 3 * size_bytes + 77, offload::remote_device_index{0});
    std::minstd_rand random(3);
    std::vector<device_allocation> held;
    for (int step = 0; step < 2000; ++step) {
        bool const is_mapped = random() % 3 != 0;
        std::size_t const nbytes = random() % 8 == 0 ? 300000 : 1 + random() % 3000;
        device_allocation wanted{is_mapped ? OMPX_MEM_LOCAL : OMPX_MEM_SYMMETRIC,
                                 is_mapped,
                                 0,
                                 is_mapped ? nbytes : 1 + nbytes / 10,
                                 nullptr,
                                 0};
        auto const here = segment_.allocate(wanted, 64);
        if (!here || held.size() > 20) {
            for (device_allocation const &each : held) {
                for (device_segment *const other : {&larger, &remote}) {
                    auto const found = other->find_and_share(segment_.key_of(each), each.nbytes - 1,
                                                             world_rank{1}, true);
                    ASSERT_TRUE(found);
                    ASSERT_EQ(other->key_of(*found), segment_.key_of(each));
                    ASSERT_EQ(found->nbytes, each.nbytes);
                    ASSERT_TRUE(other->release(found->offset));
                }
                ASSERT_TRUE(segment_.release(each.offset));
            }
            held.clear();
            if (here) {
                ASSERT_TRUE(segment_.release(*here));
            }
            continue;
        }
        ASSERT_TRUE(larger.allocate(wanted, 64) && remote.allocate(wanted, 64));
        wanted.offset = *here;
        held.push_back(wanted);
    }
    EXPECT_FALSE(segment_.find_and_share({key_kind::from_end, size_bytes}, 0, world_rank{1}, true));
}

/// Whatever comes and goes, the offsets are those of a heap that frees at once.
TEST_F(segment_of_a_device, resting_blocks_change_no_offset) {
    std::uint64_t const capacity = size_bytes / 2 - 4096; // whole pages after the first bytes
    std::uint64_t const begin = size_bytes / 2 + 128;
    heap plain(heap::direction::from_end, capacity);
    struct block {
        std::uint64_t offset;
        std::size_t nbytes;
    };
    std::vector<block> held;
    std::minstd_rand random(7);
    int rested = 0;
    for (int step = 0; step < 20000; ++step) {
        bool const full = held.size() > 20;
        if (held.empty() || (!full && random() % 2 == 0)) {
            std::size_t const nbytes = 1 + random() % 5 * 100;
            auto const here = take(OMPX_MEM_LOCAL, nbytes);
            ASSERT_EQ(here - begin, plain.allocate(nbytes, 64, capacity)) << step;
            held.push_back({here, nbytes});
        } else {
            // The newest as a rule, so that many rest.
            std::size_t const which = random() % 4 != 0 ? held.size() - 1 : random() % held.size();
            std::uint64_t const offset = held[which].offset;
            ASSERT_TRUE(plain.release(offset - begin));
            ASSERT_TRUE(segment_.release_unshared(offset, size_bytes)) << step;
            ASSERT_FALSE(segment_.find(offset).has_value() &&
                         segment_.find(offset)->offset == offset);
            ASSERT_FALSE(segment_.release_unshared(offset, size_bytes));
            rested += which + 1 == held.size() ? 1 : 0;
            held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
        }
        ASSERT_EQ(segment_.num_allocations(), held.size());
    }
    EXPECT_GT(rested, 1000);
    for (block const &each : held) {
        ASSERT_TRUE(segment_.release_unshared(each.offset, size_bytes));
    }
    EXPECT_EQ(segment_.used_bytes(), 0u);
}

TEST_F(segment_of_a_device, what_somebody_knows_is_not_released_in_passing) {
    auto const told = take(OMPX_MEM_LOCAL, 64);
    auto const used = take(OMPX_MEM_LOCAL, 64);
    auto const large = take(OMPX_MEM_LOCAL, 4096);
    auto const together = take(OMPX_MEM_SYMMETRIC, 64);
    segment_.find_and_share({key_kind::offset, told}, 0, world_rank{1}, true);
    segment_.find_and_use(used);
    for (auto const offset : {told, used, large, together}) {
        EXPECT_FALSE(segment_.release_unshared(offset, 4096));
        EXPECT_TRUE(segment_.find(offset));
    }
}

} // namespace
