// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "multihost/host_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace diomp::run {
namespace {

using testing::HasSubstr;
using hosts = std::vector<host_slots>;
using shares = std::vector<rank_block>;

TEST(host_list, names_and_slots) {
    EXPECT_EQ(parse_hosts("a").value(), (hosts{{"a", 0}}));
    EXPECT_EQ(parse_hosts("a, user@b.example:12").value(),
              (hosts{{"a", 0}, {"user@b.example", 12}}));
    EXPECT_EQ(parse_hosts("fe80::1,[fe80::2]:3,[::1]").value(),
              (hosts{{"fe80::1", 0}, {"fe80::2", 3}, {"::1", 0}}));
}

TEST(host_list, a_name_that_comes_again_adds_slots) {
    EXPECT_EQ(parse_hosts("a,b,a").value(), (hosts{{"a", 2}, {"b", 0}}));
    EXPECT_EQ(parse_hosts("a:2,a:3").value(), (hosts{{"a", 5}}));
}

TEST(host_list, what_is_no_host_is_refused) {
    for (const char *const text :
         {"", "a,", ",a", "a:0", "a:x", "a:", ":2", "a:1000000", "-oProxy=x", "a b", "a'b"}) {
        EXPECT_FALSE(parse_hosts(text).ok()) << text;
    }
}

TEST(host_list, a_file_has_comments_and_three_forms) {
    auto const parsed = parse_host_file("# all\n a \r\n\nb:2#x\nc   slots=3\nd", "file");
    EXPECT_EQ(parsed.value(), (hosts{{"a", 0}, {"b", 2}, {"c", 3}, {"d", 0}}));
    EXPECT_THAT(parse_host_file("a\nb slot=2\n", "file").failure().message(), HasSubstr("file:2:"));
    EXPECT_THAT(parse_host_file("# none\n", "file").failure().message(),
                HasSubstr("names no host"));
    EXPECT_FALSE(parse_host_file("b:2 slots=2", "file").ok());
}

TEST(host_list, without_slots_blocks_are_equal) {
    hosts const three{{"a", 0}, {"b", 0}, {"c", 0}};
    EXPECT_EQ(assign_to_hosts(three, 6, false).value(),
              (shares{{"a", 0, 2}, {"b", 2, 2}, {"c", 4, 2}}));
    EXPECT_EQ(assign_to_hosts(three, 7, false).value(),
              (shares{{"a", 0, 3}, {"b", 3, 2}, {"c", 5, 2}}));
    EXPECT_EQ(assign_to_hosts(three, 2, false).value(), (shares{{"a", 0, 1}, {"b", 1, 1}}));
    EXPECT_EQ(assign_to_hosts(three, 0, false).value(),
              (shares{{"a", 0, 1}, {"b", 1, 1}, {"c", 2, 1}}));
}

TEST(host_list, with_slots_hosts_are_filled_in_turn) {
    hosts const given{{"a", 2}, {"b", 0}, {"c", 3}};
    EXPECT_EQ(assign_to_hosts(given, 0, false).value(),
              (shares{{"a", 0, 2}, {"b", 2, 1}, {"c", 3, 3}}));
    EXPECT_EQ(assign_to_hosts(given, 2, false).value(), (shares{{"a", 0, 2}}));
    EXPECT_EQ(assign_to_hosts(given, 4, false).value(),
              (shares{{"a", 0, 2}, {"b", 2, 1}, {"c", 3, 1}}));
}

TEST(host_list, more_ranks_than_slots_must_be_wanted) {
    hosts const given{{"a", 2}, {"b", 1}};
    auto const refused = assign_to_hosts(given, 4, false);
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.failure().message(),
                HasSubstr("4 ranks do not fit the 3 slots of 2 hosts"));
    EXPECT_THAT(refused.failure().remedy(), HasSubstr("--oversubscribe"));
    EXPECT_EQ(assign_to_hosts(given, 8, true).value(), (shares{{"a", 0, 6}, {"b", 6, 2}}));
}

} // namespace
} // namespace diomp::run
