// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "memory/internal/page_return.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace diomp::memory {
namespace {

TEST(page_return, only_whole_free_pages_that_the_block_touched_are_returned) {
    const auto pages = [](std::uint64_t offset, std::size_t reserved, std::uint64_t free_begin,
                          std::uint64_t free_end) {
        heap::released_block released;
        released.offset = offset;
        released.reserved = reserved;
        released.free_begin = free_begin;
        released.free_end = free_end;
        return pages_to_release(released, 4096);
    };
    EXPECT_TRUE(pages(64, 64, 64, 128).empty()) << "neighbours in use share the page";
    EXPECT_TRUE(pages(64, 4096, 64, 64 + 4096).empty()) << "two pages, neither free as a whole";
    EXPECT_EQ(pages(4096, 4096, 4096, 8192), (page_range{4096, 8192}));
    EXPECT_EQ(pages(4160, 64, 4096, 8192), (page_range{4096, 8192})) << "the last of its page";
    EXPECT_EQ(pages(4160, 64, 0, 1 << 20), (page_range{4096, 8192})) << "not the older holes";
    EXPECT_EQ(pages(100 * 64, 3 * 4096, 100 * 64, 100 * 64 + 3 * 4096), (page_range{8192, 16384}));
}

TEST(page_return, all_pages_go_back_once_whatever_the_order_of_frees) {
    std::mt19937_64 random(99);
    heap tested(heap::direction::from_front, 1 << 20);
    std::vector<std::uint64_t> live;
    while (const auto offset = tested.allocate(random() % 9000, 64, 1 << 20)) {
        live.push_back(*offset);
    }
    const std::uint64_t extent = tested.extent();
    std::vector<int> returned(256);
    while (!live.empty()) {
        std::swap(live[random() % live.size()], live.back());
        const auto released = tested.release(live.back(), 1 << 20);
        live.pop_back();
        ASSERT_TRUE(released);
        const page_range pages = pages_to_release(*released, 4096);
        for (std::uint64_t page = pages.begin; page < pages.end; page += 4096) {
            EXPECT_FALSE(tested.find(page)) << "a returned page is in use";
            ++returned[page / 4096];
        }
    }
    for (std::size_t page = 0; page * 4096 < extent; ++page) {
        EXPECT_EQ(returned[page], 1) << page;
    }
}

} // namespace
} // namespace diomp::memory
