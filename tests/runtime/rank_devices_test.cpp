// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which of OpenMP's device numbers a rank drives, by what libomptarget, the vendors and the other
// ranks of the node say.
#include "runtime/rank_devices.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <map>

namespace diomp::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<openmp_device> host{{"x86_64", 0}, {"x86_64", 1}, {"x86_64", 2}, {"x86_64", 3}};
const std::vector<openmp_device> gpus{{"cuda", 0}, {"cuda", 1}, {"cuda", 2}, {"cuda", 3}};

class choice : public ::testing::Test {
protected:
    result<std::vector<int>> choose(const std::vector<openmp_device> &devices, std::size_t own) {
        return choose_devices(values_, places_, own, devices,
                              [this](const std::string &plugin) -> result<std::vector<int>> {
                                  if (!vendors_.contains(plugin)) {
                                      return error(OMPX_ERR_UNSUPPORTED, "no " + plugin);
                                  }
                                  return vendors_[plugin];
                              });
    }
    std::vector<int> of_rank(const std::vector<openmp_device> &devices, std::size_t own) {
        auto chosen = choose(devices, own);
        EXPECT_TRUE(chosen.ok());
        return chosen.ok() ? chosen.take() : std::vector<int>{};
    }

    settings values_;
    std::vector<rank_locality> places_{4};
    std::map<std::string, std::vector<int>> vendors_;
};

TEST_F(choice, a_program_without_devices_has_none_to_drive) {
    values_.device.per_rank = 9;
    EXPECT_THAT(of_rank({}, 1), IsEmpty());
}

TEST_F(choice, host_devices_are_each_ranks_own) {
    EXPECT_THAT(of_rank(host, 3), ElementsAre(0));
    values_.device.per_rank = 4;
    EXPECT_THAT(of_rank(host, 3), ElementsAre(0, 1, 2, 3));
    values_.device.per_rank = 5;
    auto const none = choose(host, 3);
    ASSERT_FALSE(none.ok());
    EXPECT_THAT(none.failure().message(), HasSubstr("a rank has 4 host devices"));
    EXPECT_THAT(none.failure().remedy(), HasSubstr("from 1 to 4"));
}

TEST_F(choice, gpus_are_divided_among_the_ranks_of_the_node) {
    for (std::size_t rank = 0; rank < 4; ++rank) {
        EXPECT_THAT(of_rank(gpus, rank), ElementsAre(static_cast<int>(rank)));
    }
    places_.resize(2);
    values_.device.per_rank = 2;
    EXPECT_THAT(of_rank(gpus, 1), ElementsAre(2, 3));
    values_.device.per_rank = 3;
    EXPECT_THAT(choose(gpus, 1).failure().message(), HasSubstr("4 devices are here"));
}

TEST_F(choice, distance_counts_where_ranks_and_devices_are_known) {
    vendors_["cuda"] = {1, 1, 0, 0};
    places_ = {{0, ""}, {1, ""}};
    EXPECT_THAT(of_rank(gpus, 0), ElementsAre(2));
    EXPECT_THAT(of_rank(gpus, 1), ElementsAre(0));
    values_.device.numa_nodes = {0, 1}; // the user knows better; of the rest nothing is known
    EXPECT_THAT(of_rank(gpus, 0), ElementsAre(0));
    EXPECT_THAT(of_rank(gpus, 1), ElementsAre(1));
}

TEST_F(choice, gpus_go_before_host_devices_whatever_their_numbers) {
    std::vector<openmp_device> both = host;
    both.push_back({"amdgpu", 1}); // its first is not ready
    both.push_back({"cuda", 0});
    vendors_["amdgpu"] = {0, 1};
    vendors_["cuda"] = {0};
    places_ = {{1, ""}, {1, ""}};
    EXPECT_THAT(of_rank(both, 0), ElementsAre(4));
    EXPECT_THAT(of_rank(both, 1), ElementsAre(5));
}

TEST_F(choice, ranks_that_see_other_devices_divide_them_apart) {
    places_ = {{-1, "A=0,1;"}, {-1, "A=2,3;"}, {-1, "A=0,1;"}, {-1, "A=2,3;"}};
    std::vector<openmp_device> const two{{"cuda", 0}, {"cuda", 1}};
    EXPECT_THAT(of_rank(two, 0), ElementsAre(0));
    EXPECT_THAT(of_rank(two, 1), ElementsAre(0));
    EXPECT_THAT(of_rank(two, 2), ElementsAre(1));
    EXPECT_THAT(of_rank(two, 3), ElementsAre(1));
}

TEST_F(choice, tests_may_share_host_devices) {
    values_.device.numa_nodes = {-1, -1, -1, -1};
    EXPECT_THAT(of_rank(host, 2), ElementsAre(2));
}

TEST(locality, travels_as_text) {
    rank_locality const sent{3, "CUDA_VISIBLE_DEVICES=0,1;"};
    rank_locality const got = locality_from(to_text(sent));
    EXPECT_EQ(got.numa_node, 3);
    EXPECT_EQ(got.visible, sent.visible);
    EXPECT_EQ(locality_from(to_text({})).numa_node, -1);
    EXPECT_EQ(locality_from("").numa_node, -1);
    EXPECT_EQ(locality_from("5x y").numa_node, -1);
}

TEST(locality, names_what_hides_devices) {
    ::setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    ::setenv("ROCR_VISIBLE_DEVICES", "", 1); // hides all: not the same as unset
    EXPECT_EQ(detect_locality().visible, "CUDA_VISIBLE_DEVICES=1;ROCR_VISIBLE_DEVICES=;");
    ::unsetenv("CUDA_VISIBLE_DEVICES");
    ::unsetenv("ROCR_VISIBLE_DEVICES");
    EXPECT_EQ(detect_locality().visible, "");
}

} // namespace
} // namespace diomp::runtime
