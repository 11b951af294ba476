// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The HIP backend against the stand-in runtime fake_hip.cpp, which complains like CUDA's.
#include "device/device.h"
#include "device/stream_pool.h"
#include "device/two_processes.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

namespace diomp::device {
namespace {

using test::receive_handle;
using test::require;
using test::second_process;
using test::send_handle;
using ::testing::HasSubstr;

constexpr std::size_t mebibyte = std::size_t{1} << 20;

class hip_test : public ::testing::Test {
protected:
    static constexpr device_id zero = device_id(0);
    static constexpr device_id one = device_id(1);

    void SetUp() override {
        for (const char *name : {"FAKE_HIP_DEVICES", "FAKE_HIP_VERSION", "FAKE_HIP_FAIL"}) {
            ::unsetenv(name);
        }
        stand_in_ = ::dlopen(FAKE_HIP_LIBRARY, RTLD_NOW | RTLD_LOCAL);
        ASSERT_NE(stand_in_, nullptr) << ::dlerror();
    }
    void TearDown() override {
        ::unsetenv("FAKE_HIP_FAIL");
        backend_.reset();
        EXPECT_STREQ(find<const char *()>("fake_hip_complaints")(), "");
        EXPECT_EQ(find<int()>("fake_hip_alive")(), 0) << "not given back";
        EXPECT_EQ(current(), 0) << "the program's choice of a device";
    }
    void create() {
        auto made = create_hip({.path = FAKE_HIP_LIBRARY});
        ASSERT_TRUE(made.ok()) << made.failure().message();
        backend_ = made.take();
    }
    int current() {
        int device = -1;
        find<int(int *)>("hipGetDevice")(&device);
        return device;
    }
    static status copy(backend &of, device_id by, void *dst, const void *src, std::size_t nbytes) {
        auto made = of.make_queue(by);
        DIOMP_TRY(made);
        DIOMP_TRY(made.value()->copy(dst, src, nbytes));
        return made.value()->wait();
    }
    static void open_token(int socket) {
        auto made = create_hip({.path = FAKE_HIP_LIBRARY});
        require(made.ok(), "backend");
        shared_handle handle;
        require(receive_handle(socket, handle), "handle");
        auto opened = made.value()->open_shared(one, handle);
        require(opened.ok(), "opened");
        require(opened.value()->mapped_bytes() == mebibyte, "all of it");
        char text[6] = {};
        require(copy(*made.value(), one, text, opened.value()->base() + 9, 5).ok(), "read");
        require(std::strcmp(text, "token") == 0, "the parent's text");
        require(copy(*made.value(), one, opened.value()->base(), "answer", 6).ok(), "written");
    }
    template <typename Function>
    Function *find(const char *name) {
        return reinterpret_cast<Function *>(::dlsym(stand_in_, name));
    }

    void *stand_in_ = nullptr;
    std::unique_ptr<backend> backend_;
};

TEST_F(hip_test, device_is_current_for_a_scope) {
    create();
    {
        auto const scope = backend_->make_current(one);
        ASSERT_TRUE(scope.ok());
        EXPECT_EQ(current(), 1);
    }
    EXPECT_EQ(current(), 0);
    EXPECT_NE(backend_->make_queue(one).value()->native_stream(), nullptr);
}

TEST_F(hip_test, library_that_is_missing_is_named) {
    auto const made = create_hip({.path = "/nowhere/libamdhip64.so"});
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.failure().code(), OMPX_ERR_UNSUPPORTED);
    EXPECT_THAT(made.failure().message(), HasSubstr("/nowhere/libamdhip64.so"));
    EXPECT_THAT(made.failure().remedy(), HasSubstr("ROCm"));
}

TEST_F(hip_test, function_that_is_missing_is_named) {
    auto const made = create_hip({.path = FAKE_HIP_LACKING_LIBRARY});
    ASSERT_FALSE(made.ok());
    EXPECT_THAT(made.failure().message(), ::testing::EndsWith("lacks hipStreamSynchronize"));
}

TEST_F(hip_test, old_runtime_is_refused) {
    ::setenv("FAKE_HIP_VERSION", "50731921", 1);
    auto const made = create_hip({.path = FAKE_HIP_LIBRARY});
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.failure().code(), OMPX_ERR_UNSUPPORTED);
    EXPECT_THAT(made.failure().message(), HasSubstr("version 5.7"));
}

