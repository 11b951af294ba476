// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Groups over the stand-ins for CUDA's driver and NCCL.
#pragma once

#include "coll/requests.h"
#include "device/cuda_fixture.h"
#include "device_coll/vendor/nccl.h"
#include "device_coll/vendor/plan.h"
#include "device_coll/vendor/vendor_group.h"

#include <gmock/gmock.h>

#include <chrono>
#include <sched.h>

namespace diomp::test {

namespace vendor = device_coll::vendor;

/// Endpoint i is device i. Its memory holds one trial's storage.
class endpoint_memory {
public:
    static constexpr std::size_t size_bytes = mebibyte / 4;

    endpoint_memory(device::backend &of, int index)
        : device_(index), queue_(of.make_queue(device_).take()),
          memory_(of.reserve(device_, size_bytes).take()), image_(size_bytes) {
        EXPECT_TRUE(memory_->commit(0, size_bytes).ok());
    }

    /// The host's copy of it.
    [[nodiscard]] std::byte *image() { return image_.data(); }
    [[nodiscard]] std::byte *base() const { return memory_->base(); }
    /// An address in the image as one of the device.
    [[nodiscard]] std::byte *on_device(const void *in_image) const {
        return in_image == nullptr
                   ? nullptr
                   : base() + (static_cast<const std::byte *>(in_image) - image_.data());
    }
    void upload() { move(base(), image()); }
    void download() { move(image(), base()); }

private:
    void move(void *dst, const void *src) {
        EXPECT_TRUE(queue_->copy(dst, src, size_bytes).ok());
        EXPECT_TRUE(queue_->wait().ok());
    }

    device::device_id device_;
    std::unique_ptr<device::queue> queue_;
    std::unique_ptr<device::memory> memory_;
    std::vector<std::byte> image_;
};

inline status wait_for_seconds(double seconds, function_ref<bool()> is_over) {
    using clock = std::chrono::steady_clock;
    auto const end = clock::now() + std::chrono::duration<double>(seconds);
    while (!is_over()) {
        if (clock::now() > end) {
            return error(OMPX_ERR_TIMEOUT, "the test's patience is over");
        }
        ::sched_yield();
    }
    return {};
}

/// A process's endpoints `first` .. `last - 1` of a group of `count`.
class own_endpoints {
public:
    own_endpoints(device::backend &of, std::shared_ptr<vendor::vendor_library> library,
                  const vendor::unique_id &id, int first, int last, int count)
        : first_(first), count_(count) {
        vendor::vendor_group::options chosen{std::move(library), id, count, {}};
        for (int i = first; i < last; ++i) {
            chosen.own.push_back({&of, device::device_id(i), i});
            memory_.push_back(std::make_unique<endpoint_memory>(of, i));
        }
        auto made = vendor::vendor_group::create(std::move(chosen));
        EXPECT_TRUE(made.ok()) << made.failure().message();
        group_ = made.take();
    }

    [[nodiscard]] vendor::vendor_group &group() { return *group_; }
    [[nodiscard]] endpoint_memory &memory(std::size_t own) { return *memory_[own]; }
    [[nodiscard]] std::size_t size() const { return memory_.size(); }

    status run(const coll::request &asked, std::span<const coll::endpoint_buffers> with) {
        return group_->run(asked, with, [](function_ref<bool()> is_over) {
            return wait_for_seconds(20, is_over);
        });
    }

