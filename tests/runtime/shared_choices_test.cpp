// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tuning file on its way from rank 0 to the other ranks.
#include "coll/algorithm.h"
#include "launch/long_value.h"
#include "runtime/internal/shared_choices.h"
#include "support/lone_launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <unistd.h>

namespace diomp::runtime {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// A file that lives as long as the test.
class rules_file {
public:
    explicit rules_file(const std::string &text) { std::ofstream(path_) << text; }
    ~rules_file() { std::remove(path_.c_str()); }
    rules_file(const rules_file &) = delete;
    rules_file &operator=(const rules_file &) = delete;
    [[nodiscard]] const std::string &path() const { return path_; }

private:
    std::string path_ = testing::TempDir() + "rules-" + std::to_string(::getpid());
};

coll::choice_facts bcast_of(std::size_t nbytes) {
    return {sync::operation::bcast, coll::network_level::node, 4, 1, nbytes};
}

/// What a rank of a job of `num_ranks` gets from rank 0 with this file.
result<std::shared_ptr<const coll::algorithm_source>> shared(int num_ranks,
                                                             const std::string &file) {
    test::lone_launcher launcher(0, num_ranks, "shared-choices");
    DIOMP_TRY(publish_choices(launcher, {file, false, {{"DIOMP_A", "1"}}}));
    auto choices = fetch_choices(launcher, {file, false, {{"DIOMP_A", "1"}}});
    DIOMP_TRY(choices);
    return choices.value().algorithms;
}

TEST(shared_choices, has_the_rules_of_rank_0) {
    rules_file const rules("# comment\nbcast node staged bytes=8-\n");
    for (int const num_ranks : {1, 2, 1000}) {
        auto const source = shared(num_ranks, rules.path());
        ASSERT_TRUE(source.ok()) << source.failure().message();
        auto const choice = source.value()->choose(bcast_of(8));
        ASSERT_TRUE(choice.has_value());
        EXPECT_EQ(choice->method, coll::algorithm::staged);
        EXPECT_FALSE(source.value()->choose(bcast_of(7)).has_value());
    }
}

TEST(shared_choices, has_the_remote_devices_of_rank_0) {
    rules_file const rules("bcast node staged bytes=8-\n");
    for (std::string const &file : {std::string(), rules.path()}) {
        for (int const num_ranks : {1, 2}) {
            for (bool const has_devices : {false, true}) {
                test::lone_launcher launcher(0, num_ranks, "shared-choices");
                ASSERT_TRUE(publish_choices(launcher, {file, has_devices, {}}).ok());
                auto const found = fetch_choices(launcher, {file, has_devices, {}});
                ASSERT_TRUE(found.ok()) << found.failure().message();
                EXPECT_EQ(found.value().have_remote_devices, has_devices);
                EXPECT_EQ(found.value().algorithms != nullptr, !file.empty());
            }
        }
    }
}

TEST(shared_choices, names_a_setting_that_is_not_that_of_rank_0) {
    rules_file const rules("bcast node staged bytes=8-\n");
    using settings = std::vector<own_choices::setting>;
    for (std::string const &file : {std::string(), rules.path()}) {
        test::lone_launcher launcher(0, 2, "shared-choices");
        settings const first{{"DIOMP_A", "auto"}, {"DIOMP_B", "a\tb\nc"}, {"DIOMP_C", ""}};
        ASSERT_TRUE(publish_choices(launcher, {file, true, first}).ok());
        EXPECT_TRUE(fetch_choices(launcher, {file, true, first}).ok());
        for (std::size_t i = 0; i < first.size(); ++i) {
            settings own = first;
            own[i].value = "other";
            auto const found = fetch_choices(launcher, {file, true, own});
            ASSERT_FALSE(found.ok());
            EXPECT_EQ(found.failure().code(), OMPX_ERR_ARG);
            EXPECT_THAT(found.failure().message(),
                        testing::StartsWith("this rank has " + own[i].name + "=other, rank 0 has " +
                                            first[i].name + "="));
        }
    }
}

TEST(shared_choices, is_none_without_a_file_or_rules) {
    rules_file const rules("# only a comment\n");
    for (std::string const &file : {std::string(), rules.path()}) {
        auto const source = shared(2, file);
        ASSERT_TRUE(source.ok());
        EXPECT_EQ(source.value(), nullptr);
    }
}

TEST(shared_choices, passes_mistakes_on) {
    rules_file const rules("bcast node staged\nbcast node ring\n");
    for (int const num_ranks : {1, 2}) {
        auto const source = shared(num_ranks, rules.path());
        ASSERT_FALSE(source.ok());
        EXPECT_EQ(source.failure().code(), OMPX_ERR_ARG);
        EXPECT_THAT(source.failure().message(),
                    AllOf(HasSubstr(rules.path() + ", line 2: "), HasSubstr("'ring'")));
        EXPECT_THAT(source.failure().remedy(), HasSubstr("inline_data, staged, zero_copy"));
        EXPECT_FALSE(shared(num_ranks, "/nonexistent").ok());
    }
}

TEST(shared_choices, does_not_take_the_file_of_another_rank) {
    test::lone_launcher launcher(1, 2, "shared-choices");
    ASSERT_TRUE(publish_choices(launcher, {"/nonexistent", false, {}}).ok());
    EXPECT_FALSE(fetch_choices(launcher, {}).ok()); // rank 0 has published nothing yet
}

TEST(long_value, arrives_at_every_length) {
    test::lone_launcher launcher(0, 2, "long-value");
    for (std::size_t const length : {0UL, 1UL, 2999UL, 3000UL, 3001UL, 6000UL, 100000UL}) {
        std::string text(length, ' ');
        for (std::size_t i = 0; i < length; ++i) {
            text[i] = static_cast<char>(' ' + i * 7 % 95);
        }
        std::string const key = "key" + std::to_string(length);
        ASSERT_TRUE(launch::publish_long_value(launcher, key, text).ok());
        auto const fetched = launch::fetch_long_value(launcher, key);
        ASSERT_TRUE(fetched.ok());
        EXPECT_EQ(fetched.value(), text);
    }
}

TEST(long_value, that_is_malformed_is_an_error) {
    test::lone_launcher launcher(0, 2, "long-value");
    for (const char *const text :
         {"", "x", "0 text", "-1 text", "1", "2x text", "99999999999999999999 t"}) {
        ASSERT_TRUE(launcher.put("key.0", text).ok());
        auto const fetched = launch::fetch_long_value(launcher, "key");
        ASSERT_FALSE(fetched.ok()) << text;
        EXPECT_THAT(fetched.failure().message(), HasSubstr("'key' is malformed"));
    }
    ASSERT_TRUE(launcher.put("key.0", "2 text").ok()); // without a second part
    EXPECT_FALSE(launch::fetch_long_value(launcher, "key").ok());
}

} // namespace
} // namespace diomp::runtime
