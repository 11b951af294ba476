// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/launch.h"
#include "launch/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <vector>

namespace diomp::launch {
namespace {

using nodes = std::vector<std::vector<int>>;

struct tables {
    std::vector<std::int32_t> nodes;
    std::vector<std::int32_t> locals;
    bool operator==(const tables &) const = default;
};

tables filled(const placement &from) {
    auto const count = static_cast<std::size_t>(from.num_ranks());
    tables made{std::vector<std::int32_t>(count, -1), std::vector<std::int32_t>(count, -1)};
    from.fill(made.nodes, made.locals);
    return made;
}

tables expected(const nodes &all) {
    std::size_t count = 0;
    for (auto const &ranks : all) {
        count += ranks.size();
    }
    tables made{std::vector<std::int32_t>(count, -1), std::vector<std::int32_t>(count, -1)};
    for (std::size_t node = 0; node < all.size(); ++node) {
        for (std::size_t local = 0; local < all[node].size(); ++local) {
            auto const rank = static_cast<std::size_t>(all[node][local]);
            made.nodes[rank] = static_cast<std::int32_t>(node);
            made.locals[rank] = static_cast<std::int32_t>(local);
        }
    }
    return made;
}

/// Nodes of `per_node` consecutive ranks; the last may have fewer.
nodes blocks(int num_ranks, int per_node) {
    nodes all;
    for (int rank = 0; rank < num_ranks; ++rank) {
        if (rank % per_node == 0) {
            all.emplace_back();
        }
        all.back().push_back(rank);
    }
    return all;
}

nodes cyclic(int num_ranks, int num_nodes) {
    nodes all(static_cast<std::size_t>(num_nodes));
    for (int rank = 0; rank < num_ranks; ++rank) {
        all[static_cast<std::size_t>(rank % num_nodes)].push_back(rank);
    }
    return all;
}

/// Any distribution, with nodes in the order of their lowest ranks.
nodes shuffled(int num_ranks, int num_nodes) {
    std::mt19937 random(7);
    std::vector<int> ranks(static_cast<std::size_t>(num_ranks));
    std::iota(ranks.begin(), ranks.end(), 0);
    nodes all(static_cast<std::size_t>(num_nodes));
    for (int const rank : ranks) {
        all[random() % all.size()].push_back(rank);
    }
    std::erase_if(all, [](auto const &each) { return each.empty(); });
    std::ranges::sort(all, {}, [](auto const &each) { return each.front(); });
    return all;
}

void expect_round_trip(int num_ranks, const nodes &all, std::size_t max_text) {
    auto const made = placement::from_nodes(num_ranks, all);
    ASSERT_TRUE(made.ok()) << made.failure().message();
    EXPECT_EQ(made.value().num_nodes(), static_cast<int>(all.size()));
    EXPECT_EQ(filled(made.value()), expected(all));
    std::string const text = made.value().to_text();
    EXPECT_LE(text.size(), max_text);
    auto const read = placement::from_text(num_ranks, text);
    ASSERT_TRUE(read.ok()) << read.failure().message();
    EXPECT_EQ(filled(read.value()), expected(all));
    EXPECT_EQ(read.value().num_nodes(), made.value().num_nodes());
    EXPECT_EQ(read.value().max_per_node(), made.value().max_per_node());
}

TEST(placement, one_node) {
    EXPECT_EQ(filled(placement(3)), expected({{0, 1, 2}}));
    EXPECT_EQ(placement(3).max_per_node(), 3);
    EXPECT_EQ(placement(3).num_nodes(), 1);
}

TEST(placement, regular_jobs_have_short_texts_at_any_size) {
    expect_round_trip(100'032, blocks(100'032, 64), 32);
    expect_round_trip(100'000, blocks(100'000, 64), 32);
    expect_round_trip(100'033, blocks(100'033, 64), 32);
    expect_round_trip(4096, blocks(4096, 1), 32);
    expect_round_trip(4096, cyclic(4096, 64), 2000);
    expect_round_trip(1, blocks(1, 1), 32);
}

TEST(placement, irregular_jobs) {
    expect_round_trip(7, {{0, 1, 2, 3}, {4}, {5, 6}}, 100);
    expect_round_trip(6, {{0, 3, 5}, {1, 2}, {4}}, 100);
    expect_round_trip(5000, shuffled(5000, 70), 5000 * 16);
}

TEST(placement, has_as_many_places_as_the_largest_node) {
    auto const made = placement::from_nodes(8, nodes{{0, 1}, {2, 3, 4, 5, 6}, {7}});
    ASSERT_TRUE(made.ok());
    EXPECT_EQ(made.value().max_per_node(), 5);
    EXPECT_EQ(made.value().num_nodes(), 3);
}

TEST(placement, refuses_ranks_on_two_nodes_or_none) {
    EXPECT_FALSE(placement::from_nodes(3, nodes{{0, 1}, {1, 2}}).ok());
    EXPECT_FALSE(placement::from_nodes(3, nodes{{0}, {2}}).ok());
}

