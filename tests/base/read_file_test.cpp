// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/read_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace diomp {
namespace {

TEST(read_file, gives_the_whole_content) {
    std::string const path = testing::TempDir() + "read_file_test";
    std::string text(100000, 'x');
    text += '\0';
    std::ofstream(path, std::ios::binary) << text;
    auto const read = read_file(path);
    ASSERT_TRUE(read) << read.failure().message();
    EXPECT_EQ(read.value(), text);
    EXPECT_TRUE(read_file("/proc/self/cgroup")); // its size is said to be 0
    EXPECT_EQ(read_file("/dev/null").value(), "");
}

TEST(read_file, says_what_cannot_be_read_and_why) {
    auto const missing = read_file("/no/such/file");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.failure().message(), "cannot read /no/such/file: No such file or directory");
    auto const directory = read_file("/");
    ASSERT_FALSE(directory); // a stream would throw
    EXPECT_EQ(directory.failure().message(), "cannot read /: Is a directory");
}

TEST(read_file, has_an_end) {
    auto const endless = read_file("/dev/zero", 1000000);
    ASSERT_FALSE(endless);
    EXPECT_THAT(endless.failure().message(), testing::HasSubstr("longer than 1000000 bytes"));
}

} // namespace
} // namespace diomp
