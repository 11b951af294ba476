// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "core/line_merger.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <sstream>

namespace diomp::run {
namespace {

class line_merger_test : public testing::Test {
protected:
    std::string out_;
    line_merger lines_{[this](std::string_view text) { out_ += text; }};
};

TEST_F(line_merger_test, whole_lines_come_out_at_once) {
    auto const a = lines_.add_source("");
    auto const b = lines_.add_source("");
    lines_.add_text(a, "one\n");
    lines_.add_text(b, "two\nthree\n");
    EXPECT_EQ(out_, "one\ntwo\nthree\n");
    EXPECT_FALSE(lines_.waiting());
}

TEST_F(line_merger_test, parts_of_lines_are_put_together) {
    auto const a = lines_.add_source("");
    auto const b = lines_.add_source("");
    lines_.add_text(a, "a1 ");
    lines_.add_text(b, "b1 ");
    EXPECT_EQ(out_, "");
    EXPECT_TRUE(lines_.waiting());
    lines_.add_text(a, "a2\n");
    lines_.add_text(b, "b2\n");
    EXPECT_EQ(out_, "a1 a2\nb1 b2\n");
}

TEST_F(line_merger_test, prefix_starts_each_line_once) {
    auto const a = lines_.add_source("[0] ");
    lines_.add_source("[1] ");
    lines_.add_text(a, "one\ntw");
    lines_.idle();
    lines_.add_text(a, "o\n\nthree\n");
    EXPECT_EQ(out_, "[0] one\n[0] two\n[0] \n[0] three\n");
}

TEST_F(line_merger_test, a_prompt_comes_out_when_idle_and_its_line_stays_whole) {
    auto const a = lines_.add_source("");
    auto const b = lines_.add_source("");
    lines_.add_text(a, "name? ");
    lines_.idle();
    EXPECT_EQ(out_, "name? ");
    lines_.add_text(b, "part of b");
    lines_.idle();
    EXPECT_EQ(out_, "name? "); // b waits for a
    lines_.add_text(a, "x\n");
    EXPECT_EQ(out_, "name? x\n");
    EXPECT_TRUE(lines_.waiting());
    lines_.idle();
    EXPECT_EQ(out_, "name? x\npart of b");
}

TEST_F(line_merger_test, a_whole_line_ends_the_line_of_a_slow_owner) {
    auto const a = lines_.add_source("[0] ");
    auto const b = lines_.add_source("[1] ");
    lines_.add_text(a, "10%");
    lines_.idle();
    lines_.add_text(b, "news\n");
    EXPECT_EQ(out_, "[0] 10%");
    EXPECT_TRUE(lines_.waiting());
    lines_.idle();
    EXPECT_EQ(out_, "[0] 10%\n[1] news\n");
    lines_.add_text(a, " 20%\n");
    EXPECT_EQ(out_, "[0] 10%\n[1] news\n[0]  20%\n");
}

TEST_F(line_merger_test, an_unfinished_last_line_is_kept_as_it_is) {
    auto const a = lines_.add_source("");
    auto const b = lines_.add_source("");
    lines_.add_text(a, "no newline");
    lines_.close_source(a);
    EXPECT_EQ(out_, "no newline");
    lines_.add_text(b, "b\n");
    EXPECT_EQ(out_, "no newline\nb\n");
}

TEST_F(line_merger_test, a_single_source_passes_unchanged) {
    auto const a = lines_.add_source("");
    lines_.add_text(a, "\r 10%");
    lines_.add_text(a, "\r 20%");
    EXPECT_EQ(out_, "\r 10%\r 20%");
    EXPECT_FALSE(lines_.waiting());
}

TEST_F(line_merger_test, a_message_stands_on_its_own_line) {
    auto const a = lines_.add_source("");
    lines_.add_source("");
    lines_.add_text(a, "prompt");
    lines_.idle();
    lines_.add_message("diomp-run: news\n");
    EXPECT_EQ(out_, "prompt\ndiomp-run: news\n");
}

TEST_F(line_merger_test, an_endless_line_does_not_fill_memory) {
    auto const a = lines_.add_source("");
    lines_.add_source("");
    std::string const block(100'000, 'x');
    for (int i = 0; i < 10; ++i) {
        lines_.add_text(a, block);
    }
    EXPECT_GE(out_.size(), 700'000U);
}

TEST_F(line_merger_test, lines_cut_anywhere_stay_whole) {
    std::mt19937 random(1);
    constexpr int num_sources = 5;
    constexpr int num_lines = 200;
    std::vector<std::string> left(num_sources);
    std::multiset<std::string> expected;
    for (int s = 0; s < num_sources; ++s) {
        lines_.add_source("[" + std::to_string(s) + "] ");
        for (int i = 0; i < num_lines; ++i) {
            std::string const line = std::string(random() % 30, static_cast<char>('a' + s));
            left[static_cast<std::size_t>(s)] += line + "\n";
            expected.insert("[" + std::to_string(s) + "] " + line);
        }
    }
    for (bool any = true; any;) {
        any = false;
        for (std::size_t s = 0; s < num_sources; ++s) {
            std::size_t const size = std::min<std::size_t>(left[s].size(), random() % 40);
            lines_.add_text(s, std::string_view(left[s]).substr(0, size));
            left[s].erase(0, size);
            any = any || !left[s].empty();
        }
    }
    std::multiset<std::string> seen;
    std::istringstream text(out_);
    for (std::string line; std::getline(text, line);) {
        seen.insert(line);
    }
    EXPECT_EQ(seen, expected);
}

} // namespace
} // namespace diomp::run
