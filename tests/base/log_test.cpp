// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/log.h"
#include "config/settings.h"

#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>
#include <regex>
#include <set>
#include <string>

namespace diomp {
namespace {

static_assert(component_of("/x/src/transport/tcp/iface.cpp") == "transport/tcp");
static_assert(component_of("src/coll/select.cpp") == "coll");
static_assert(component_of("../src/group/internal/matcher.h") == "group");
static_assert(component_of("/src/x/src/transport/common/network_base.cpp") == "transport");
static_assert(component_of("tools/diomp-run/main.cpp").empty());
static_assert(component_of("main.cpp").empty());
static_assert(component_of("/home/u/src/diomp/tests/base/log_test.cpp").empty());
static_assert(component_of("/home/u/src/diomp/src/base/log.cpp") == "base");
static_assert(component_of("/home/u/mysrc/base/log.cpp").empty());

result<log_levels> parsed(const std::string &text) {
    std::vector<std::string> unknown;
    auto made = read_settings(unknown, [&](const char *name) -> const char * {
        return std::string_view(name) == "DIOMP_LOG" ? text.c_str() : nullptr;
    });
    DIOMP_TRY(made);
    return made.value().runtime.log;
}

TEST(log_levels, apply_to_all_or_to_a_component) {
    log_levels const levels = parsed("info,transport:error,tcp:debug,offload:off").take();
    EXPECT_EQ(levels.of("coll"), log_level::info);
    EXPECT_EQ(levels.of(""), log_level::info);
    EXPECT_EQ(levels.of("transport"), log_level::error);
    EXPECT_EQ(levels.of("transport/ucx"), log_level::error);
    EXPECT_EQ(levels.of("transport/tcp"), log_level::debug);
    EXPECT_EQ(levels.of("offload/remote"), log_level::off);
    EXPECT_EQ(levels.highest(), log_level::debug);
}

TEST(log_levels, a_later_rule_takes_precedence) {
    EXPECT_EQ(parsed("tcp:debug,transport:warn").take().of("transport/tcp"), log_level::warn);
    EXPECT_EQ(parsed("debug,info").take().standard, log_level::info);
}

TEST(log_levels, names_are_compared_as_a_whole) {
    EXPECT_EQ(parsed("device:debug").take().of("device_coll/vendor"), log_level::warn);
    EXPECT_EQ(parsed("coll:debug").take().of("device_coll"), log_level::warn);
}

TEST(log_levels, malformed_ones_are_errors) {
    for (auto const *const text :
         {"loud", "tcp", "tcp:", "tcp:loud", ":debug", "tpc:debug", "info,,debug"}) {
        auto const made = parsed(text);
        EXPECT_FALSE(made) << text;
    }
}

/// Every folder of src/ with sources can be named.
TEST(log_components, are_the_folders_of_the_source) {
    std::set<std::string> folders;
    for (auto const &entry : std::filesystem::recursive_directory_iterator(SOURCE_FOLDER)) {
        if (entry.path().extension() == ".cpp") {
            std::string component(component_of(entry.path().string()));
            folders.insert(component.substr(component.rfind('/') + 1));
        }
    }
    for (auto const &each : folders) {
        EXPECT_NE(is_log_component(each), false) << each;
    }
}

TEST(log, a_message_belongs_to_the_folder_of_its_source) {
    set_log(parsed("off,base:debug").take(), "");
    ::testing::internal::CaptureStderr();
    log(log_level::error, "from a test, which is not in {}", "src");
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
    EXPECT_TRUE(is_logged(log_level::debug, "base/secure"));
    EXPECT_FALSE(is_logged(log_level::error, "coll"));
    set_log(parsed("error").take(), "[here] ");
    ::testing::internal::CaptureStderr();
    log(log_level::error, "number {}", 3);
    log(log_level::warn, "not shown");
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "diomp: [here] error: number 3\n");
}

TEST(log, begins_with_the_time_if_asked) {
    log_levels const levels = parsed("info,time,tcp:debug").take();
    EXPECT_EQ(levels.of("coll"), log_level::info);
    EXPECT_EQ(levels.of("transport/tcp"), log_level::debug);
    EXPECT_EQ(parsed("time").take().standard, log_level::warn);
    EXPECT_FALSE(parsed("time:debug"));
    set_log(levels, "[3@here] ");
    std::time_t const before = std::time(nullptr);
    ::testing::internal::CaptureStderr();
    log(log_level::error, "late");
    std::string const line = ::testing::internal::GetCapturedStderr();
    std::smatch parts;
    ASSERT_TRUE(std::regex_match(line, parts,
                                 std::regex(R"(diomp: (\S+)\.(\d{6})Z \[3@here\] error: late\n)")))
        << line;
    std::tm calendar{};
    ASSERT_NE(strptime(parts[1].str().c_str(), "%Y-%m-%dT%H:%M:%S", &calendar), nullptr);
    std::time_t const written = timegm(&calendar);
    EXPECT_GE(written, before);
    EXPECT_LE(written, std::time(nullptr));
}

} // namespace
} // namespace diomp
