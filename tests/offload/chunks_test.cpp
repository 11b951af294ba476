// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/chunks.h"

#include <gtest/gtest.h>

#include <vector>

using namespace diomp;
using offload::chunk;
using offload::chunk_bytes;

namespace {

TEST(chunks, runs_of_any_length_are_packed_without_gaps) {
    std::vector<rma::run> const runs{{0, 100, chunk_bytes + 5000}, {9000000, 8000000, 64}};
    auto const batches = offload::pack(runs, 16);
    ASSERT_EQ(batches.size(), 2u);
    EXPECT_EQ(batches[0].nbytes, chunk_bytes - 16);
    EXPECT_EQ(batches[0].nbytes + batches[1].nbytes, chunk_bytes + 5064);
    auto const local = batches[1].to_local(32);
    ASSERT_EQ(local.size(), 2u);
    EXPECT_EQ(local[0].remote, 32u);
    EXPECT_EQ(local[0].local, 100 + batches[0].nbytes);
    EXPECT_EQ(local[1].remote, 32 + local[0].nbytes);
    auto const remote = batches[1].to_remote(0);
    EXPECT_EQ(remote[1].remote, 9000000u);
    EXPECT_EQ(remote[1].local, remote[0].nbytes);
}

TEST(chunks, chunks_in_flight_are_waited_for_after_an_error) {
    std::vector<std::byte> buffer(2 * chunk_bytes);
    int num_started = 0;
    int num_waited = 0;
    status const ended = offload::run_pipeline(
        buffer.data(), 2, 5 * chunk_bytes,
        [&](const chunk &next) -> result<int> {
            EXPECT_EQ(next.slot, buffer.data() + (next.begin / chunk_bytes % 2) * chunk_bytes);
            return num_started < 3 ? result<int>(num_started++)
                                   : error(OMPX_ERR_SYSTEM, "the fourth chunk fails");
        },
        [&](const chunk &, int handle) {
            EXPECT_EQ(handle, num_waited++);
            return status();
        },
        [](const chunk &) { return status(); });
    EXPECT_FALSE(ended);
    EXPECT_EQ(num_waited, 3);
}

} // namespace
