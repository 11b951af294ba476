// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "core/options.h"
#include "core/rank_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace diomp::run {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::variant<run_options, int> parse(std::vector<const char *> words) {
    words.insert(words.begin(), "diomp-run");
    return parse_command_line(static_cast<int>(words.size()), words.data());
}

run_options accepted(std::vector<const char *> words) {
    auto parsed = parse(std::move(words));
    EXPECT_TRUE(std::holds_alternative<run_options>(parsed));
    auto *const options = std::get_if<run_options>(&parsed);
    return options != nullptr ? *options : run_options{};
}

/// The message of a command line that must be refused.
std::string refused(std::vector<const char *> words) {
    testing::internal::CaptureStderr();
    auto const parsed = parse(std::move(words));
    std::string text = testing::internal::GetCapturedStderr();
    const int *const status = std::get_if<int>(&parsed);
    EXPECT_TRUE(status != nullptr && *status == status_usage);
    return text;
}

TEST(options, the_program_keeps_its_own_options) {
    auto const options = accepted({"-n", "4", "./app", "-n", "7", "--timeout", "x", "--", "y"});
    EXPECT_EQ(options.ranks, 4);
    EXPECT_THAT(options.command, ElementsAre("./app", "-n", "7", "--timeout", "x", "--", "y"));
}

TEST(options, np_may_be_written_as_mpirun_has_it) {
    EXPECT_EQ(accepted({"-np", "4", "./app"}).ranks, 4);
    auto const options = accepted({"--tag-output", "-x", "A=-np", "--timeout=9", "--bind-to",
                                   "none", "-np", "3", "-q", "./app", "-np", "7"});
    EXPECT_EQ(options.ranks, 3);
    EXPECT_TRUE(options.tag_output && options.quiet);
    EXPECT_THAT(options.command, ElementsAre("./app", "-np", "7"));
    EXPECT_THAT(accepted({"-n2", "--", "app", "-np"}).command, ElementsAre("app", "-np"));
    EXPECT_THAT(refused({"-np"}), HasSubstr("--np"));
}

TEST(options, a_second_program_is_refused) {
    std::string const why = refused({"-n", "2", "./a", "x", ":", "-n", "1", "./b"});
    EXPECT_THAT(why, HasSubstr("all ranks run one program, ./a"));
    EXPECT_THAT(why, HasSubstr("\": -n\""));
    EXPECT_THAT(accepted({"-n2", "./a", ":", "x"}).command, ElementsAre("./a", ":", "x"));
    EXPECT_THAT(accepted({"-n2", "--", "./a", ":", "-n"}).command, ElementsAre("./a", ":", "-n"));
}

TEST(options, two_dashes_end_the_options) {
    EXPECT_THAT(accepted({"--np", "2", "--", "app", "-x"}).command, ElementsAre("app", "-x"));
}

TEST(options, devices_per_rank_is_a_setting_of_the_ranks_and_wins_over_x) {
    EXPECT_THAT(accepted({"-n", "2", "app"}).environment, testing::IsEmpty());
    auto const options =
        accepted({"-n", "2", "--devices-per-rank", "2", "-x", "DIOMP_DEVICES_PER_RANK=3", "app"});
    EXPECT_THAT(explicit_settings(options.environment),
                ElementsAre(testing::Pair("DIOMP_DEVICES_PER_RANK", "2")));
    EXPECT_THAT(refused({"-n", "2", "--devices-per-rank", "0", "app"}),
                HasSubstr("--devices-per-rank"));
}

TEST(options, remote_devices_are_for_one_rank_unless_more_are_asked_for) {
    auto const options = accepted({"--remote-devices", "a:2,b", "app"});
    EXPECT_EQ(options.ranks, 1);
    EXPECT_THAT(options.device_hosts, ElementsAre(device_host{"a", 2}, device_host{"b", 1}));
    EXPECT_EQ(accepted({"-n", "2", "--remote-devices", "a:2", "app"}).ranks, 2);
    EXPECT_EQ(accepted({"--hosts", "c,d", "--remote-devices", "a:2", "app"}).ranks, 0);
    EXPECT_THAT(refused({"--remote-devices", "a:0", "app"}), HasSubstr("--remote-devices: 'a:0'"));
}

TEST(options, all_options) {
    auto const options =
        accepted({"-n", "2", "--bind-to", "none", "--tag-output", "--quiet", "-v", "--timeout",
                  "1.5", "--output-dir", "out", "-x", "A=1=2", "-x", "B=", "app"});
    EXPECT_EQ(options.bind, binding::none);
    EXPECT_TRUE(options.tag_output);
    EXPECT_TRUE(options.quiet);
    EXPECT_TRUE(options.verbose);
    EXPECT_DOUBLE_EQ(options.timeout_s, 1.5);
    EXPECT_EQ(options.output_dir, "out");
    ASSERT_EQ(options.environment.size(), 2U);
    EXPECT_EQ(options.environment[0].first, "A");
    EXPECT_EQ(options.environment[0].second, "1=2");
    EXPECT_EQ(options.environment[1].second, "");
    EXPECT_THAT(options.command, ElementsAre("app"));
}

TEST(options, misuse_is_refused_with_its_reason) {
    EXPECT_THAT(refused({"app"}), HasSubstr("Give -n N"));
    EXPECT_THAT(refused({"-n", "2"}), HasSubstr("no program"));
    EXPECT_THAT(refused({"-n", "0", "app"}), HasSubstr("not in range"));
    EXPECT_THAT(refused({"-n", "two", "app"}), HasSubstr("two"));
    EXPECT_THAT(refused({"-n", "2", "--bind-to", "socket", "app"}), HasSubstr("socket"));
    EXPECT_THAT(refused({"-n", "2", "--timeout", "-1", "app"}), HasSubstr("--timeout"));
    EXPECT_THAT(refused({"-n", "2", "--timeout", "nan", "app"}), HasSubstr("nan is not a number"));
    EXPECT_THAT(refused({"-n", "2", "--unknown", "app"}), HasSubstr("--unknown"));
    EXPECT_THAT(refused({"-n", "2", "-x", "=1", "app"}), HasSubstr("no name"));
    EXPECT_THAT(refused({"-n", "2", "-x", "DIOMP_TEST_UNSET", "app"}), HasSubstr("not set"));
    EXPECT_THAT(refused({"-n", "2", "-x", "DIOMP_LAUNCH_FD=1", "app"}), HasSubstr("itself"));
}

} // namespace
} // namespace diomp::run
