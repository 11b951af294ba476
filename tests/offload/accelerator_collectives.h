// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A group of all ranks' devices, with one array that is mapped on each of them.
#pragma once

#include "offload/scripted_openmp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>
#include <vector>

namespace diomp::test {

using values = std::vector<std::int32_t>;

inline constexpr std::size_t length = 3000;

/// Every rank has its share of the devices, or one that others have too.
class device_collectives : public testing::Test {
protected:
    device_collectives() {
        int const ranks = ompx_num_ranks();
        int const most = scripted::num_devices();
        int const each = std::max(1, most / ranks);
        std::vector<ompx_endpoint_t> list;
        for (int rank = 0; rank < ranks; ++rank) {
            for (int i = 0; i < each; ++i) {
                list.push_back({rank, (rank * each + i) % most});
                if (rank == ompx_rank_num()) {
                    devices_.push_back(list.back().device);
                }
            }
        }
        size_ = static_cast<int>(list.size());
        EXPECT_EQ(ompx_group_create_endpoints(&group_, list.data(), size_), OMPX_SUCCESS);
        first_ = ompx_group_rank(group_);
        buffer_.resize(length);
        for (int const device : devices_) {
            copies_.push_back(scripted::map(buffer_.data(), length * sizeof(std::int32_t), device));
        }
    }
    ~device_collectives() override {
        EXPECT_EQ(ompx_group_free(&group_), OMPX_SUCCESS);
        for (int const device : devices_) {
            scripted::unmap(buffer_.data(), device);
        }
        EXPECT_STREQ(scripted::complaints(), "");
    }

    [[nodiscard]] int num_own() const { return static_cast<int>(devices_.size()); }
    /// Element i that a member brings.
    static std::int32_t brought(int member, std::size_t i) {
        return (member + 1) * 1000 + static_cast<std::int32_t>(i);
    }
    void fill() {
        for (int place = 0; place < num_own(); ++place) {
            values made(length);
            for (std::size_t i = 0; i < length; ++i) {
                made[i] = brought(first_ + place, i);
            }
            scripted::write(copies_[static_cast<std::size_t>(place)], made);
        }
    }
    /// wanted(member, i) for i < count on every own device.
    template <typename Wanted>
    void expect(std::size_t count, Wanted &&wanted) {
        for (int place = 0; place < num_own(); ++place) {
            values const got =
                scripted::read<std::int32_t>(copies_[static_cast<std::size_t>(place)], length);
            for (std::size_t i = 0; i < count; ++i) {
                ASSERT_EQ(got[i], wanted(first_ + place, i))
                    << "member " << first_ + place << ", element " << i;
            }
        }
    }
    [[nodiscard]] std::int32_t sum(std::size_t i) const {
        return 1000 * (size_ * (size_ + 1) / 2) + size_ * static_cast<std::int32_t>(i);
    }

    ompx_group_t group_ = OMPX_GROUP_NONE;
    int size_ = 0;
    int first_ = 0;
    std::vector<int> devices_;
    values buffer_;
    std::vector<void *> copies_; ///< [place]
};

inline constexpr int all = OMPX_GROUP_DEVICES;

/// Whether large reductions run on the devices, as ctest says: "run", "none"; "nodes": inside
/// nodes;
/// "": nobody cares.
inline std::string_view kernels() {
    const char *const set = std::getenv("TEST_KERNELS");
    return set == nullptr ? "" : set;
}

/// What this process copies between devices and the host while it lives.
class through_host {
public:
    /// Where calls go from device to device that is nothing.
    void check() const {
        if (kernels() == "run") {
            EXPECT_EQ(bytes(), 0U);
        }
    }
    [[nodiscard]] std::size_t bytes() const { return now() - before_; }

private:
    static std::size_t now() { return scripted::ask_stand_in<std::size_t>("_host_bytes"); }

    std::size_t before_ = now();
};

} // namespace diomp::test
