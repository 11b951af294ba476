// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The CUDA backend with the stand-in driver under it.
#pragma once

#include "device/device.h"
#include "device/stream_pool.h"

#include <gmock/gmock.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>

namespace diomp::test {

inline constexpr std::size_t mebibyte = std::size_t{1} << 20;

class cuda_test : public ::testing::Test {
protected:
    static constexpr device::device_id zero = device::device_id(0);
    static constexpr device::device_id one = device::device_id(1);

    void SetUp() override {
        for (const char *name : {"FAKE_CUDA_DEVICES", "FAKE_CUDA_PEERS", "FAKE_CUDA_VMM",
                                 "FAKE_CUDA_PATIENCE", "FAKE_CUDA_FAIL"}) {
            ::unsetenv(name);
        }
        stand_in_ = ::dlopen(FAKE_CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
        ASSERT_NE(stand_in_, nullptr) << ::dlerror();
    }
    void TearDown() override {
        ::unsetenv("FAKE_CUDA_FAIL");
        backend_.reset();
        EXPECT_STREQ(complaints(), "");
        EXPECT_EQ(alive(), 0) << "not given back";
    }

    void create() {
        auto made = device::create_cuda({.path = FAKE_CUDA_LIBRARY});
        ASSERT_TRUE(made.ok()) << made.failure().message();
        backend_ = made.take();
    }
    std::unique_ptr<device::memory> reserve(device::device_id on, std::size_t max_bytes) {
        auto reserved = backend_->reserve(on, max_bytes);
        EXPECT_TRUE(reserved.ok());
        return reserved.take();
    }
    void put(device::device_id by, std::byte *dst, const std::string &text) {
        auto made = backend_->make_queue(by);
        ASSERT_TRUE(made.ok());
        status const started = made.value()->copy(dst, text.data(), text.size());
        ASSERT_TRUE(started.ok()) << started.failure().message();
        ASSERT_TRUE(made.value()->wait().ok());
    }
    std::string get(device::device_id by, const std::byte *src, std::size_t nbytes) {
        std::string text(nbytes, '?');
        auto made = backend_->make_queue(by);
        EXPECT_TRUE(made.ok());
        EXPECT_TRUE(made.value()->copy(text.data(), src, nbytes).ok());
        EXPECT_TRUE(made.value()->wait().ok());
        return text;
    }

    /// What has not been given back to the stand-in.
    int alive() { return find<int()>("fake_cuda_alive")(); }
    const char *complaints() { return find<const char *()>("fake_cuda_complaints")(); }
    bool may_touch(device::device_id by, const void *where) {
        return find<int(int, const void *)>("fake_cuda_may_touch")(by.value(), where) != 0;
    }

    int current() { return find<int()>("fake_cuda_current")(); }
    int device_of_stream(void *stream) {
        return find<int(void *)>("fake_cuda_stream_device")(stream);
    }

    std::unique_ptr<device::backend> backend_;

private:
    template <typename Function>
    Function *find(const char *name) {
        return reinterpret_cast<Function *>(::dlsym(stand_in_, name));
    }
    void *stand_in_ = nullptr;
};

} // namespace diomp::test
