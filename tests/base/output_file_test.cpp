// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

namespace diomp {
namespace {

using testing::HasSubstr;

TEST(OutputFile, HasAllThatWasWritten) {
    std::string const path = testing::TempDir() + "output_file_test." + std::to_string(::getpid());
    auto file = output_file::create("text", path);
    ASSERT_TRUE(file);
    file.value().write("one ");
    file.value().write("two");
    EXPECT_TRUE(file.value().close());
    std::string content;
    std::getline(std::ifstream(path), content);
    EXPECT_EQ(content, "one two");
    std::filesystem::remove(path);
}

TEST(OutputFile, SaysWhyItCannotBeMade) {
    auto const file = output_file::create("the trace", "/no/such/folder/t.json");
    ASSERT_FALSE(file);
    EXPECT_THAT(file.failure().message(),
                HasSubstr("cannot write the trace to '/no/such/folder/t.json': No such file"));
}

TEST(OutputFile, AFullDiskIsFoundAtTheFirstWriteOrAtTheEnd) {
    for (std::size_t const nbytes : {std::size_t{1}, std::size_t{1} << 20}) {
        auto file = output_file::create("the trace", "/dev/full");
        ASSERT_TRUE(file);
        file.value().write(std::string(nbytes, 'x'));
        file.value().write("more");
        status const closed = file.value().close();
        ASSERT_FALSE(closed);
        EXPECT_THAT(closed.failure().message(),
                    HasSubstr("cannot write the trace to '/dev/full': No space left on device"));
    }
}

} // namespace
} // namespace diomp
