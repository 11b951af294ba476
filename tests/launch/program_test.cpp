// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "core/options.h"
#include "core/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace diomp::run {
namespace {

using testing::HasSubstr;

class program_test : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = (std::filesystem::temp_directory_path() / "program-XXXXXX").string();
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        directory_ = pattern;
        std::ofstream(directory_ + "/plain") << "text";
        std::ofstream(directory_ + "/tool") << "#!/bin/sh\n";
        std::filesystem::permissions(directory_ + "/tool", std::filesystem::perms::owner_all);
    }
    void TearDown() override { std::filesystem::remove_all(directory_); }

    std::string directory_;
};

TEST_F(program_test, a_name_is_searched_in_order) {
    auto const found = find_program("tool", "/nonexistent:" + directory_ + ":/bin");
    EXPECT_EQ(found.path, directory_ + "/tool");
    EXPECT_EQ(found.exit_status, 0);
}

TEST_F(program_test, a_path_is_taken_as_it_is) {
    EXPECT_EQ(find_program(directory_ + "/tool", "").path, directory_ + "/tool");
}

TEST_F(program_test, what_is_not_there_is_127) {
    auto const by_name = find_program("tool", "/nonexistent");
    EXPECT_EQ(by_name.exit_status, status_not_found);
    EXPECT_THAT(by_name.message, HasSubstr("'tool'"));
    auto const by_path = find_program(directory_ + "/none", "");
    EXPECT_EQ(by_path.exit_status, status_not_found);
    EXPECT_THAT(by_path.message, HasSubstr(directory_ + "/none"));
    EXPECT_EQ(find_program("", "/bin").exit_status, status_not_found);
}

TEST_F(program_test, what_cannot_be_executed_is_126) {
    EXPECT_EQ(find_program(directory_ + "/plain", "").exit_status, status_cannot_execute);
    EXPECT_EQ(find_program("plain", directory_).exit_status, status_cannot_execute);
    EXPECT_THAT(find_program(directory_, "").message, HasSubstr("directory"));
}

} // namespace
} // namespace diomp::run
