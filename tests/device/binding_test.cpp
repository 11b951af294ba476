// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which rank gets which devices: the rules of device/binding.h, and what the kernel says of nodes.
#include "device/binding.h"
#include "device/numa.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <pthread.h>
#include <sched.h>
#include <string>
#include <thread>

namespace diomp::device {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using row = std::vector<int>;

constexpr int unknown = -1;

int in_a_line(int from, int to) { return 10 + 10 * std::abs(from - to); }

std::vector<row> bind(const std::vector<int> &device_nodes, const std::vector<int> &rank_nodes,
                      int each = 1) {
    auto bound = bind_devices({device_nodes, rank_nodes, each, in_a_line});
    EXPECT_TRUE(bound.ok());
    return bound.ok() ? bound.take() : std::vector<row>{};
}

TEST(binding, one_device_each_in_order_where_nothing_is_known) {
    EXPECT_THAT(bind({unknown, unknown, unknown, unknown}, {unknown, unknown}),
                ElementsAre(row{0}, row{1}));
    EXPECT_THAT(bind({0, 0}, {0, 0}), ElementsAre(row{0}, row{1}));
}

TEST(binding, the_nearest_device_wins_over_the_lowest) {
    EXPECT_THAT(bind({1, 1, 0, 0}, {0, 0, 1, 1}), ElementsAre(row{2}, row{3}, row{0}, row{1}));
    EXPECT_THAT(bind({0, 3}, {2, 1}), ElementsAre(row{1}, row{0}));
}

TEST(binding, a_rank_of_unknown_place_takes_nobodys_near_device) {
    EXPECT_THAT(bind({0, 1}, {unknown, 0}), ElementsAre(row{1}, row{0}));
}

TEST(binding, balance_wins_over_nearness) {
    // All four are next to device 0; two of them have to go to the other.
    EXPECT_THAT(bind({0, 1}, {0, 0, 0, 0}), ElementsAre(row{0}, row{0}, row{1}, row{1}));
    // Five ranks: one device has three, and it is the one that they are next to.
    EXPECT_THAT(bind({0, 1}, {1, 1, 1, 1, 1}), ElementsAre(row{1}, row{1}, row{1}, row{0}, row{0}));
}

TEST(binding, more_ranks_than_devices_share_them) {
    EXPECT_THAT(bind({0, 1}, {0, 0, 1, 1}), ElementsAre(row{0}, row{0}, row{1}, row{1}));
    EXPECT_THAT(bind({unknown, unknown}, {unknown, unknown, unknown}),
                ElementsAre(row{0}, row{1}, row{0}));
}

TEST(binding, several_devices_of_a_rank_are_its_own_and_near) {
    EXPECT_THAT(bind({unknown, unknown, unknown, unknown}, {unknown, unknown}, 2),
                ElementsAre(row({0, 1}), row({2, 3})));
    EXPECT_THAT(bind({0, 1, 0, 1}, {1, 0}, 2), ElementsAre(row({1, 3}), row({0, 2})));
    // The nearest is the first, since it is the rank's default.
    EXPECT_THAT(bind({0, 1}, {1}, 2), ElementsAre(row({1, 0})));
}

TEST(binding, too_few_for_several_each_is_an_error_that_says_what_fits) {
    auto const some = bind_devices({row(5, 0), row(2, 0), 3, in_a_line});
    ASSERT_FALSE(some.ok());
    EXPECT_EQ(some.failure().code(), OMPX_ERR_ARG);
    EXPECT_THAT(some.failure().message(),
                HasSubstr("2 ranks on this node with 3 devices each: 5 devices are here"));
    EXPECT_THAT(some.failure().remedy(), HasSubstr("2 or less"));
    auto const few = bind_devices({row(1, 0), row(1, 0), 2, in_a_line});
    ASSERT_FALSE(few.ok());
    EXPECT_THAT(few.failure().message(), HasSubstr("1 rank on"));
    EXPECT_THAT(few.failure().message(), HasSubstr("1 device is here"));
    EXPECT_THAT(few.failure().remedy(), HasSubstr("(DIOMP_DEVICES_PER_RANK) 1,"));
    EXPECT_FALSE(bind_devices({{}, row(1, 0), 1, in_a_line}).ok());
    EXPECT_FALSE(bind_devices({row(1, 0), row(1, 0), 0, in_a_line}).ok());
}

/// Every shape of small nodes: the balance holds, every rank is served, nothing is shared that need
/// not be.
TEST(binding, every_small_node_is_balanced_and_served) {
    for (int shape = 0; shape < 4 * 4 * 4 * 4 * 4; ++shape) {
        std::vector<int> places; // base 4: three known nodes and the unknown one
        for (int rest = shape; places.size() < 5; rest /= 4) {
            places.push_back(rest % 4 - 1);
        }
        for (std::size_t devices = 1; devices <= 4; ++devices) {
            for (std::size_t ranks = 1; ranks <= 5; ++ranks) {
                std::vector<int> const device_nodes(places.begin(),
                                                    places.begin() + static_cast<long>(devices));
                std::vector<int> const rank_nodes(places.rbegin(),
                                                  places.rbegin() + static_cast<long>(ranks));
                for (std::size_t each = 1; each == 1 || each * ranks <= devices; ++each) {
                    auto const rows = bind(device_nodes, rank_nodes, static_cast<int>(each));
                    ASSERT_EQ(rows.size(), ranks);
                    std::vector<int> loads(devices, 0);
                    for (row const &mine : rows) {
                        ASSERT_EQ(mine.size(), each);
                        for (int const device : mine) {
                            ++loads.at(static_cast<std::size_t>(device));
                        }
                    }
                    auto const [least, most] = std::ranges::minmax(loads);
                    ASSERT_LE(most - least, 1) << shape << ' ' << devices << ' ' << ranks;
                }
            }
        }
    }
}

class numa : public ::testing::Test {
protected:
    void SetUp() override {
        std::string name = ::testing::TempDir() + "diomp-numa-XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        nodes_ = name;
    }
    void TearDown() override { std::filesystem::remove_all(nodes_); }

