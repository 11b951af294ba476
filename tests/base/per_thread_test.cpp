// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/per_thread.h"
#include "base/sanitizer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#if DIOMP_ADDRESS_SANITIZER
#include <sanitizer/lsan_interface.h>
#endif

namespace diomp {
namespace {

std::atomic<int> g_num_alive{0};

struct counted {
    counted() { ++g_num_alive; }
    ~counted() { --g_num_alive; }
    counted(const counted &) = delete;
    counted &operator=(const counted &) = delete;
    int value = 0;
};

TEST(PerThread, EachThreadHasItsOwnWhichEndsWithIt) {
    int const before = g_num_alive.load();
    per_thread<counted>::get().value = 1;
    std::thread([] {
        EXPECT_EQ(per_thread<counted>::get().value, 0);
        per_thread<counted>::get().value = 2;
        EXPECT_EQ(per_thread<counted>::get().value, 2);
    }).join();
    EXPECT_EQ(per_thread<counted>::get().value, 1);
    EXPECT_EQ(g_num_alive.load(), before + 1);
}

struct one_tag {};
struct other_tag {};

TEST(PerThread, TagsDistinguishObjectsOfOneType) {
    per_thread<std::string, one_tag>::get() = "one";
    per_thread<std::string, other_tag>::get() = "other";
    EXPECT_EQ((per_thread<std::string, one_tag>::get()), "one");
}

std::string g_found;

/// Destroyed after the objects of its thread that were made later.
struct last_user {
    ~last_user() {
        per_thread<std::string>::get() += " again";
        g_found = per_thread<std::string>::get();
#if DIOMP_ADDRESS_SANITIZER
        __lsan_ignore_object(&per_thread<std::string>::get()); // by design until the process ends
#endif
    }
};

TEST(PerThread, AnObjectIsMadeAnewWhenTheThreadsVariablesAreGone) {
    std::thread([] {
        [[maybe_unused]] thread_local last_user user;
        per_thread<std::string>::get() = "a text that is too long for the string object itself";
    }).join();
    EXPECT_EQ(g_found, " again");
}

} // namespace
} // namespace diomp