TEST_F(hip_test, no_device_is_an_error_that_says_so) {
    ::setenv("FAKE_HIP_DEVICES", "0", 1);
    auto const made = create_hip({.path = FAKE_HIP_LIBRARY});
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.failure().code(), OMPX_ERR_UNSUPPORTED);
    EXPECT_THAT(made.failure().message(), HasSubstr("no device"));
}

TEST_F(hip_test, nodes_of_all_devices_without_a_backend) {
    auto const nodes = numa_nodes_of_hip({.path = FAKE_HIP_LIBRARY});
    ASSERT_TRUE(nodes.ok());
    EXPECT_THAT(nodes.value(), ::testing::ElementsAre(-1, -1)); // no such place on any bus
    ::setenv("FAKE_HIP_FAIL", "hipDeviceGetPCIBusId=101", 1);
    EXPECT_THAT(numa_nodes_of_hip({.path = FAKE_HIP_LIBRARY}).failure().message(),
                HasSubstr("hipDeviceGetPCIBusId"));
    EXPECT_EQ(numa_nodes_of_hip({.path = "/nowhere"}).failure().code(), OMPX_ERR_UNSUPPORTED);
}

TEST_F(hip_test, description) {
    create();
    auto const found = backend_->describe(one);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found.value().name, "Stand-in 1");
    EXPECT_EQ(found.value().uuid[7], std::byte{0x61});
    EXPECT_EQ(found.value().pci_bus_id, "ffff:01:00.0");
    EXPECT_EQ(found.value().multiprocessors, 12);
    EXPECT_EQ(found.value().total_bytes, 64 * mebibyte);
    EXPECT_FALSE(found.value().memory_grows);
    EXPECT_TRUE(found.value().memory_shares);
    EXPECT_EQ(backend_->describe(device_id(2)).failure().code(), OMPX_ERR_ARG);
}

TEST_F(hip_test, reservation_is_there_in_full_and_does_not_grow) {
    create();
    auto reserved = backend_->reserve(one, 3 * mebibyte);
    ASSERT_TRUE(reserved.ok());
    memory &segment = *reserved.value();
    EXPECT_EQ(segment.committed_bytes(), 3 * mebibyte);
    EXPECT_EQ(backend_->describe(one).value().free_bytes, 61 * mebibyte);
    EXPECT_TRUE(segment.commit(0, 3 * mebibyte).ok());
    EXPECT_EQ(segment.commit(0, 3 * mebibyte + 1).failure().code(), OMPX_ERR_RANGE);
    EXPECT_EQ(backend_->owner_of(segment.base() + 3 * mebibyte - 1), one);
    EXPECT_EQ(backend_->owner_of(&segment), std::nullopt);
    auto const too_much = backend_->reserve(one, 62 * mebibyte);
    ASSERT_FALSE(too_much.ok());
    EXPECT_EQ(too_much.failure().code(), OMPX_ERR_NOMEM);
    EXPECT_THAT(too_much.failure().message(), HasSubstr("hipMalloc of 62 MiB on device 1"));
    EXPECT_EQ(backend_->reserve(one, 0).failure().code(), OMPX_ERR_ARG);
}

TEST_F(hip_test, queue_is_idle_only_after_its_copies) {
    create();
    auto reserved = backend_->reserve(one, mebibyte);
    ASSERT_TRUE(reserved.ok());
    auto made = backend_->make_queue(one);
    ASSERT_TRUE(made.ok());
    int const from = 42;
    int into = 0;
    ASSERT_TRUE(made.value()->copy(reserved.value()->base(), &from, sizeof(from)).ok());
    ASSERT_TRUE(made.value()->copy(&into, reserved.value()->base(), sizeof(into)).ok());
    EXPECT_FALSE(made.value()->is_idle().value());
    EXPECT_EQ(into, 0);
    EXPECT_TRUE(made.value()->is_idle().value());
    EXPECT_EQ(into, 42);
    ::setenv("FAKE_HIP_FAIL", "hipStreamQuery=719", 1);
    EXPECT_FALSE(made.value()->is_idle().ok());
}

