// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tuning files: what they may contain, which rule a call takes, and every algorithm on every layout
// where the built-in rules would not choose it.
#include "coll/internal/select.h"
#include "coll/requests.h"
#include "coll/thread_calls.h"
#include "coll/tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <unistd.h>

namespace diomp::coll {
namespace {

using sync::operation;
using test::kind;
using test::trial;
using test::trial_buffers;
using testing::AllOf;
using testing::HasSubstr;

tuning_rules parsed(std::string_view text) {
    auto made = tuning_rules::parse(text, "rules.txt");
    EXPECT_TRUE(made.ok()) << made.failure().message();
    return made.ok() ? made.take() : tuning_rules();
}

std::string chosen(const tuning_rules &rules, const choice_facts &facts) {
    auto const choice = rules.choose(facts);
    return choice ? name_of(choice->method) : "built-in";
}

TEST(tuning_file, a_rule_has_conditions_in_any_order) {
    tuning_rules const rules = parsed("# comment\n"
                                      "\n"
                                      "  allreduce\tnode flat bytes=32K-128K members=3-8 # rest\r\n"
                                      "bcast nodes chain chunk=512K nodes=4- bytes=1M-");
    ASSERT_EQ(rules.rules().size(), 2U);
    EXPECT_EQ(rules.to_text(), "allreduce node flat members=3-8 bytes=32768-131072\n"
                               "bcast nodes chain nodes=4- bytes=1048576- chunk=524288\n");
    EXPECT_EQ(parsed(rules.to_text()).to_text(), rules.to_text());
}

TEST(tuning_file, both_ends_of_a_range_belong_to_it) {
    tuning_rules const rules = parsed("allreduce node flat members=3-8 bytes=32K-128K");
    choice_facts facts{operation::allreduce, network_level::node, 3, 1, 32768};
    EXPECT_EQ(chosen(rules, facts), "flat");
    facts.num_members = 8;
    facts.block_bytes = 131072;
    EXPECT_EQ(chosen(rules, facts), "flat");
    facts.num_members = 9;
    EXPECT_EQ(chosen(rules, facts), "built-in");
    facts.num_members = 2;
    EXPECT_EQ(chosen(rules, facts), "built-in");
    facts.num_members = 3;
    facts.block_bytes = 32767;
    EXPECT_EQ(chosen(rules, facts), "built-in");
    facts.block_bytes = 131073;
    EXPECT_EQ(chosen(rules, facts), "built-in");
}

TEST(tuning_file, the_first_match_decides) {
    tuning_rules const rules = parsed("bcast nodes with_agreement\n"
                                      "bcast nodes chain nodes=-3\n"
                                      "bcast nodes binomial_tree members=16\n");
    choice_facts facts{operation::bcast, network_level::nodes, 16, 3, 65536};
    EXPECT_EQ(chosen(rules, facts), "with_agreement");
    facts.block_bytes = 65537; // more than the first rule's algorithm takes
    EXPECT_EQ(chosen(rules, facts), "chain");
    facts.num_nodes = 4;
    EXPECT_EQ(chosen(rules, facts), "binomial_tree");
    facts.num_members = 17;
    EXPECT_EQ(chosen(rules, facts), "built-in");
    facts.level = network_level::node;
    EXPECT_EQ(chosen(rules, facts), "built-in");
}

struct mistake {
    const char *line;
    const char *message;
    const char *remedy;
};

class tuning_mistakes : public testing::TestWithParam<mistake> {};

TEST_P(tuning_mistakes, name_file_line_and_what_would_be_right) {
    auto const made = tuning_rules::parse(
        std::string("# one\nbcast node staged\n") + GetParam().line, "rules.txt");
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.failure().code(), OMPX_ERR_ARG);
    EXPECT_THAT(made.failure().message(),
                AllOf(HasSubstr("rules.txt, line 3: "), HasSubstr(GetParam().message)));
    EXPECT_THAT(made.failure().remedy(), HasSubstr(GetParam().remedy));
}

INSTANTIATE_TEST_SUITE_P(
    lines, tuning_mistakes,
    testing::Values(
        mistake{"bcast node", "too few words", "COLLECTIVE LEVEL ALGORITHM"},
        mistake{"broadcast node staged", "no collective 'broadcast'", "bcast, reduce, allreduce"},
        mistake{"scan node flat", "no collective 'scan'", "use one of"},
        mistake{"barrier node flat", "no collective 'barrier'", "use one of"},
        mistake{"bcast host staged", "'host' is no level", "nodes (between nodes)"},
        mistake{"bcast node ring", "bcast at level node has no algorithm 'ring'",
                "inline_data, staged, zero_copy"},
        mistake{"bcast node flat", "has no algorithm 'flat'", "inline_data, staged, zero_copy"},
        mistake{"bcast node chain", "has no algorithm 'chain'", "inline_data"},
        mistake{"gather nodes direct", "gather at level nodes has no algorithm",
                "leave the line out"},
        mistake{"bcast node staged size=8", "'size=8' is not known here", "bytes="},
        mistake{"bcast node staged nodes=2", "'nodes=2' is not known here", "at level nodes"},
        mistake{"bcast node staged members", "members= is not a range", "2-16"},
        mistake{"bcast node staged members=-", "members=- is not a range", "2-16"},
        mistake{"bcast node staged members=2-x", "members=2-x is not a range", "2-16"},
        mistake{"bcast node staged members=2K", "members=2K is not a range", "2-16"},
        mistake{"bcast node staged members=8-4", "members=8-4 ends before it begins", "smaller"},
        mistake{"bcast node staged bytes=1M-4K", "bytes=1M-4K ends before it begins", "smaller"},
        mistake{"bcast node staged bytes=many", "bytes=many is not a range", "8K-256K"},
        mistake{"bcast node staged bytes=99999999999T", "is not a range", "8K-256K"},
        mistake{"bcast node staged chunk=1K", "chunk=1K is not possible", "from 4K to 256K"},
        mistake{"bcast nodes chain chunk=2M", "chunk=2M is not possible", "from 4K to 1024K"},
        mistake{"bcast node staged chunk=", "chunk= is not possible", "from 4K to 256K"},
        mistake{"reduce nodes binomial_tree chunk=64K", "has no chunks", "leave chunk= out"},
        mistake{"bcast node inline_data bytes=257-",
                "takes blocks of up to 256 bytes, the rule "
                "begins at 257",
                "staged"}));

TEST(tuning_file, that_is_missing_or_no_file_is_an_error) {
    auto const missing = tuning_rules::read("/nonexistent/rules.txt");
    ASSERT_FALSE(missing.ok());
    EXPECT_EQ(missing.failure().code(), OMPX_ERR_ARG);
    EXPECT_THAT(missing.failure().message(), HasSubstr("/nonexistent/rules.txt"));
    EXPECT_THAT(missing.failure().remedy(), HasSubstr("DIOMP_COLL_TUNING"));
    EXPECT_FALSE(tuning_rules::read("/").ok());
    EXPECT_FALSE(tuning_rules::read("/dev/zero").ok());
}

TEST(tuning_file, every_algorithm_can_be_named) {
    for (algorithm_row const &row : algorithm_rows()) {
        std::string const line = std::string(short_name_of(row.what)) + " " + name_of(row.level) +
                                 " " + name_of(row.method);
        tuning_rules const rules = parsed(line);
        choice_facts const facts{row.what, row.level, 4, row.level == network_level::node ? 1U : 2U,
                                 8};
        EXPECT_EQ(chosen(rules, facts), name_of(row.method)) << line;
    }
}

call_shape shape_of(operation what, std::size_t num_members, std::size_t nbytes) {
    call_shape shape;
    shape.what = what;
    shape.num_members = num_members;
    shape.block_bytes = nbytes;
    return shape;
}

TEST(tuned_select, takes_the_choice) {
    call_shape const shape = shape_of(operation::allreduce, 4, 65536);
    EXPECT_EQ(select(shape).method, algorithm::reduce_scatter_allgather);
    EXPECT_TRUE(select(shape).try_zero_copy);

    tuning_rules const flat = parsed("allreduce node flat chunk=16K");
    EXPECT_EQ(select(shape, &flat).method, algorithm::flat);
    EXPECT_FALSE(select(shape, &flat).try_zero_copy);
    EXPECT_EQ(select(shape, &flat).chunk_bytes, 16384U);

    tuning_rules const zero_copy = parsed("allreduce node zero_copy");
    call_shape const small = shape_of(operation::allreduce, 4, 8);
    EXPECT_EQ(select(small).method, algorithm::inline_data);
    EXPECT_EQ(select(small, &zero_copy).method, algorithm::flat);
    EXPECT_TRUE(select(small, &zero_copy).try_zero_copy);
}

TEST(tuned_select, keeps_to_what_the_call_allows) {
    tuning_rules const rules = parsed("allreduce node inline_data\nscatter node inline_data\n");
    call_shape user = shape_of(operation::allreduce, 4, 8);
    EXPECT_EQ(select(user, &rules).method, algorithm::inline_data);
    user.user_operator = true;
    EXPECT_EQ(select(user, &rules).method, algorithm::flat);
    EXPECT_EQ(select(shape_of(operation::allreduce, 4, 257), &rules).method, algorithm::flat);
    EXPECT_EQ(select(shape_of(operation::scatter, 4, 64), &rules).method, algorithm::inline_data);
    EXPECT_EQ(select(shape_of(operation::scatter, 5, 64), &rules).method, algorithm::staged);
    EXPECT_EQ(select(shape_of(operation::reduce_scatter, 4, 64)).method, algorithm::inline_data);
    EXPECT_EQ(select(shape_of(operation::reduce_scatter, 4, 72)).method, algorithm::flat);
    EXPECT_EQ(select(shape_of(operation::alltoall, 4, 64)).method, algorithm::inline_data);
    EXPECT_EQ(select(shape_of(operation::alltoall, 4, 65)).method, algorithm::staged);
    EXPECT_EQ(select(shape_of(operation::barrier, 4, 0), &rules).method, algorithm::barrier_only);
}

constexpr std::size_t slot_bytes = std::size_t{16} << 20;
constexpr std::size_t workspace_bytes = std::size_t{4} << 20;

using nodes = std::vector<std::int32_t>;

/// [rank] its node.
class tuned_calls : public testing::TestWithParam<nodes> {};

operation operation_of(kind what) {
    constexpr std::array<operation, 8> operations{
        operation::bcast,   operation::reduce,    operation::allreduce,      operation::gather,
        operation::scatter, operation::allgather, operation::reduce_scatter, operation::alltoall};
    return operations[static_cast<std::size_t>(what)];
}

void run_calls(collectives &all, group::group &world, test::storage &memory,
               const algorithm_row &row) {
    std::uint64_t number = 0;
    for (std::size_t const count : {1UL, 3UL, 31UL, 1000UL, 5000UL, 20000UL, 70000UL}) {
        for (int what = 0; what < static_cast<int>(test::num_without_scans); ++what) {
            trial t;
            t.number = ++number * 1000;
            t.what = static_cast<kind>(what);
            t.type = number % 2 == 0 ? OMPX_DOUBLE : OMPX_INT32;
            t.count = count;
            t.root = static_cast<int>(number % world.size());
            t.in_place = number % 5 == 0;
            bool const has_space =
                trial_buffers::storage_bytes(t, world.size()) <= slot_bytes - workspace_bytes - 64;
            if (operation_of(t.what) != row.what || !has_space) {
                continue;
            }
            trial_buffers const buffers(t, world.size(), world.self().index(),
                                        memory.at(number % 3 == 0));
            status const ran = all.run(world, test::request_of(t, buffers));
            ASSERT_TRUE(ran.ok()) << to_string(t) << ": " << ran.failure().message();
            buffers.check();
        }
    }
}

// A call that cannot take the algorithm has to be right as well.
TEST_P(tuned_calls, match_the_reference_with_every_algorithm) {
    auto const num_ranks = static_cast<int>(GetParam().size());
    test::thread_groups job(std::make_unique<test::thread_ranks>(num_ranks, slot_bytes),
                            workspace_bytes, GetParam());
    for (algorithm_row const &row : algorithm_rows()) {
        std::string const line = std::string(short_name_of(row.what)) + " " + name_of(row.level) +
                                 " " + name_of(row.method);
        SCOPED_TRACE(line);
        tuning_rules const rules = parsed(line + (row.min_chunk_bytes == 0 ? "" : " chunk=20000"));
        job.run([&](world_rank self) {
            options how = test::options_for(job);
            how.source = &rules;
            collectives all(how);
            test::storage memory(job, self, workspace_bytes);
            run_calls(all, job.registry(self).world(), memory, row);
        });
        if (HasFailure()) {
            return;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(layouts, tuned_calls,
                         testing::Values(nodes{0}, nodes{0, 0}, nodes{0, 0, 0, 0, 0}, nodes{0, 1},
                                         nodes{0, 1, 2, 3, 4}, nodes{0, 0, 1, 1, 2, 2},
                                         nodes{0, 1, 0, 1}, nodes{0, 0, 0, 1, 2, 2}));

} // namespace
} // namespace diomp::coll
