// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/pmi/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace diomp::launch::pmi {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::SizeIs;

TEST(pmi_text, lines_of_pmi1) {
    EXPECT_EQ(write_line({{"cmd", "put"}, {"key", "k"}, {"value", "v"}}), "cmd=put key=k value=v");
    EXPECT_THAT(read_line("cmd=get_result rc=0 msg=success value=(vector,(0,1,4))"),
                ElementsAre(Pair("cmd", "get_result"), Pair("rc", "0"), Pair("msg", "success"),
                            Pair("value", "(vector,(0,1,4))")));
    EXPECT_THAT(read_line(""), SizeIs(0));
    EXPECT_THAT(read_line("  words without sign  a=  "), ElementsAre(Pair("a", "")));
    EXPECT_THAT(read_line("value=a=b"), ElementsAre(Pair("value", "a=b")));
}

TEST(pmi_text, messages_of_pmi2) {
    EXPECT_EQ(write_message({{"cmd", "kvs-get"}, {"key", "k"}}), "18    cmd=kvs-get;key=k;");
    EXPECT_THAT(read_message("cmd=kvs-get-response;found=TRUE;value=;rc=0;"),
                ElementsAre(Pair("cmd", "kvs-get-response"), Pair("found", "TRUE"),
                            Pair("value", ""), Pair("rc", "0")));
}

TEST(pmi_text, lengths_are_padded_on_either_side) {
    EXPECT_EQ(read_length("    56"), 56U);
    EXPECT_EQ(read_length("56    "), 56U);
    EXPECT_EQ(read_length("123456"), 123456U);
    for (const char *const text : {"      ", "", "cmd=re", "1 2   ", "-1    ", "0x10  "}) {
        EXPECT_EQ(read_length(text), std::nullopt) << text;
    }
}

TEST(pmi_text, any_bytes_survive_the_wire) {
    std::string every;
    for (int c = 0; c < 256; ++c) {
        every += static_cast<char>(c);
    }
    std::string const safe = escape(every);
    EXPECT_EQ(safe.find_first_of("; =\n\t"), std::string::npos);
    EXPECT_EQ(unescape(safe), every);
    // Through both protocols.
    EXPECT_EQ(unescape(read_line(write_line({{"value", safe}})).at(0).second), every);
    std::string const message = write_message({{"value", safe}});
    EXPECT_EQ(unescape(read_message(message.substr(length_bytes)).at(0).second), every);
}

TEST(pmi_text, what_is_no_escape_is_refused) {
    for (const char *const text : {"%", "a%4", "%G0", "%0G", "%4a"}) {
        EXPECT_EQ(unescape(text), std::nullopt) << text;
    }
}

std::string join(const std::vector<std::string> &pieces, std::size_t limit) {
    for (std::string const &piece : pieces) {
        EXPECT_LE(piece.size(), limit);
    }
    auto const first = parse_first_chunk(pieces.front());
    EXPECT_TRUE(first.has_value());
    EXPECT_EQ(static_cast<std::size_t>(first->first), pieces.size());
    std::string whole(first->second);
    for (std::size_t i = 1; i < pieces.size(); ++i) {
        whole += pieces[i];
    }
    return whole;
}

TEST(pmi_text, values_are_cut_and_joined) {
    for (std::size_t const size : {0U, 1U, 31U, 32U, 33U, 64U, 65U, 10000U}) {
        std::string value;
        for (std::size_t i = 0; i < size; ++i) {
            value += static_cast<char>('a' + i % 23);
        }
        EXPECT_EQ(join(split_value(value, 40), 40), value) << size;
    }
    EXPECT_THAT(split_value("", 40), ElementsAre("1:"));
    EXPECT_THAT(split_value(std::string(32, 'x'), 40), SizeIs(1));
    EXPECT_THAT(split_value(std::string(33, 'x'), 40), SizeIs(2));
}

TEST(pmi_text, a_first_piece_says_how_many) {
    EXPECT_EQ(parse_first_chunk("12:a:b"), std::pair(12, std::string_view("a:b")));
    for (const char *const text : {"", ":", "0:", "-1:a", "a:b", "3"}) {
        EXPECT_EQ(parse_first_chunk(text), std::nullopt) << text;
    }
}

std::vector<int> on_node(std::string_view mapping, int rank, int size) {
    std::vector<int> numbers;
    auto const ranks = ranks_on_node(mapping, rank, size);
    for (world_rank const each : ranks.value()) {
        numbers.push_back(each.value());
    }
    return numbers;
}

TEST(pmi_text, mapping_of_ranks_to_nodes) {
    EXPECT_THAT(on_node("(vector,(0,1,4))", 2, 4), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(on_node("(vector,(0,2,2))", 2, 4), ElementsAre(2, 3));
    // Dealt again from the first block: what hydra says of four ranks on one node.
    EXPECT_THAT(on_node("(vector,(0,1,1))", 3, 4), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(on_node("(vector,(0,2,1))", 3, 5), ElementsAre(1, 3));
    // Nodes of different width, and one that comes twice.
    EXPECT_THAT(on_node("(vector,(0,1,2),(1,1,3))", 4, 5), ElementsAre(2, 3, 4));
    EXPECT_THAT(on_node("(vector,(0,2,1),(0,1,2))", 3, 4), ElementsAre(0, 2, 3));
}

TEST(pmi_text, a_mapping_that_is_none_is_refused) {
    for (const char *const text :
         {"", "(vector", "(vector)", "(vector,(0,0,4))", "(vector,(0,1,0))", "(vector,(0,1))",
          "(vector,(-1,1,1))", "(vector,(0,1,1)", "(array,(0,1,1))", "(vector,(0,1,1)) "}) {
        EXPECT_EQ(ranks_on_node(text, 0, 4), std::nullopt) << text;
    }
}

} // namespace
} // namespace diomp::launch::pmi