TEST_F(hip_test, other_device_reaches_memory_once_it_was_asked_for) {
    create();
    auto reserved = backend_->reserve(zero, mebibyte);
    ASSERT_TRUE(reserved.ok());
    std::byte *const base = reserved.value()->base();
    EXPECT_FALSE(copy(*backend_, one, base, "peer", 4).ok());
    EXPECT_TRUE(backend_->can_access(one, zero).value());
    EXPECT_TRUE(backend_->can_access(one, zero).value()); // enabled already
    EXPECT_TRUE(copy(*backend_, one, base, "peer", 4).ok());
    char text[5] = {};
    EXPECT_TRUE(copy(*backend_, zero, text, base, 4).ok());
    EXPECT_STREQ(text, "peer");
    EXPECT_EQ(backend_->can_access(zero, device_id(2)).failure().code(), OMPX_ERR_ARG);
}

TEST_F(hip_test, pinned_memory_is_host_memory) {
    create();
    auto pinned = backend_->allocate_pinned(0);
    ASSERT_TRUE(pinned.ok());
    EXPECT_EQ(backend_->owner_of(pinned.value().base()), std::nullopt);
    ::setenv("FAKE_HIP_FAIL", "hipHostMalloc=2", 1);
    EXPECT_EQ(backend_->allocate_pinned(8).failure().code(), OMPX_ERR_NOMEM);
}

TEST_F(hip_test, memory_that_is_there_can_be_pinned) {
    create();
    char there[64] = {};
    auto pinned = backend_->pin(there, sizeof(there));
    ASSERT_TRUE(pinned.ok());
    EXPECT_EQ(find<int()>("fake_hip_alive")(), 1);
    backend_.reset(); // and is given back after it
}

TEST_F(hip_test, memory_is_shared_with_another_process) {
    second_process child([this](int socket) {
        open_token(socket);
        auto const *const complaints = find<const char *()>("fake_hip_complaints")();
        require(*complaints == 0, complaints);
        require(find<int()>("fake_hip_alive")() == 0, "all is given back");
    });
    create();
    auto reserved = backend_->reserve(zero, mebibyte);
    ASSERT_TRUE(reserved.ok());
    std::byte *const base = reserved.value()->base();
    ASSERT_TRUE(copy(*backend_, zero, base + 9, "token", 5).ok());
    auto shared = reserved.value()->share(0, memory::all_extents);
    ASSERT_TRUE(shared.ok());
    ASSERT_TRUE(send_handle(child.socket(), shared.value()));
    EXPECT_EQ(child.exit_code(), 0);
    char text[7] = {};
    ASSERT_TRUE(copy(*backend_, zero, text, base, 6).ok());
    EXPECT_STREQ(text, "answer");

    EXPECT_TRUE(reserved.value()->share(1, memory::all_extents).value().extents.empty());
    EXPECT_EQ(backend_->open_shared(one, {}).failure().code(), OMPX_ERR_ARG);
}

TEST_F(hip_test, stream_pool_works_on_it) {
    create();
    auto reserved = backend_->reserve(one, mebibyte);
    ASSERT_TRUE(reserved.ok());
    stream_pool pool(*backend_, {.max_active = 3});
    int const from[4] = {1, 2, 3, 4};
    auto *const there = reinterpret_cast<int *>(reserved.value()->base());
    for (int i = 0; i < 4; ++i) {
        ASSERT_TRUE(pool.copy(one, there + i, &from[i], sizeof(int)).ok());
    }
    ASSERT_TRUE(pool.drain().ok());
    EXPECT_EQ(std::memcmp(there, from, sizeof(from)), 0);
}

} // namespace
} // namespace diomp::device
