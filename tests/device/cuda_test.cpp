// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The CUDA backend against the stand-in driver of fake_cuda.h. At its end every test reads what the
// stand-in complains of and whether everything has been given back.
#include "device/cuda_fixture.h"

namespace diomp::device {
namespace {

using test::cuda_test;
using test::mebibyte;
using ::testing::HasSubstr;

TEST_F(cuda_test, library_that_is_missing_is_named) {
    auto const made = create_cuda({.path = "/nowhere/libcuda.so.1"});
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.failure().code(), OMPX_ERR_UNSUPPORTED);
    EXPECT_THAT(made.failure().message(), HasSubstr("/nowhere/libcuda.so.1"));
    EXPECT_THAT(made.failure().remedy(), HasSubstr("driver"));
}

TEST_F(cuda_test, function_that_is_missing_is_named) {
    auto const made = create_cuda({.path = FAKE_CUDA_LACKING_LIBRARY});
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.failure().code(), OMPX_ERR_UNSUPPORTED);
    EXPECT_THAT(made.failure().message(),
                ::testing::EndsWith("libfake_cuda_lacking.so lacks cuStreamQuery"));
}

TEST_F(cuda_test, no_device_is_an_error_that_says_so) {
    ::setenv("FAKE_CUDA_DEVICES", "0", 1);
    auto const made = create_cuda({.path = FAKE_CUDA_LIBRARY});
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.failure().code(), OMPX_ERR_UNSUPPORTED);
    EXPECT_THAT(made.failure().message(), HasSubstr("no CUDA-capable device is detected"));
    EXPECT_THAT(made.failure().remedy(), HasSubstr("nvidia-smi"));
}

TEST_F(cuda_test, driver_that_does_not_start_is_an_error_with_its_code) {
    ::setenv("FAKE_CUDA_FAIL", "cuInit=999", 1);
    auto const made = create_cuda({.path = FAKE_CUDA_LIBRARY});
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.failure().code(), OMPX_ERR_UNSUPPORTED);
    EXPECT_THAT(made.failure().message(), HasSubstr("unknown CUDA error 999"));
}

TEST_F(cuda_test, nodes_of_all_devices_without_a_backend) {
    auto const nodes = numa_nodes_of_cuda({.path = FAKE_CUDA_LIBRARY});
    ASSERT_TRUE(nodes.ok());
    EXPECT_THAT(nodes.value(), ::testing::ElementsAre(-1, -1)); // no such place on any bus
    EXPECT_EQ(alive(), 0);
    ::setenv("FAKE_CUDA_FAIL", "cuDeviceGetPCIBusId#2=999", 1);
    EXPECT_THAT(numa_nodes_of_cuda({.path = FAKE_CUDA_LIBRARY}).failure().message(),
                HasSubstr("cuDeviceGetPCIBusId"));
    EXPECT_EQ(numa_nodes_of_cuda({.path = "/nowhere"}).failure().code(), OMPX_ERR_UNSUPPORTED);
}

TEST_F(cuda_test, description_leaves_no_context_behind) {
    create();
    EXPECT_EQ(backend_->num_devices(), 2);
    EXPECT_STREQ(backend_->name(), "cuda");
    auto const found = backend_->describe(one);
    ASSERT_TRUE(found.ok());
    properties const &of = found.value();
    EXPECT_EQ(of.name, "Stand-in 1");
    EXPECT_EQ(of.uuid[0], std::byte{0x41});
    EXPECT_EQ(of.uuid[15], std::byte{0x41});
    EXPECT_EQ(of.pci_bus_id, "FFFF:01:00.0");
    EXPECT_EQ(of.numa_node, -1);
    EXPECT_EQ(of.multiprocessors, 8);
    EXPECT_EQ(of.total_bytes, 64 * mebibyte);
    EXPECT_EQ(of.free_bytes, 64 * mebibyte);
    EXPECT_TRUE(of.memory_grows);
    EXPECT_TRUE(of.memory_shares);
    EXPECT_FALSE(of.host_loadable);
    EXPECT_EQ(alive(), 0);
    EXPECT_EQ(backend_->describe(device_id(2)).failure().code(), OMPX_ERR_ARG);
}

TEST_F(cuda_test, identity_is_told_without_a_context) {
    create();
    auto const described = backend_->describe(one);
    ::setenv("FAKE_CUDA_FAIL", "cuDevicePrimaryCtxRetain=999", 1);
    auto const found = backend_->uuid_of(one);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found.value(), described.value().uuid);
    EXPECT_NE(found.value(), backend_->uuid_of(zero).value());
    EXPECT_EQ(backend_->uuid_of(device_id(2)).failure().code(), OMPX_ERR_ARG);
}