    /// Makes the call, and looks at all that it should and should not have written.
    void run_and_check(const trial &t) {
        auto const members = static_cast<std::size_t>(count_);
        std::vector<trial_buffers> all;
        std::vector<coll::endpoint_buffers> with;
        std::vector<std::vector<std::byte>> before;
        for (std::size_t i = 0; i < size(); ++i) {
            all.emplace_back(t, members, static_cast<std::size_t>(first_) + i, memory(i).image());
            memory(i).upload();
            before.emplace_back(memory(i).image(), memory(i).image() + endpoint_memory::size_bytes);
            with.push_back(
                {memory(i).on_device(all[i].dst()), memory(i).on_device(all[i].src()), nullptr});
        }
        status const outcome = run(request_of(t), with);
        ASSERT_TRUE(outcome.ok()) << to_string(t) << ": " << outcome.failure().message();
        for (std::size_t i = 0; i < size(); ++i) {
            memory(i).download();
            all[i].check();
            std::size_t const half = trial_buffers::storage_bytes(t, members) / 2;
            if (!t.in_place) {
                EXPECT_EQ(std::memcmp(memory(i).image() + half, before[i].data() + half, half), 0)
                    << to_string(t) << ": wrote into a source";
            }
        }
    }

private:
    int first_;
    int count_;
    std::vector<std::unique_ptr<endpoint_memory>> memory_; ///< [own endpoint]
    std::unique_ptr<vendor::vendor_group> group_;
};

/// A trial that the library can do.
inline trial draw_possible(std::mt19937_64 &random, int count, std::size_t most_bytes) {
    trial t;
    do {
        t = draw(random, count, most_bytes, test::num_without_scans);
    } while (!vendor::supports(request_of(t)));
    return t;
}

class nccl_test : public cuda_test {
protected:
    void SetUp() override {
        for (const char *name : {"FAKE_NCCL_VERSION", "FAKE_NCCL_PATIENCE", "FAKE_NCCL_FAIL",
                                 "FAKE_NCCL_ASYNC", "FAKE_NCCL_STALL"}) {
            ::unsetenv(name);
        }
        cuda_test::SetUp();
        ::setenv("FAKE_CUDA_DEVICES", "4", 1);
        nccl_ = ::dlopen(FAKE_NCCL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
        ASSERT_NE(nccl_, nullptr) << ::dlerror();
    }
    void TearDown() override {
        own_.reset();
        library_.reset();
        EXPECT_STREQ(find_nccl<const char *()>("fake_nccl_complaints")(), "");
        EXPECT_EQ(find_nccl<int()>("fake_nccl_alive")(), 0) << "communicators not given back";
        cuda_test::TearDown();
    }

    void load() {
        auto loaded = vendor::vendor_library::load(vendor::library_kind::nccl, FAKE_NCCL_LIBRARY);
        ASSERT_TRUE(loaded.ok()) << loaded.failure().message();
        library_ = loaded.take();
    }
    /// A group of `count` endpoints, all of this process.
    void make_group(int count) {
        if (backend_ == nullptr) {
            create();
            load();
        }
        auto id = library_->make_unique_id();
        ASSERT_TRUE(id.ok());
        own_ = std::make_unique<own_endpoints>(*backend_, library_, id.value(), 0, count, count);
    }
    /// An allreduce of 4 integers by all.
    status allreduce() {
        std::vector<coll::endpoint_buffers> with;
        for (std::size_t i = 0; i < own_->size(); ++i) {
            std::byte *const at = own_->memory(i).base();
            with.push_back({at, at, nullptr});
        }
        return own_->run(
            {.what = sync::operation::allreduce, .amount = 4, .type = OMPX_INT32, .op = OMPX_SUM},
            with);
    }
    int calls(const char *function) {
        return find_nccl<int(const char *)>("fake_nccl_calls")(function);
    }
    /// What the stand-in complained of until now; forgotten then.
    std::string take_complaints() {
        std::string const text = find_nccl<const char *()>("fake_nccl_complaints")();
        find_nccl<void()>("fake_nccl_forget")();
        return text;
    }

    std::shared_ptr<vendor::vendor_library> library_;
    std::unique_ptr<own_endpoints> own_;

private:
    template <typename Function>
    Function *find_nccl(const char *name) {
        return reinterpret_cast<Function *>(::dlsym(nccl_, name));
    }
    void *nccl_ = nullptr;
};

} // namespace diomp::test
