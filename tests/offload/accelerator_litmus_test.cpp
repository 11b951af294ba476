// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Litmus tests of the order of memory, on the stand-in: the roles are threads of the test that run
// the code of GPUs in regions, by loads and stores, by requests, or both.
#include "offload/accelerated_region.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace {

#include "offload/litmus_device.h"
#include "offload/litmus_ranks.h"

using namespace accelerated;

std::uint64_t *g_memory; ///< symmetric memory of device 0

void roles_of_this_rank(const litmus_batch *of, litmus_seen *seen, int *status) {
    region const inside;
    std::vector<std::thread> threads;
    for (int role = 0; role < of->num_roles; ++role) {
        if (of->rank_of[role] == me()) {
            threads.emplace_back([&, role] {
                status[role] = litmus_role(inside.own(), of, role, g_memory, &seen[role]);
            });
        }
    }
    for (std::thread &each : threads) {
        each.join();
    }
}

TEST(litmus, no_forbidden_outcome) {
    constexpr double seconds = 1.5;
    on_device<std::uint64_t> const memory(LITMUS_WORDS);
    std::fill_n(memory.at(), static_cast<std::size_t>(LITMUS_WORDS), 0U);
    g_memory = memory.at();
    meet();
    std::string text(600, '\0');
    EXPECT_EQ(litmus_run(roles_of_this_rank, seconds, text.data(), text.size()), 0) << text.c_str();
}

} // namespace