TEST_F(cuda_test, device_is_current_for_a_scope_and_streams_are_of_it) {
    create();
    EXPECT_EQ(current(), -1);
    {
        auto outer = backend_->make_current(zero);
        ASSERT_TRUE(outer.ok());
        EXPECT_EQ(current(), 0);
        auto inner = backend_->make_current(one);
        ASSERT_TRUE(inner.ok());
        EXPECT_EQ(current(), 1);
        inner.value().reset();
        EXPECT_EQ(current(), 0);
    }
    EXPECT_EQ(current(), -1);
    auto queue = backend_->make_queue(one);
    ASSERT_TRUE(queue.ok());
    EXPECT_EQ(device_of_stream(queue.value()->native_stream()), 1);
    EXPECT_EQ(backend_->make_current(device_id(2)).failure().code(), OMPX_ERR_ARG);
}

TEST_F(cuda_test, reservation_costs_nothing_and_grows_in_place) {
    create();
    auto segment = reserve(zero, 40 * mebibyte + 1);
    EXPECT_EQ(segment->reserved_bytes(), 42 * mebibyte);
    EXPECT_EQ(segment->committed_bytes(), 0U);
    EXPECT_EQ(backend_->describe(zero).value().free_bytes, 64 * mebibyte);
    std::byte *const base = segment->base();

    ASSERT_TRUE(segment->commit(0, 1).ok());
    EXPECT_EQ(segment->committed_bytes(), 2 * mebibyte);
    put(zero, base, "kept");
    ASSERT_TRUE(segment->commit(0, 5 * mebibyte).ok());
    EXPECT_EQ(segment->committed_bytes(), 6 * mebibyte);
    EXPECT_EQ(segment->base(), base);
    EXPECT_EQ(backend_->describe(zero).value().free_bytes, 58 * mebibyte);
    EXPECT_EQ(get(zero, base, 4), "kept");
    put(zero, base + 2 * mebibyte - 3, "across");
    EXPECT_EQ(get(zero, base + 2 * mebibyte - 3, 6), "across");

    ASSERT_TRUE(segment->commit(0, 3).ok());
    EXPECT_EQ(segment->committed_bytes(), 6 * mebibyte);
}

TEST_F(cuda_test, growth_that_fails_changes_nothing) {
    create();
    auto segment = reserve(zero, 128 * mebibyte);
    ASSERT_TRUE(segment->commit(0, 2 * mebibyte).ok());
    int const before = alive();
    auto const expect_refusal = [&](std::size_t to_bytes, ompx_status code, const char *text) {
        auto const outcome = segment->commit(0, to_bytes);
        ASSERT_FALSE(outcome.ok());
        EXPECT_EQ(outcome.failure().code(), code);
        EXPECT_THAT(outcome.failure().message(), HasSubstr(text));
        EXPECT_EQ(segment->committed_bytes(), 2 * mebibyte);
        EXPECT_EQ(alive(), before);
    };
    expect_refusal(128 * mebibyte + 1, OMPX_ERR_RANGE, "128 MiB are reserved");
    expect_refusal(100 * mebibyte, OMPX_ERR_NOMEM, "cuMemCreate of 98 MiB on device 0: out of");
    ::setenv("FAKE_CUDA_FAIL", "cuMemMap=999", 1);
    expect_refusal(4 * mebibyte, OMPX_ERR_SYSTEM, "cuMemMap");
    ::setenv("FAKE_CUDA_FAIL", "cuMemSetAccess=801", 1);
    expect_refusal(4 * mebibyte, OMPX_ERR_UNSUPPORTED, "cuMemSetAccess");
    ::unsetenv("FAKE_CUDA_FAIL");
    ASSERT_TRUE(segment->commit(0, 4 * mebibyte).ok());
    put(zero, segment->base() + 3 * mebibyte, "well");
    EXPECT_EQ(get(zero, segment->base() + 3 * mebibyte, 4), "well");
}

TEST_F(cuda_test, reservation_that_fails_leaves_nothing) {
    create();
    for (const char *call : {"cuDevicePrimaryCtxRetain=2", "cuCtxPushCurrent_v2=999",
                             "cuMemGetAllocationGranularity=999", "cuMemAddressReserve=2"}) {
        ::setenv("FAKE_CUDA_FAIL", call, 1);
        EXPECT_FALSE(backend_->reserve(one, mebibyte).ok()) << call;
    }
    ::unsetenv("FAKE_CUDA_FAIL");
    EXPECT_EQ(backend_->reserve(one, 0).failure().code(), OMPX_ERR_ARG);
    EXPECT_EQ(backend_->reserve(device_id(5), mebibyte).failure().code(), OMPX_ERR_ARG);
}

