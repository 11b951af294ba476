// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "core/rank_environment.h"
#include "launch/local/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace diomp::run {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

/// environ's form.
class variables {
public:
    explicit variables(std::vector<std::string> texts) : texts_(std::move(texts)) {
        for (std::string &text : texts_) {
            pointers_.push_back(text.data());
        }
        pointers_.push_back(nullptr);
    }
    [[nodiscard]] char *const *list() const { return pointers_.data(); }

private:
    std::vector<std::string> texts_;
    std::vector<char *> pointers_;
};

TEST(rank_environment, other_hosts_get_our_settings_and_what_the_user_names) {
    variables const own({"PATH=/bin", "DIOMP_LOG=info", "LD_LIBRARY_PATH=/l", "A=1", "B=2",
                         "DIOMP_RANK=3", "DIOMP_LAUNCH_FD=4", "EMPTY=", "DIOMP_TIMEOUT=9"});
    EXPECT_THAT(
        forwarded_settings(
            own.list(),
            {{"A", std::nullopt}, {"EMPTY", std::nullopt}, {"DIOMP_TIMEOUT", "5"}, {"NEW", "x=y"}}),
        UnorderedElementsAre(Pair("DIOMP_LOG", "info"), Pair("LD_LIBRARY_PATH", "/l"),
                             Pair("A", "1"), Pair("EMPTY", ""), Pair("DIOMP_TIMEOUT", "5"),
                             Pair("NEW", "x=y")));
}

TEST(rank_environment, the_last_setting_of_a_name_counts) {
    EXPECT_THAT(explicit_settings({{"A", "1"}, {"B", "2"}, {"A", "3"}}),
                ElementsAre(Pair("B", "2"), Pair("A", "3")));
}

TEST(rank_environment, ranks_get_settings_in_place_of_what_is_there) {
    variables const own({"A=old", "B=kept", "DIOMP_LAUNCH_JOB=other", "DIOMP_RANK=1"});
    EXPECT_THAT(rank_environment(own.list(), {{"A", "new"}}), ElementsAre("B=kept", "A=new"));
}

TEST(rank_environment, our_libraries_come_before_the_users) {
    variables const own({"A=1", "LD_LIBRARY_PATH=/theirs"});
    EXPECT_THAT(rank_environment(own.list(), {}, "/ours"),
                ElementsAre("A=1", "LD_LIBRARY_PATH=/ours:/theirs"));
    EXPECT_THAT(rank_environment(own.list(), {{"LD_LIBRARY_PATH", "/x"}}, "/ours"),
                ElementsAre("A=1", "LD_LIBRARY_PATH=/ours:/x"));
    variables const none({"A=1"});
    EXPECT_THAT(rank_environment(none.list(), {}, "/ours"),
                ElementsAre("A=1", "LD_LIBRARY_PATH=/ours"));
}

} // namespace
} // namespace diomp::run
