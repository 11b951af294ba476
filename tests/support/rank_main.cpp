// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// main() of GoogleTest programs that run on several ranks: every rank runs the same tests in the
// same order. Rank 0 prints as usual, the others only their failures. The first failure on any rank
// ends the job after its test: the ranks are then out of step, and going on would hang in the next
// collective call.
#include "diomp.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>

namespace {

class end_job_on_failure : public testing::EmptyTestEventListener {
    void OnTestEnd(const testing::TestInfo &test) override {
        if (test.result()->Failed()) {
            std::fflush(nullptr);
            ompx_abort(1);
        }
    }
};

class print_failures_only : public testing::EmptyTestEventListener {
public:
    explicit print_failures_only(int rank) : rank_(rank) {}

private:
    // GoogleTest reports a failure under its lock, so it cannot be asked for the name then.
    void OnTestStart(const testing::TestInfo &test) override {
        name_ = std::string(test.test_suite_name()) + "." + test.name();
    }
    void OnTestPartResult(const testing::TestPartResult &part) override {
        if (!part.failed()) {
            return;
        }
        // One call, so that the text stays together among the other ranks' output.
        std::fprintf(stderr, "rank %d: %s: %s:%d: failure\n%s\n", rank_, name_.c_str(),
                     part.file_name() == nullptr ? "?" : part.file_name(), part.line_number(),
                     part.message());
    }

    int rank_;
    std::string name_ = "set-up";
};

} // namespace

int main(int argc, char **argv) {
    testing::InitGoogleTest(&argc, argv);
    int const rank = ompx_rank_num();
    if (rank < 0) {
        std::fprintf(stderr, "ompx_rank_num: %s\n", ompx_status_string(rank));
        return 1;
    }
    auto &listeners = testing::UnitTest::GetInstance()->listeners();
    if (rank > 0) {
        delete listeners.Release(listeners.default_result_printer());
        listeners.Append(std::make_unique<print_failures_only>(rank).release());
    }
    listeners.Append(std::make_unique<end_job_on_failure>().release());
    return RUN_ALL_TESTS();
}
