// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// main() of the contract tests: like tests/support/rank_main.cpp, but without a runtime.
#include "transport/world.h"

#include <cstdio>

namespace {

/// Ranks are out of step after a failure; going on would hang.
class end_job_on_failure : public testing::EmptyTestEventListener {
    void OnTestPartResult(const testing::TestPartResult &part) override {
        if (part.failed()) {
            std::fprintf(stderr, "rank %d: %s:%d: %s\n", diomp_test::ours().rank(),
                         part.file_name() == nullptr ? "?" : part.file_name(), part.line_number(),
                         part.message());
        }
    }
    void OnTestEnd(const testing::TestInfo &test) override {
        if (test.result()->Failed()) {
            diomp_test::ours().abort(std::string(test.name()) + " failed");
        }
        diomp_test::ours().expect_no_message();
    }
};

} // namespace

int main(int argc, char **argv) {
    testing::InitGoogleTest(&argc, argv);
    diomp_test::world world;
    auto &listeners = testing::UnitTest::GetInstance()->listeners();
    if (world.rank() > 0) {
        delete listeners.Release(listeners.default_result_printer());
    }
    listeners.Append(std::make_unique<end_job_on_failure>().release());
    int const failed = RUN_ALL_TESTS();
    world.finish();
    return failed;
}
