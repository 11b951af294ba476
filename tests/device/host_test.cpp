// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The host backend, and what all backends have in common.
#include "device/device.h"
#include "device/numa.h"
#include "device/stream_pool.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>

namespace diomp::device {
namespace {

using ::testing::HasSubstr;

class host_test : public ::testing::Test {
protected:
    void SetUp() override {
        auto made = create_host({{first_.data(), first_.size()}, {second_.data(), second_.size()}});
        ASSERT_TRUE(made.ok());
        backend_ = made.take();
    }

    static constexpr device_id zero = device_id(0);
    static constexpr device_id one = device_id(1);
    alignas(64) std::array<std::byte, 4096> first_{};
    alignas(64) std::array<std::byte, 8192> second_{};
    std::unique_ptr<backend> backend_;
};

TEST_F(host_test, reservation_lies_where_the_caller_said_and_grows) {
    auto reserved = backend_->reserve(one, 8000);
    ASSERT_TRUE(reserved.ok());
    memory &segment = *reserved.value();
    EXPECT_EQ(segment.base(), second_.data());
    EXPECT_EQ(segment.reserved_bytes(), 8000U);
    EXPECT_EQ(segment.committed_bytes(), 0U);
    ASSERT_TRUE(segment.commit(0, 100).ok());
    EXPECT_EQ(segment.committed_bytes(), 100U);
    ASSERT_TRUE(segment.commit(0, 50).ok());
    EXPECT_EQ(segment.committed_bytes(), 100U);
    auto const outcome = segment.commit(0, 8001);
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.failure().code(), OMPX_ERR_RANGE);
    EXPECT_EQ(segment.committed_bytes(), 100U);
    EXPECT_EQ(backend_->describe(one).value().free_bytes, 8192U - 100U);
}

TEST_F(host_test, range_is_reserved_once_at_a_time) {
    {
        auto reserved = backend_->reserve(zero, 4096);
        ASSERT_TRUE(reserved.ok());
        auto const again = backend_->reserve(zero, 64);
        ASSERT_FALSE(again.ok());
        EXPECT_EQ(again.failure().code(), OMPX_ERR_NOMEM);
        EXPECT_TRUE(backend_->reserve(one, 64).ok());
    }
    EXPECT_TRUE(backend_->reserve(zero, 4096).ok());
    EXPECT_EQ(backend_->reserve(zero, 4097).failure().code(), OMPX_ERR_NOMEM);
}

TEST_F(host_test, copies_are_complete_on_return) {
    auto made = backend_->make_queue(zero);
    ASSERT_TRUE(made.ok());
    std::fill(first_.begin(), first_.end(), std::byte{7});
    ASSERT_TRUE(made.value()->copy(second_.data() + 1, first_.data(), 4000).ok());
    EXPECT_EQ(second_[0], std::byte{0});
    EXPECT_EQ(std::count(second_.begin(), second_.end(), std::byte{7}), 4000);
    EXPECT_TRUE(made.value()->is_idle().value());
    EXPECT_TRUE(made.value()->wait().ok());
    ASSERT_TRUE(made.value()->copy(nullptr, nullptr, 0).ok());
}

TEST_F(host_test, addresses_have_owners) {
    EXPECT_EQ(backend_->owner_of(first_.data()), zero);
    EXPECT_EQ(backend_->owner_of(first_.data() + 4095), zero);
    EXPECT_EQ(backend_->owner_of(second_.data() + 8191), one);
    EXPECT_EQ(backend_->owner_of(&backend_), std::nullopt);
    EXPECT_EQ(backend_->owner_of(nullptr), std::nullopt);
}

TEST_F(host_test, every_device_reaches_every_other_but_nothing_is_shared) {
    EXPECT_TRUE(backend_->can_access(zero, one).value());
    EXPECT_TRUE(backend_->can_access(one, one).value());
    auto reserved = backend_->reserve(zero, 4096);
    ASSERT_TRUE(reserved.ok());
    EXPECT_EQ(reserved.value()->share(0, memory::all_extents).failure().code(),
              OMPX_ERR_UNSUPPORTED);
    EXPECT_EQ(backend_->open_shared(zero, {}).failure().code(), OMPX_ERR_UNSUPPORTED);
}

TEST_F(host_test, description) {
    auto const found = backend_->describe(zero);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found.value().total_bytes, 4096U);
    EXPECT_TRUE(found.value().host_loadable);
    EXPECT_TRUE(found.value().memory_grows);
    EXPECT_FALSE(found.value().memory_shares);
    EXPECT_EQ(found.value().numa_node, -1);
}