TEST(placement, refuses_malformed_texts) {
    for (const char *const text :
         {"", "4", "4:0:0", "4:0:0:4;", "4:0:0:5", "3:0:0:3", "5:0:0:5", "4:x:0:4", "4:-1:0:4",
          "4:0:0:4:1:1:1:1", "4:0:0:4x", "2:0:0:2;2:9:0:2", "4:0:9:0", "0:0:0:0;4:0:0:4",
          "2147483647:0:0:0", "4:2147483647:0:0", "99999999999:0:0:1"}) {
        EXPECT_FALSE(placement::from_text(4, text).ok()) << text;
    }
    EXPECT_TRUE(placement::from_text(4, "4:0:0:4").ok());
}

/// The launcher of all ranks of a job: fences do nothing, and it can be any rank.
class any_rank final : public launcher {
public:
    explicit any_rank(int num_ranks) { info_.size = num_ranks; }
    void become(const std::vector<int> &node, std::size_t local) {
        info_.local_ranks.clear();
        for (int const rank : node) {
            info_.local_ranks.emplace_back(rank);
        }
        info_.rank = info_.local_ranks[local];
        info_.local = local_rank{static_cast<int>(local)};
        info_.local_size = static_cast<int>(node.size());
    }
    const job_info &info() const override { return info_; }
    status put(std::string_view key, std::string_view value) override {
        longest = std::max(longest, value.size());
        values_[{info_.rank.value(), std::string(key)}] = value;
        return {};
    }
    result<std::string> get(world_rank owner, std::string_view key) override {
        ++num_gets;
        auto const found = values_.find({owner.value(), std::string(key)});
        return found == values_.end() ? result<std::string>(error(OMPX_ERR_STATE, "not published"))
                                      : result<std::string>(found->second);
    }
    status fence() override { return {}; }
    status finalize() override { return {}; }
    void abort(int, std::string_view) noexcept override {}
    int watch_fd() const override { return -1; }
    const char *name() const override { return "test"; }

    int num_gets = 0;
    std::size_t longest = 0;

private:
    job_info info_;
    std::map<std::pair<int, std::string>, std::string> values_;
};

void publish_all(any_rank &job, const nodes &all, const std::string &version = "1") {
    for (auto const &node : all) {
        for (std::size_t local = 0; local < node.size(); ++local) {
            job.become(node, local);
            ASSERT_TRUE(publish_node(job, version).ok());
        }
    }
    job.become(all.front(), 0);
}

TEST(placement, takes_a_look_up_per_node_at_rank_0_and_one_at_the_others) {
    constexpr int num_ranks = 100'000;
    nodes const all = blocks(num_ranks, 64);
    any_rank job(num_ranks);
    publish_all(job, all);
    auto const collected = collect_placement(job, "1");
    ASSERT_TRUE(collected.ok()) << collected.failure().message();
    EXPECT_EQ(job.num_gets, static_cast<int>(all.size()));
    ASSERT_TRUE(publish_placement(job, collected.value()).ok());
    job.num_gets = 0;
    job.become(all.back(), 3);
    auto const fetched = fetch_placement(job);
    ASSERT_TRUE(fetched.ok()) << fetched.failure().message();
    EXPECT_EQ(job.num_gets, 1);
    EXPECT_EQ(filled(fetched.value()), expected(all));
    EXPECT_EQ(fetched.value().max_per_node(), 64);
}

TEST(placement, long_texts_are_cut_into_values) {
    constexpr int num_ranks = 20'000;
    nodes const all = shuffled(num_ranks, 400);
    any_rank job(num_ranks);
    publish_all(job, all);
    auto const collected = collect_placement(job, "1");
    ASSERT_TRUE(collected.ok()) << collected.failure().message();
    job.longest = 0;
    ASSERT_TRUE(publish_placement(job, collected.value()).ok());
    EXPECT_LE(job.longest, 4000U);
    auto const fetched = fetch_placement(job);
    ASSERT_TRUE(fetched.ok()) << fetched.failure().message();
    EXPECT_EQ(filled(fetched.value()), expected(all));
}

TEST(placement, names_a_rank_with_another_version) {
    any_rank job(4);
    nodes const all{{0, 1}, {2, 3}};
    publish_all(job, all);
    job.become(all[1], 0);
    ASSERT_TRUE(publish_node(job, "2").ok());
    job.become(all[0], 0);
    auto const collected = collect_placement(job, "1");
    ASSERT_FALSE(collected.ok());
    EXPECT_EQ(collected.failure().code(), OMPX_ERR_UNSUPPORTED);
    EXPECT_NE(collected.failure().message().find("rank 2 has loaded version 2"), std::string::npos);
}

TEST(placement, a_rank_on_two_nodes_is_an_error) {
    any_rank job(4);
    publish_all(job, {{0, 1}, {1, 2, 3}});
    job.become({2, 3}, 0);
    ASSERT_TRUE(publish_node(job, "1").ok());
    job.become({0, 1, 2}, 0);
    ASSERT_TRUE(publish_node(job, "1").ok());
    job.become({3, 2}, 0); // not ascending
    ASSERT_TRUE(publish_node(job, "1").ok());
    job.become({0, 1, 2}, 0);
    EXPECT_FALSE(collect_placement(job, "1").ok());
}

} // namespace
} // namespace diomp::launch
