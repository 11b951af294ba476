// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/effects.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

namespace diomp::offload::remote {
namespace {

std::string library(const char *variable) {
    std::ifstream file(std::getenv(variable), std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    EXPECT_GT(bytes.size(), 1000U) << variable;
    return bytes;
}

TEST(effects, mathematics_and_memcpy_are_quiet) {
    EXPECT_TRUE(only_changes_memory(library("DIOMP_TEST_QUIET")));
}

TEST(effects, what_prints_is_not) { EXPECT_FALSE(only_changes_memory(library("DIOMP_TEST_LOUD"))); }

TEST(effects, what_is_no_image_is_not) {
    EXPECT_FALSE(only_changes_memory(""));
    EXPECT_FALSE(only_changes_memory("\x7f"
                                     "ELF"));
    EXPECT_FALSE(only_changes_memory(std::string(4096, '\0')));
}

TEST(effects, a_part_of_an_image_is_not) {
    // The sections' table lies at the end.
    std::string const whole = library("DIOMP_TEST_QUIET");
    for (std::size_t size = 0; size + 64 < whole.size(); size += 37) {
        EXPECT_FALSE(only_changes_memory(std::string_view(whole).substr(0, size))) << size;
    }
}

TEST(effects, damaged_images_are_read_without_harm) {
    std::string const whole = library("DIOMP_TEST_LOUD");
    std::mt19937 random(1);
    for (int round = 0; round < 3000; ++round) {
        std::string damaged = whole;
        for (int i = 0; i < 20; ++i) {
            // The header and the tables' ends of the file are where it matters.
            std::size_t const place =
                random() % 2 == 0 ? random() % 64 : damaged.size() - 1 - random() % 2048;
            damaged[place] = static_cast<char>(random());
        }
        static_cast<void>(only_changes_memory(damaged));
    }
}

} // namespace
} // namespace diomp::offload::remote
