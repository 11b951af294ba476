// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives of devices on several nodes: inside a node from device to device, and between nodes
// by way of host memory of the nodes' leaders alone.
#include "offload/accelerator_collectives.h"

#include <algorithm>

namespace diomp::test {
namespace {

class devices_on_nodes : public device_collectives {
protected:
    void SetUp() override {
        if (kernels() != "nodes") {
            GTEST_SKIP() << "the devices are on one node, or the way does not matter";
        }
    }
    static bool leads() { return ompx_rank_num() % std::atoi(std::getenv("DIOMP_NODE_SIZE")) == 0; }
};

TEST_F(devices_on_nodes, only_leaders_move_bytes_through_the_host) {
    std::int32_t *const b = buffer_.data();
    constexpr std::size_t bytes = length * sizeof(*b);
    auto const by_leaders = [](std::size_t nbytes) { return leads() ? nbytes : 0; };
    for (ompx_op_t const op : {OMPX_SUM, OMPX_AVG}) {
        fill();
        through_host const reduced;
        ASSERT_EQ(ompx_target_allreduce(b, b, all, length, OMPX_INT32, op, group_), 0);
        EXPECT_EQ(reduced.bytes(), by_leaders(2 * bytes));
        expect(length,
               [&](int, std::size_t i) { return op == OMPX_AVG ? sum(i) / size_ : sum(i); });
    }
    for (int root = 0; root < size_; ++root) {
        fill();
        through_host const spread;
        ASSERT_EQ(ompx_target_bcast_from(b, all, bytes, root, group_), 0);
        EXPECT_EQ(spread.bytes(), by_leaders(bytes));
        expect(length, [&](int, std::size_t i) { return brought(root, i); });
    }
    constexpr std::size_t block = 300;
    auto const whole = block * static_cast<std::size_t>(size_);
    fill();
    through_host const gathered;
    ASSERT_EQ(ompx_target_allgather(b, b + 2000, all, block * sizeof(*b), group_), 0);
    EXPECT_EQ(gathered.bytes(), by_leaders(whole * sizeof(*b)));
    expect(whole, [&](int, std::size_t i) {
        return brought(static_cast<int>(i / block), 2000 + i % block);
    });
}

TEST_F(devices_on_nodes, more_than_a_piece) {
    constexpr std::size_t count = (std::size_t{9} << 17) + 5;
    auto const whole = count * static_cast<std::size_t>(size_);
    values host(whole);
    std::vector<void *> arrays;
    for (int place = 0; place < num_own(); ++place) {
        arrays.push_back(scripted::map(host.data(), whole * sizeof(host[0]),
                                       devices_[static_cast<std::size_t>(place)]));
        values made(whole);
        for (std::size_t i = 0; i < whole; ++i) {
            made[i] = brought(first_ + place, i);
        }
        scripted::write(arrays.back(), made);
    }
    std::int32_t *const own = host.data() + static_cast<std::size_t>(first_) * count;
    auto const check = [&](auto &&wanted, std::size_t num) {
        for (void *const array : arrays) {
            values const got = scripted::read<std::int32_t>(array, num);
            std::size_t right = 0;
            while (right < num && got[right] == wanted(right)) {
                ++right;
            }
            EXPECT_EQ(right, num);
        }
    };
    if (num_own() == 1) { // one call has one pointer, so not each's own block
        through_host const gathered;
        ASSERT_EQ(ompx_target_allgather(host.data(), own, all, count * sizeof(*own), group_), 0);
        EXPECT_EQ(gathered.bytes(), leads() ? whole * sizeof(*own) : 0);
        check([&](std::size_t i) { return brought(static_cast<int>(i / count), i); }, whole);
        auto const first = [&](std::size_t i) { return brought(0, i); };
        ASSERT_EQ(ompx_target_bcast(host.data(), all, whole * sizeof(*own), 0, group_), 0);
        check(
            [&](std::size_t i) {
                return i < count ? first(i) : brought(static_cast<int>(i / count), i);
            },
            whole);
    }
    int const root = size_ - 1;
    ASSERT_EQ(ompx_target_bcast(host.data(), all, count * sizeof(*own), root, group_), 0);
    auto const spread = scripted::read<std::int32_t>(arrays.front(), count);
    ASSERT_EQ(
        ompx_target_allreduce(host.data(), host.data(), all, count, OMPX_INT32, OMPX_SUM, group_),
        0);
    check([&](std::size_t i) { return spread[i] * size_; }, count);
    for (int const device : devices_) {
        scripted::unmap(host.data(), device);
    }
}

// The members of a node do not follow each other, and the root's place on its node is not its
// number.
TEST_F(devices_on_nodes, endpoints_dealt_out_over_nodes) {
    int const ranks = ompx_num_ranks();
    std::vector<ompx_endpoint_t> list;
    for (int place = 0; place < num_own(); ++place) {
        for (int rank = ranks - 1; rank >= 0; --rank) {
            list.push_back({rank, (rank * num_own() + place) % scripted::num_devices()});
        }
    }
    std::ranges::rotate(list, list.begin() + 1);
    ompx_group_t dealt = OMPX_GROUP_NONE;
    ASSERT_EQ(ompx_group_create_endpoints(&dealt, list.data(), size_), 0);
    // By the numbers that the fixture's group has for them.
    auto const brought_by = [&](int number, std::size_t i) {
        ompx_endpoint_t const &who = list[static_cast<std::size_t>(number)];
        return brought(who.device, i);
    };
    std::int32_t *const b = buffer_.data();
    fill();
    ASSERT_EQ(ompx_target_allreduce(b, b, all, length, OMPX_INT32, OMPX_SUM, dealt), 0);
    expect(length, [&](int, std::size_t i) { return sum(i); });
    for (int root = 0; root < size_; ++root) {
        fill();
        through_host const spread;
        ASSERT_EQ(ompx_target_bcast(b, all, 4 * length, root, dealt), 0);
        expect(length, [&](int, std::size_t i) { return brought_by(root, i); });
    }
    constexpr std::size_t block = 300;
    fill();
    ASSERT_EQ(ompx_target_allgather(b, b + 2000, all, block * sizeof(*b), dealt), 0);
    expect(block * static_cast<std::size_t>(size_), [&](int, std::size_t i) {
        return brought_by(static_cast<int>(i / block), 2000 + i % block);
    });
    EXPECT_EQ(ompx_group_free(&dealt), 0);
}

TEST_F(devices_on_nodes, device_that_fails_is_an_error_everywhere_and_the_group_goes_on) {
    std::int32_t *const b = buffer_.data();
    fill();
    ASSERT_EQ(ompx_target_allreduce(b, b, all, length, OMPX_INT32, OMPX_SUM, group_), 0);
    int const failing = ompx_num_ranks() - 1;
    if (ompx_rank_num() == failing) {
        scripted::fail_launches();
    }
    fill();
    EXPECT_EQ(ompx_target_allreduce(b, b, all, length, OMPX_INT32, OMPX_SUM, group_),
              OMPX_ERR_SYSTEM);
    scripted::fail_nothing();
    fill();
    EXPECT_EQ(ompx_target_allreduce(b, b, all, length, OMPX_INT32, OMPX_SUM, group_), 0);
    expect(length, [&](int, std::size_t i) { return sum(i); });
}

TEST_F(devices_on_nodes, calls_that_differ_between_nodes_are_an_error_on_all) {
    std::int32_t *const b = buffer_.data();
    bool const is_first = ompx_rank_num() == 0;
    for (int round = 0; round < 2; ++round) { // before the devices have been tried and after
        EXPECT_EQ(ompx_target_bcast(b, all, 4 * (is_first ? length : length - 1), 0, group_),
                  OMPX_ERR_MISMATCH);
        EXPECT_EQ(is_first ? ompx_target_allgather(b, b + 2000, all, 400, group_)
                           : ompx_target_allreduce(b, b, all, 100, OMPX_INT32, OMPX_SUM, group_),
                  OMPX_ERR_MISMATCH);
        fill();
        EXPECT_EQ(ompx_target_allreduce(b, b, all, length, OMPX_INT32, OMPX_SUM, group_), 0);
        expect(length, [&](int, std::size_t i) { return sum(i); });
    }
}

} // namespace
} // namespace diomp::test
