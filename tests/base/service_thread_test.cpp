// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/service_thread.h"

#include <gmock/gmock.h>

#include <system_error>

namespace diomp {
namespace {

TEST(service_thread, runs_with_signals_blocked) {
    sigset_t blocked;
    sigemptyset(&blocked);
    start_service_thread("test", [&] { pthread_sigmask(SIG_SETMASK, nullptr, &blocked); }).join();
    EXPECT_EQ(sigismember(&blocked, SIGTERM), 1);
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    EXPECT_EQ(sigismember(&blocked, SIGTERM), 0);
}

TEST(service_thread, that_the_system_does_not_start_ends_the_process_with_a_remedy) {
    std::system_error const why(EAGAIN, std::generic_category());
    EXPECT_EXIT(end_without_thread("diomp-test", why), testing::ExitedWithCode(1),
                "no further thread .diomp-test.: Resource temporarily unavailable .*ulimit -u");
}

} // namespace
} // namespace diomp