    void add(int node, const std::string &cpus, const std::string &distances) const {
        std::string const folder = nodes_ + "/node" + std::to_string(node);
        std::filesystem::create_directory(folder);
        std::ofstream(folder + "/cpulist") << cpus << '\n';
        std::ofstream(folder + "/distance") << distances << '\n';
    }

    std::string nodes_;
};

TEST_F(numa, a_thread_belongs_to_the_node_of_all_its_processors) {
    EXPECT_EQ(numa_node_of_thread(nodes_), -1);
    EXPECT_EQ(numa_node_of_thread("/nowhere"), -1);
    add(0, "5000-5003,6000", "10 20");
    add(2, "0-1023", "20 10");
    std::filesystem::create_directory(nodes_ + "/nodes");
    EXPECT_EQ(numa_node_of_thread(nodes_), 2);
    std::string const here = std::to_string(::sched_getcpu());
    add(0, here, "10 20"); // a processor of two nodes stands for two processors
    EXPECT_EQ(numa_node_of_thread(nodes_), -1);
    add(2, "7000", "20 10");
    add(0, "0-1023", "10 20");
    EXPECT_EQ(numa_node_of_thread(nodes_), 0);
}

TEST_F(numa, a_thread_is_bound_to_the_allowed_processors_of_a_node) {
    processor_set const allowed = processors_of_thread();
    int const here = ::sched_getcpu();
    add(0, std::to_string(here) + ",5000-5003", "10 20");
    add(1, "5000", "20 10");
    processor_set const near = processors_of_node(0, allowed, nodes_);
    EXPECT_EQ(std::count(near.begin(), near.end(), true), 1);
    EXPECT_TRUE(near.at(static_cast<std::size_t>(here)));
    processor_set on_thread;
    std::thread bound([&] {
        EXPECT_TRUE(bind_thread(::pthread_self(), near));
        on_thread = processors_of_thread();
    });
    bound.join();
    EXPECT_EQ(on_thread, near);
    EXPECT_EQ(processors_of_thread(), allowed);
    // The rank may not run there, or the node is unknown: nothing changes.
    EXPECT_FALSE(bind_thread(::pthread_self(), processors_of_node(1, allowed, nodes_)));
    EXPECT_FALSE(bind_thread(::pthread_self(), processors_of_node(7, allowed, nodes_)));
    EXPECT_FALSE(bind_thread(::pthread_self(), processors_of_node(-1, allowed, nodes_)));
    EXPECT_EQ(processors_of_thread(), allowed);
}

TEST_F(numa, one_node_is_told_from_several) {
    EXPECT_TRUE(has_one_numa_node("/nowhere"));
    add(1, "0", "10 20");
    std::filesystem::create_directory(nodes_ + "/nodes");
    EXPECT_TRUE(has_one_numa_node(nodes_));
    add(4, "1", "20 10");
    EXPECT_FALSE(has_one_numa_node(nodes_));
}

TEST_F(numa, distances_stand_in_the_order_of_the_nodes_that_are_there) {
    EXPECT_EQ(numa_distance(0, 0, nodes_), 10);
    EXPECT_EQ(numa_distance(0, 1, nodes_), 20);
    add(0, "0", "10 17 33");
    add(2, "1", "17 10 28");
    add(11, "2", "33 28 10");
    EXPECT_EQ(numa_distance(0, 2, nodes_), 17);
    EXPECT_EQ(numa_distance(0, 11, nodes_), 33);
    EXPECT_EQ(numa_distance(11, 2, nodes_), 28);
    EXPECT_EQ(numa_distance(2, 2, nodes_), 10);
    EXPECT_EQ(numa_distance(0, 7, nodes_), 20); // no such node
}

} // namespace
} // namespace diomp::device
