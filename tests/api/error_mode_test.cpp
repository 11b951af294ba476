// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Errors chosen by call, in a job whose errors end it by default.
#include "diomp.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <string>
#include <thread>

namespace {

int const me = ompx_rank_num();
int const ranks = ompx_num_ranks();

int bad_put() {
    int word = 0;
    return ompx_put(ranks, &word, &word, sizeof(word));
}

TEST(error_mode, the_default_is_to_end_the_job) {
    EXPECT_EQ(ompx_errors_mode(), OMPX_ERRORS_ABORT);
    EXPECT_EQ(ompx_set_errors(OMPX_ERRORS_INHERIT, OMPX_SCOPE_THREAD), OMPX_ERRORS_INHERIT);
    EXPECT_EQ(ompx_set_errors(OMPX_ERRORS_ABORT, OMPX_SCOPE_LIBRARY), OMPX_ERRORS_ABORT);
}

TEST(error_mode, a_thread_gets_null_from_a_failed_allocation) {
    ASSERT_EQ(ompx_set_errors(OMPX_ERRORS_RETURN, OMPX_SCOPE_THREAD), OMPX_ERRORS_INHERIT);
    EXPECT_EQ(ompx_errors_mode(), OMPX_ERRORS_RETURN);
    EXPECT_EQ(ompx_alloc(std::size_t{1} << 46, 0, OMPX_MEM_LOCAL), nullptr);
    EXPECT_THAT(std::string(ompx_last_error()), testing::HasSubstr("ompx_alloc"));
    // Collective: all ranks fail together, and the job goes on.
    EXPECT_EQ(ompx_alloc(std::size_t{1} << 46, 0, OMPX_MEM_SYMMETRIC), nullptr);
    EXPECT_EQ(bad_put(), OMPX_ERR_RANK);
    EXPECT_EQ(ompx_barrier(), 0);
    EXPECT_EQ(ompx_set_errors(OMPX_ERRORS_INHERIT, OMPX_SCOPE_THREAD), OMPX_ERRORS_RETURN);
    EXPECT_EQ(ompx_errors_mode(), OMPX_ERRORS_ABORT);
}

TEST(error_mode, threads_without_a_mode_follow_the_library) {
    ASSERT_EQ(ompx_set_errors(OMPX_ERRORS_RETURN, OMPX_SCOPE_LIBRARY), OMPX_ERRORS_ABORT);
    int status = 0;
    int own = -1;
    std::thread([&] {
        status = bad_put();
        ompx_set_errors(OMPX_ERRORS_ABORT, OMPX_SCOPE_THREAD); // of this thread only
        own = ompx_errors_mode();
    }).join();
    EXPECT_EQ(status, OMPX_ERR_RANK);
    EXPECT_EQ(own, OMPX_ERRORS_ABORT);
    EXPECT_EQ(ompx_errors_mode(), OMPX_ERRORS_RETURN);
    EXPECT_EQ(bad_put(), OMPX_ERR_RANK);
    EXPECT_EQ(ompx_set_errors(OMPX_ERRORS_ABORT, OMPX_SCOPE_LIBRARY), OMPX_ERRORS_RETURN);
}

TEST(error_mode, a_guard_makes_calls_throw) {
    {
        diomp::errors_guard const guard;
        EXPECT_THROW(static_cast<void>(diomp::at(ranks, &ranks).get()), diomp::error);
        {
            diomp::errors_guard const inner(OMPX_ERRORS_ABORT);
            EXPECT_EQ(ompx_errors_mode(), OMPX_ERRORS_ABORT);
        }
        EXPECT_EQ(ompx_errors_mode(), OMPX_ERRORS_RETURN);
    }
    EXPECT_EQ(ompx_errors_mode(), OMPX_ERRORS_ABORT);
}

TEST(error_mode, misuse_is_an_error_and_changes_nothing) {
    diomp::errors_guard const guard;
    EXPECT_EQ(ompx_set_errors(OMPX_ERRORS_INHERIT, OMPX_SCOPE_LIBRARY), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_set_errors(static_cast<ompx_errors_t>(3), OMPX_SCOPE_THREAD), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_set_errors(OMPX_ERRORS_ABORT, static_cast<ompx_scope_t>(2)), OMPX_ERR_ARG);
    EXPECT_THAT(std::string(ompx_last_error()), testing::HasSubstr("ompx_set_errors(mode=0"));
    EXPECT_EQ(ompx_errors_mode(), OMPX_ERRORS_RETURN);
}

TEST(error_mode, a_thread_that_aborts_ends_the_job) {
    if (std::getenv("DIOMP_TEST_ENDS") == nullptr) {
        GTEST_SKIP() << "ends the job";
    }
    if (me == ranks - 1) {
        ompx_set_errors(OMPX_ERRORS_RETURN, OMPX_SCOPE_LIBRARY);
        ompx_set_errors(OMPX_ERRORS_ABORT, OMPX_SCOPE_THREAD);
        bad_put();
        FAIL() << "the thread's own mode ends the job";
    }
    ompx_barrier();
}

} // namespace
