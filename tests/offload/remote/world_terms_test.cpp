// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/remote/world.h"
#include "offload/remote/world_terms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace diomp::offload::remote {
namespace {

device_description device(const char *node, std::uint64_t bytes, const char *kind = "cpu") {
    device_description made;
    made.identity.node = node;
    made.memory_bytes = bytes;
    made.kind = kind;
    made.has_rdma_adapter = true;
    return made;
}

world_terms terms(const char *node, std::initializer_list<device_description> devices) {
    world_terms made;
    made.network = node; // any text
    made.node = node;
    for (device_description const &each : devices) {
        made.add(each);
    }
    return made;
}

client_exchange replying(std::vector<world_terms> others) {
    return [others](const std::string &) -> result<std::vector<std::string>> {
        std::vector<std::string> encoded;
        for (world_terms const &each : others) {
            encoded.push_back(encode(each));
        }
        return encoded;
    };
}

TEST(world_terms, of_devices) {
    world_terms const own =
        terms("a", {device("a", 100), device("a", 50, "cuda"), device("a", 70)});
    EXPECT_EQ(own.num_devices, 3);
    EXPECT_EQ(own.is_gpu, (std::vector{false, true, false}));
    EXPECT_EQ(own.least_gpu_bytes, 0U) << "unknown";
    EXPECT_EQ(own.can_call, (std::vector{true, true, true}));
    EXPECT_EQ(terms("a", {device("a", 1, "host")}).can_call, std::vector{false});
    EXPECT_EQ(own.memory_bytes, 100U);
    EXPECT_EQ(own.least_bytes, 50U);
    EXPECT_TRUE(own.is_on_one_host && own.have_adapters);
    EXPECT_FALSE(terms("a", {device("b", 1)}).is_on_one_host);
    auto const back = decode_terms(encode(own));
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(back.value(), own);
    EXPECT_FALSE(decode_terms(encode(own) + "x").ok());
    EXPECT_FALSE(decode_terms("").ok());
}

TEST(world_terms, are_combined_alike_on_all_ranks) {
    std::vector<world_terms> const all{terms("a", {device("a", 100), device("a", 90)}),
                                       terms("a", {}), terms("a", {device("a", 80)})};
    for (int rank = 0; rank < 3; ++rank) {
        std::vector<world_terms> others = all;
        others.erase(others.begin() + rank);
        auto const agreed = agree(all[static_cast<std::size_t>(rank)], rank, replying(others));
        ASSERT_TRUE(agreed.ok());
        EXPECT_EQ(agreed.value().all.network, "a");
        EXPECT_EQ(agreed.value().all.num_devices, 3);
        EXPECT_EQ(agreed.value().num_speaking, 0) << "rank 1 has no device";
        EXPECT_EQ(agreed.value().all.memory_bytes, 100U);
        EXPECT_EQ(agreed.value().all.least_bytes, 80U);
        EXPECT_TRUE(agreed.value().all.is_on_one_host);
        EXPECT_EQ(agreed.value().num_devices, (std::vector<int>{2, 0, 1}));
    }
}

TEST(world_terms, what_one_rank_lacks_all_lack) {
    world_terms const near = terms("a", {device("a", 1)});
    world_terms away = terms("b", {device("b", 1)});
    away.encrypts_data = true;
    away.have_adapters = false;
    away.node_size = 2;
    auto const first = agree(near, 0, replying({away}));
    auto const second = agree(away, 1, replying({near}));
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(first.value().all.network, "a");
    EXPECT_EQ(second.value().all.network, "a") << "that of rank 0";
    for (auto const *each : {&first.value().all, &second.value().all}) {
        EXPECT_EQ(each->node_size, 0) << "that of rank 0";
        EXPECT_TRUE(each->encrypts_data);
        EXPECT_FALSE(each->have_adapters);
        EXPECT_FALSE(each->is_on_one_host);
    }
}

TEST(world_terms, calls_need_devices_of_one_kind_on_all_clients) {
    auto const of = [](std::initializer_list<const char *> kinds) {
        world_terms made = terms("a", {});
        for (char const *const kind : kinds) {
            made.add(device("a", 1, kind));
        }
        return made;
    };
    auto const count = [](const std::vector<world_terms> &all) {
        std::vector<int> found;
        for (std::size_t rank = 0; rank < all.size(); ++rank) {
            std::vector<world_terms> others = all;
            others.erase(others.begin() + static_cast<std::ptrdiff_t>(rank));
            auto const agreed = agree(all[rank], static_cast<int>(rank), replying(others));
            EXPECT_TRUE(agreed.ok());
            found.push_back(agreed.ok() ? agreed.value().num_speaking : -1);
        }
        EXPECT_EQ(std::ranges::count(found, found[0]), std::ssize(found));
        return found[0];
    };
    EXPECT_EQ(count({of({"cpu", "cuda", "cpu"}), of({"cpu", "cuda", "cpu"})}), 3);
    EXPECT_EQ(count({of({"cuda", "cuda"}), of({"cuda", "amdgpu"}), of({"cuda"})}), 1);
    EXPECT_EQ(count({of({"cpu", "cuda"}), of({"cpu", "cpu"}), of({"cpu", "cuda"})}), 1);
    EXPECT_EQ(count({of({"cuda"}), of({"cpu"})}), 0);
    EXPECT_EQ(count({of({"host"}), of({"host"})}), 0) << "memory that its plugin emulates";
}

TEST(world_terms, the_smallest_gpu_counts) {
    auto const with_gpu = [](std::uint64_t bytes) {
        device_description gpu = device("a", 100, "cuda");
        gpu.own_memory_bytes = bytes;
        return terms("a", {gpu, device("a", 50)});
    };
    world_terms const own = with_gpu(3000);
    EXPECT_EQ(own.least_gpu_bytes, 3000U);
    auto const agreed = agree(own, 0, replying({with_gpu(2000), terms("a", {device("a", 10)})}));
    ASSERT_TRUE(agreed.ok());
    EXPECT_EQ(agreed.value().all.least_gpu_bytes, 2000U);
    EXPECT_EQ(agreed.value().is_gpu,
              (std::vector<std::vector<bool>>{{true, false}, {true, false}, {false}}));
}

TEST(loss_of_a_session, is_told_without_ranks_that_the_program_does_not_know) {
    EXPECT_EQ(loss_without_rank(world_rank(2), "rank 2 on a is lost: no answer; outstanding: 0"),
              "its session on a is lost: no answer; outstanding: 0");
    for (const char *const other : {"rank 1 on a is lost: no answer", "the network has failed"}) {
        EXPECT_EQ(loss_without_rank(world_rank(2), other), other);
    }
}

} // namespace
} // namespace diomp::offload::remote