TEST_F(cuda_test, queue_is_idle_only_after_its_copies) {
    create();
    auto segment = reserve(zero, 2 * mebibyte);
    ASSERT_TRUE(segment->commit(0, 2 * mebibyte).ok());
    auto made = backend_->make_queue(zero);
    ASSERT_TRUE(made.ok());
    queue &on = *made.value();
    EXPECT_TRUE(on.is_idle().value());
    std::uint64_t from = 42;
    std::uint64_t into = 0;
    ASSERT_TRUE(on.copy(segment->base(), &from, sizeof(from)).ok());
    ASSERT_TRUE(on.copy(&into, segment->base(), sizeof(into)).ok());
    ASSERT_TRUE(on.copy(nullptr, nullptr, 0).ok());
    EXPECT_FALSE(on.is_idle().value());
    EXPECT_EQ(into, 0U);
    EXPECT_TRUE(on.is_idle().value());
    EXPECT_EQ(into, 42U);
    from = 43;
    ASSERT_TRUE(on.copy(segment->base(), &from, sizeof(from)).ok());
    ASSERT_TRUE(on.copy(&into, segment->base(), sizeof(into)).ok());
    ASSERT_TRUE(on.wait().ok());
    EXPECT_EQ(into, 43U);
}

TEST_F(cuda_test, copy_past_what_is_committed_is_an_error_with_the_addresses) {
    create();
    auto segment = reserve(zero, 4 * mebibyte);
    ASSERT_TRUE(segment->commit(0, 2 * mebibyte).ok());
    auto made = backend_->make_queue(zero);
    ASSERT_TRUE(made.ok());
    char text[16] = {};
    auto const outcome = made.value()->copy(segment->base() + 2 * mebibyte - 8, text, sizeof(text));
    ASSERT_FALSE(outcome.ok());
    EXPECT_THAT(outcome.failure().message(), HasSubstr("cuMemcpyAsync of 16 bytes from 0x"));
}

TEST_F(cuda_test, other_device_reaches_memory_once_it_was_asked_for) {
    create();
    auto segment = reserve(zero, 8 * mebibyte);
    ASSERT_TRUE(segment->commit(0, 2 * mebibyte).ok());
    put(zero, segment->base(), "early");
    EXPECT_FALSE(may_touch(one, segment->base()));

    EXPECT_TRUE(backend_->can_access(one, zero).value());
    EXPECT_EQ(get(one, segment->base(), 5), "early");
    ASSERT_TRUE(segment->commit(0, 4 * mebibyte).ok()); // what comes later too
    put(one, segment->base() + 3 * mebibyte, "late");
    EXPECT_EQ(get(zero, segment->base() + 3 * mebibyte, 4), "late");
    auto second = reserve(zero, 2 * mebibyte);
    ASSERT_TRUE(second->commit(0, 2 * mebibyte).ok());
    EXPECT_TRUE(may_touch(one, second->base()));

    auto opposite = reserve(one, 2 * mebibyte); // one way is not both
    ASSERT_TRUE(opposite->commit(0, 2 * mebibyte).ok());
    EXPECT_FALSE(may_touch(zero, opposite->base()));

    EXPECT_TRUE(backend_->can_access(one, zero).value());
    EXPECT_TRUE(backend_->can_access(zero, zero).value());
    EXPECT_EQ(backend_->can_access(zero, device_id(2)).failure().code(), OMPX_ERR_ARG);
}

// (The address sanitizer sees it if the context still knows the memory.)
TEST_F(cuda_test, memory_that_is_gone_is_not_opened_to_other_devices) {
    create();
    {
        auto segment = reserve(zero, 4 * mebibyte);
        ASSERT_TRUE(segment->commit(0, 2 * mebibyte).ok());
    }
    auto second = reserve(zero, 4 * mebibyte);
    ASSERT_TRUE(second->commit(0, 2 * mebibyte).ok());
    EXPECT_TRUE(backend_->can_access(one, zero).value());
    EXPECT_TRUE(may_touch(one, second->base()));
}

TEST_F(cuda_test, devices_without_peer_access_do_not_reach_each_other) {
    ::setenv("FAKE_CUDA_PEERS", "none", 1);
    create();
    auto const answer = backend_->can_access(zero, one);
    ASSERT_TRUE(answer.ok());
    EXPECT_FALSE(answer.value());
    EXPECT_TRUE(backend_->can_access(one, one).value());
}

TEST_F(cuda_test, peer_access_that_the_program_has_enabled_is_no_error) {
    create();
    ::setenv("FAKE_CUDA_FAIL", "cuCtxEnablePeerAccess=704", 1);
    EXPECT_TRUE(backend_->can_access(zero, one).value());
    ::setenv("FAKE_CUDA_FAIL", "cuCtxEnablePeerAccess=999", 1);
    EXPECT_FALSE(backend_->can_access(one, zero).ok());
}

