// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/service_queue.h"

#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <vector>

using diomp::offload::service_queue;

namespace {

TEST(service_queue, serves_in_order_once_open) {
    std::vector<int> served;
    std::promise<void> all_served;
    service_queue<int> *to_serve = nullptr;
    service_queue<int> queue("queue-test", false, [&] {
        std::optional<int> next;
        while (to_serve->next(next)) {
            served.push_back(*next);
            if (served.size() == 3) {
                all_served.set_value();
            }
        }
    });
    to_serve = &queue;
    queue.push(1);
    queue.push(2);
    queue.open();
    queue.push(3);
    all_served.get_future().wait();
    queue.stop();
    EXPECT_EQ(served, (std::vector{1, 2, 3}));
    queue.push(4); // ignored
}

TEST(service_queue, returns_nothing_at_once_if_it_may_be_empty) {
    service_queue<int> queue("queue-test", true, [] {});
    std::optional<int> next = 1;
    EXPECT_TRUE(queue.next(next, true));
    EXPECT_FALSE(next);
    queue.stop();
    EXPECT_FALSE(queue.next(next, true));
}

TEST(service_queue, ends_with_items_left) {
    service_queue<int> *to_serve = nullptr;
    service_queue<int> queue("queue-test", false, [&] {
        std::optional<int> next;
        EXPECT_FALSE(to_serve->next(next));
    });
    to_serve = &queue;
    queue.push(1);
    queue.stop();
}

} // namespace
