// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "multihost/remote_shell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace diomp::run {
namespace {

TEST(remote_shell, words_are_split_as_a_shell_does) {
    EXPECT_EQ(split_words(" ssh  -p 22\t-x ").value(),
              (std::vector<std::string>{"ssh", "-p", "22", "-x"}));
    EXPECT_EQ(split_words(R"('a b' "c \" d" e\ f '' g'h'i 'j\')").value(),
              (std::vector<std::string>{"a b", "c \" d", "e f", "", "ghi", "j\\"}));
    EXPECT_FALSE(split_words("ssh 'x").ok());
    EXPECT_FALSE(split_words(" ").ok());
}

TEST(remote_shell, the_command_is_one_string_for_a_shell) {
    EXPECT_EQ(quote_for_shell("it's"), "'it'\\''s'");
    EXPECT_EQ(remote_command("/a b/diomp-run", {"--agent"}, nullptr),
              "exec '/a b/diomp-run' '--agent'");
    EXPECT_EQ(remote_command("/x", {"--a", "b c"}, "/l 1:/l2"),
              "exec env 'LD_LIBRARY_PATH=/l 1:/l2' '/x' '--a' 'b c'");
}

} // namespace
} // namespace diomp::run