TEST_F(cuda_test, addresses_have_owners) {
    create();
    auto segment = reserve(one, 4 * mebibyte);
    ASSERT_TRUE(segment->commit(0, 2 * mebibyte).ok());
    auto pinned = backend_->allocate_pinned(100);
    ASSERT_TRUE(pinned.ok());
    EXPECT_EQ(backend_->owner_of(segment->base() + 2 * mebibyte - 1), one);
    EXPECT_EQ(backend_->owner_of(segment->base() + 2 * mebibyte), std::nullopt);
    EXPECT_EQ(backend_->owner_of(pinned.value().base()), std::nullopt);
    EXPECT_EQ(backend_->owner_of(&segment), std::nullopt);
    std::memset(pinned.value().base(), 1, 100);
}

TEST_F(cuda_test, memory_that_is_there_can_be_pinned_once_at_a_time) {
    create();
    char there[64] = {};
    int const before = alive();
    {
        auto pinned = backend_->pin(there, sizeof(there));
        ASSERT_TRUE(pinned.ok());
        EXPECT_EQ(reinterpret_cast<char *>(pinned.value().base()), there);
        EXPECT_EQ(pinned.value().size_bytes(), sizeof(there));
        EXPECT_EQ(backend_->owner_of(there), std::nullopt);
        EXPECT_GT(alive(), before);
        auto const again = backend_->pin(there, sizeof(there));
        ASSERT_FALSE(again.ok());
        EXPECT_THAT(again.failure().message(), HasSubstr("cuMemHostRegister"));
    }
    auto after = backend_->pin(there, sizeof(there));
    EXPECT_TRUE(after.ok());
    backend_.reset();
}

TEST_F(cuda_test, memory_queue_and_pinned_memory_outlive_the_backend) {
    create();
    auto segment = reserve(zero, 2 * mebibyte);
    auto made = backend_->make_queue(zero);
    ASSERT_TRUE(made.ok());
    auto pinned = backend_->allocate_pinned(8);
    ASSERT_TRUE(pinned.ok());
    backend_.reset();
    EXPECT_GT(alive(), 0);
    ASSERT_TRUE(segment->commit(0, 2 * mebibyte).ok());
    std::memcpy(pinned.value().base(), "goodbye", 8);
    ASSERT_TRUE(made.value()->copy(segment->base(), pinned.value().base(), 8).ok());
    ASSERT_TRUE(made.value()->wait().ok());
}

TEST_F(cuda_test, stream_pool_copies_side_by_side) {
    ::setenv("FAKE_CUDA_PATIENCE", "50", 1);
    create();
    auto segment = reserve(zero, 2 * mebibyte);
    ASSERT_TRUE(segment->commit(0, 2 * mebibyte).ok());
    stream_pool pool(*backend_, {.max_active = 4});
    std::array<int, 100> from{};
    std::array<int, 100> into{};
    auto *const there = reinterpret_cast<int *>(segment->base());
    for (std::size_t i = 0; i < from.size(); ++i) {
        from[i] = static_cast<int>(i) + 1;
        ASSERT_TRUE(pool.copy(zero, there + i, &from[i], sizeof(int)).ok());
    }
    ASSERT_TRUE(pool.drain().ok());
    EXPECT_EQ(pool.counted().created, 4U);
    EXPECT_GT(pool.counted().half_synchronisations, 0U);
    ASSERT_TRUE(pool.copy(zero, into.data(), there, sizeof(into)).ok());
    int polls = 0;
    for (bool idle = false; !idle; ++polls) {
        auto const answer = pool.poll();
        ASSERT_TRUE(answer.ok());
        idle = answer.value();
    }
    EXPECT_EQ(polls, 50);
    EXPECT_EQ(into, from);
}

TEST_F(cuda_test, stream_that_fails_is_told_by_the_pool_in_the_drivers_words) {
    create();
    auto segment = reserve(zero, 2 * mebibyte);
    ASSERT_TRUE(segment->commit(0, 2 * mebibyte).ok());
    stream_pool pool(*backend_, {.max_active = 4});
    int const from = 1;
    auto const started = pool.copy(zero, segment->base(), &from, sizeof(from));
    ASSERT_TRUE(started.ok());
    ::setenv("FAKE_CUDA_FAIL", "cuStreamQuery=719", 1);
    auto const answer = pool.is_done(started.value());
    ::unsetenv("FAKE_CUDA_FAIL");
    ASSERT_FALSE(answer.ok());
    EXPECT_THAT(answer.failure().message(), HasSubstr("cuStreamQuery: something else"));
}

} // namespace
} // namespace diomp::device