TEST_F(host_test, pinned_memory_moves_and_is_freed_once) {
    auto allocated = backend_->allocate_pinned(100);
    ASSERT_TRUE(allocated.ok());
    std::byte *const base = allocated.value().base();
    ASSERT_NE(base, nullptr);
    pinned_memory moved = allocated.take();
    EXPECT_EQ(moved.base(), base);
    EXPECT_EQ(moved.size_bytes(), 100U);
    EXPECT_EQ(allocated.value().base(), nullptr); // NOLINT(bugprone-use-after-move): that it is so
    int freed = 0;
    {
        pinned_memory first(&freed, 4, [](void *count) { ++*static_cast<int *>(count); });
        pinned_memory const second = std::move(first);
        EXPECT_EQ(freed, 0);
    }
    EXPECT_EQ(freed, 1);
}

TEST_F(host_test, unknown_devices_are_errors_of_every_call) {
    for (device_id const bad : {device_id(2), device_id(-1)}) {
        EXPECT_EQ(backend_->describe(bad).failure().code(), OMPX_ERR_ARG);
        EXPECT_EQ(backend_->reserve(bad, 64).failure().code(), OMPX_ERR_ARG);
        EXPECT_EQ(backend_->open_shared(bad, {}).failure().code(), OMPX_ERR_ARG);
        EXPECT_EQ(backend_->can_access(zero, bad).failure().code(), OMPX_ERR_ARG);
        EXPECT_EQ(backend_->can_access(bad, zero).failure().code(), OMPX_ERR_ARG);
        EXPECT_EQ(backend_->make_queue(bad).failure().code(), OMPX_ERR_ARG);
    }
    EXPECT_THAT(backend_->describe(device_id(2)).failure().message(),
                HasSubstr("host has devices 0 to 1"));
}

TEST_F(host_test, reservation_outlives_its_backend) {
    auto reserved = backend_->reserve(zero, 4096);
    ASSERT_TRUE(reserved.ok());
    backend_.reset();
    ASSERT_TRUE(reserved.value()->commit(0, 4096).ok());
    EXPECT_EQ(reserved.value()->committed_bytes(), 4096U);
}

TEST_F(host_test, stream_pool_works_on_it) {
    stream_pool pool(*backend_, {.max_active = 2});
    for (std::size_t i = 0; i < 64; ++i) {
        std::byte const value{static_cast<unsigned char>(i + 1)};
        auto const started = pool.copy(device_id(static_cast<int>(i % 2)), &first_[i], &value, 1);
        ASSERT_TRUE(started.ok());
        ASSERT_TRUE(pool.is_done(started.value()).value());
        ASSERT_EQ(first_[i], value);
    }
    EXPECT_EQ(pool.counted().created, 2U);
    EXPECT_EQ(pool.counted().half_synchronisations, 0U);
}

TEST(create_host, wants_ranges_with_memory) {
    EXPECT_EQ(create_host({}).failure().code(), OMPX_ERR_ARG);
    int room = 0;
    EXPECT_EQ(create_host({{&room, 0}}).failure().code(), OMPX_ERR_ARG);
    EXPECT_EQ(create_host({{nullptr, 4}}).failure().code(), OMPX_ERR_ARG);
}

TEST(numa, device_that_is_not_there_has_no_node) {
    EXPECT_EQ(numa_node_of("FFFF:FF:00.0"), -1);
    EXPECT_EQ(numa_node_of(""), -1);
}

} // namespace
} // namespace diomp::device
