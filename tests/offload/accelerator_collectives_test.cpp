// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives of endpoints on devices with memory of their own: the same calls through NCCL's
// stand-in and natively. ctest chooses by DIOMP_CCL and by who shares devices, and looks into the
// log for what was chosen.
#include "offload/accelerator_collectives.h"

#include <string_view>
#include <thread>

namespace diomp::test {
namespace {

class device_pairs : public device_collectives {
protected:
    static constexpr std::size_t num_pairs = 300;

    /// Values that several members have, so that indices decide.
    template <typename Pair>
    static Pair brought_pair(int member, std::size_t i) {
        Pair made{};
        made.value =
            static_cast<decltype(made.value)>((member + static_cast<int>(i)) % 2 == 0 ? -1 : 3);
        made.index = static_cast<decltype(made.index)>(100 - member);
        return made;
    }
    template <typename Pair>
    Pair wanted_pair(ompx_op_t op, std::size_t i) const {
        auto wanted = brought_pair<Pair>(0, i);
        for (int member = 1; member < size_; ++member) {
            auto const each = brought_pair<Pair>(member, i);
            bool const is_less = each.value < wanted.value;
            bool const is_greater = each.value > wanted.value;
            bool const is_lower = !is_less && !is_greater && each.index < wanted.index;
            wanted = is_lower || (op == OMPX_MINLOC ? is_less : is_greater) ? each : wanted;
        }
        return wanted;
    }
    template <typename Pair>
    void check(ompx_type_t type, ompx_op_t op) {
        for (int place = 0; place < num_own(); ++place) {
            std::vector<Pair> made;
            for (std::size_t i = 0; i < num_pairs; ++i) {
                made.push_back(brought_pair<Pair>(first_ + place, i));
            }
            scripted::write(copies_[static_cast<std::size_t>(place)], made);
        }
        std::int32_t *const b = buffer_.data();
        ASSERT_EQ(ompx_target_allreduce(b, b, all, num_pairs, type, op, group_), 0);
        for (void *const copy : copies_) {
            auto const got = scripted::read<Pair>(copy, num_pairs);
            for (std::size_t i = 0; i < num_pairs; ++i) {
                auto const wanted = wanted_pair<Pair>(op, i);
                ASSERT_FALSE(got[i].value < wanted.value || got[i].value > wanted.value) << i;
                ASSERT_EQ(got[i].index, wanted.index) << "type " << type << ", pair " << i;
            }
        }
    }
};

TEST_F(device_pairs, have_the_least_or_greatest_value_and_the_lowest_index) {
    for (ompx_op_t const op : {OMPX_MINLOC, OMPX_MAXLOC}) {
        check<ompx_float_int_t>(OMPX_FLOAT_INT, op);
        check<ompx_double_int_t>(OMPX_DOUBLE_INT, op);
        check<ompx_long_int_t>(OMPX_LONG_INT, op);
        check<ompx_2int_t>(OMPX_2INT, op);
        check<ompx_short_int_t>(OMPX_SHORT_INT, op);
        check<ompx_long_double_int_t>(OMPX_LONG_DOUBLE_INT, op); // through host memory
        check<ompx_2int64_t>(OMPX_2INT64, op);
        check<ompx_double_int64_t>(OMPX_DOUBLE_INT64, op);
    }
    EXPECT_EQ(
        ompx_target_allreduce(buffer_.data(), buffer_.data(), all, 1, OMPX_2INT, OMPX_SUM, group_),
        OMPX_ERR_ARG);
    EXPECT_EQ(ompx_target_allreduce(buffer_.data(), buffer_.data(), all, 1, OMPX_INT32, OMPX_MINLOC,
                                    group_),
              OMPX_ERR_ARG);
}

TEST_F(device_collectives, reductions) {
    std::int32_t *const b = buffer_.data();
    fill();
    ASSERT_EQ(ompx_target_allreduce(b, b, all, length, OMPX_INT32, OMPX_SUM, group_), 0);
    expect(length, [&](int, std::size_t i) { return sum(i); });
    fill();
    ASSERT_EQ(ompx_target_allreduce(b, b, all, length, OMPX_INT32, OMPX_AVG, group_), 0);
    expect(length, [&](int, std::size_t i) { return sum(i) / size_; });
    fill();
    ASSERT_EQ(ompx_target_reduce(b, b, all, 100, OMPX_INT32, OMPX_MAX, size_ - 1, group_), 0);
    expect(100, [&](int member, std::size_t i) {
        return brought(member == size_ - 1 ? size_ - 1 : member, i);
    });
    // No call of NCCL.
    fill();
    ASSERT_EQ(ompx_target_allreduce(b, b, all, 50, OMPX_INT32, OMPX_BXOR, group_), 0);
    expect(50, [&](int, std::size_t i) {
        std::int32_t combined = 0;
        for (int member = 0; member < size_; ++member) {
            combined ^= brought(member, i);
        }
        return combined;
    });
    fill();
    ASSERT_EQ(ompx_target_scan(b, b, all, 70, OMPX_INT32, OMPX_SUM, group_), 0);
    expect(70, [&](int member, std::size_t i) {
        return 1000 * ((member + 1) * (member + 2) / 2) +
               (member + 1) * static_cast<std::int32_t>(i);
    });
    // Member 0's result of an exscan is what it was.
    fill();
    ASSERT_EQ(ompx_target_exscan(b, b + 1000, all, 70, OMPX_INT32, OMPX_SUM, group_), 0);
    expect(70, [&](int member, std::size_t i) {
        return member == 0 ? brought(0, i)
                           : 1000 * (member * (member + 1) / 2) +
                                 member * static_cast<std::int32_t>(i + 1000);
    });
    std::size_t const block = 40;
    fill();
    ASSERT_EQ(ompx_target_reduce_scatter(b, b + 1000, all, block, OMPX_INT32, OMPX_SUM, group_), 0);
    expect(block, [&](int member, std::size_t i) {
        return sum(1000 + static_cast<std::size_t>(member) * block + i);
    });
}

TEST_F(device_collectives, moves) {
    std::int32_t *const b = buffer_.data();
    constexpr std::size_t block = 60;
    std::size_t const bytes = block * sizeof(*b);
    std::size_t const whole = static_cast<std::size_t>(size_) * block;
    auto const from = [](std::size_t i) { return static_cast<int>(i / block); };
    fill();
    ASSERT_EQ(ompx_target_bcast(b, all, length * sizeof(*b), size_ - 1, group_), 0);
    expect(length, [&](int, std::size_t i) { return brought(size_ - 1, i); });
    fill();
    ASSERT_EQ(ompx_target_allgather(b, b + 2000, all, bytes, group_), 0);
    expect(whole, [&](int, std::size_t i) { return brought(from(i), 2000 + i % block); });
    fill();
    ASSERT_EQ(ompx_target_gather(b, b + 2000, all, bytes, 0, group_), 0);
    expect(whole, [&](int member, std::size_t i) {
        return member == 0 ? brought(from(i), 2000 + i % block) : brought(member, i);
    });
    fill();
    ASSERT_EQ(ompx_target_scatter(b, b + 2000, all, bytes, size_ - 1, group_), 0);
    expect(block, [&](int member, std::size_t i) {
        return brought(size_ - 1, 2000 + static_cast<std::size_t>(member) * block + i);
    });
    fill();
    ASSERT_EQ(ompx_target_alltoall(b, b + 2000, all, bytes, group_), 0);
    expect(whole, [&](int member, std::size_t i) {
        return brought(from(i), 2000 + static_cast<std::size_t>(member) * block + i % block);
    });
    fill(); // in place
    ASSERT_EQ(ompx_target_alltoall(b, b, all, bytes, group_), 0);
    expect(whole, [&](int member, std::size_t i) {
        return brought(from(i), static_cast<std::size_t>(member) * block + i % block);
    });
}

TEST_F(device_collectives, blocks_of_any_size) {
    std::int32_t *const b = buffer_.data();
    std::vector<std::size_t> nbytes;
    std::vector<std::size_t> offsets;
    std::size_t at = 0;
    for (int member = 0; member < size_; ++member) {
        nbytes.push_back(static_cast<std::size_t>(member * 7) * sizeof(*b)); // the first is empty
        offsets.push_back(at);
        at += nbytes.back() + sizeof(*b);
    }
    auto const wanted = [&](std::size_t i, int keeps) {
        for (int member = 0; member < size_; ++member) {
            std::size_t const first = offsets[static_cast<std::size_t>(member)] / sizeof(*b);
            if (i >= first && i < first + static_cast<std::size_t>(member * 7)) {
                return brought(member, 2000 + i - first);
            }
        }
        return brought(keeps, i);
    };
    fill();
    ASSERT_EQ(ompx_target_allgatherv(b, nbytes.data(), offsets.data(), b + 2000, all, group_), 0);
    expect(at / sizeof(*b), [&](int member, std::size_t i) { return wanted(i, member); });
    fill();
    ASSERT_EQ(ompx_target_gatherv(b, nbytes.data(), offsets.data(), b + 2000, all, 0, group_), 0);
    expect(at / sizeof(*b), [&](int member, std::size_t i) {
        return member == 0 ? wanted(i, 0) : brought(member, i);
    });
    std::vector<std::size_t> const even(static_cast<std::size_t>(size_), 5 * sizeof(*b));
    fill();
    ASSERT_EQ(
        ompx_target_alltoallv(b, even.data(), nullptr, b + 2000, even.data(), nullptr, all, group_),
        0);
    expect(static_cast<std::size_t>(size_) * 5, [&](int member, std::size_t i) {
        return brought(static_cast<int>(i / 5),
                       2000 + static_cast<std::size_t>(member) * 5 + i % 5);
    });
}

TEST_F(device_collectives, a_thread_for_each_device_and_without_blocking) {
    std::int32_t *const b = buffer_.data();
    fill();
    std::vector<std::thread> threads;
    for (int const device : devices_) {
        threads.emplace_back([this, b, device] {
            EXPECT_EQ(ompx_target_allreduce(b, b, device, length, OMPX_INT32, OMPX_SUM, group_), 0);
        });
    }
    for (std::thread &each : threads) {
        each.join();
    }
    expect(length, [&](int, std::size_t i) { return sum(i); });
    fill();
    std::vector<ompx_event_t> events(devices_.size());
    for (std::size_t place = devices_.size(); place-- > 0;) {
        ASSERT_EQ(ompx_target_allreduce_nb(b, b, devices_[place], length, OMPX_INT32, OMPX_SUM,
                                           group_, &events[place]),
                  0);
    }
    for (ompx_event_t &event : events) {
        ASSERT_EQ(ompx_event_wait(&event), 0);
    }
    expect(length, [&](int, std::size_t i) { return sum(i); });
}

// Operations of groups that share a device must come in one order on all ranks, which is that of
// the program: each of these begins when the one before it is over, whatever its group.
TEST_F(device_collectives, calls_on_several_groups_run_in_the_order_of_the_program) {
    const char *const chosen = std::getenv("DIOMP_CCL");
    if (chosen != nullptr && std::string_view(chosen) == "native") {
        GTEST_SKIP() << "native groups are independent";
    }
    ompx_group_t other = OMPX_GROUP_NONE;
    ASSERT_EQ(ompx_group_dup(group_, &other), 0);
    std::int32_t *const b = buffer_.data();
    for (int round = 0; round < 20; ++round) {
        fill();
        std::vector<ompx_event_t> events(4);
        ASSERT_EQ(
            ompx_target_allreduce_nb(b, b, all, length, OMPX_INT32, OMPX_SUM, group_, &events[0]),
            0);
        ASSERT_EQ(
            ompx_target_allreduce_nb(b, b, all, length, OMPX_INT32, OMPX_MAX, other, &events[1]),
            0);
        ASSERT_EQ(
            ompx_target_allreduce_nb(b, b, all, length, OMPX_INT32, OMPX_SUM, group_, &events[2]),
            0);
        ASSERT_EQ(
            ompx_target_allreduce_nb(b, b, all, length, OMPX_INT32, OMPX_SUM, other, &events[3]),
            0);
        for (ompx_event_t &event : events) {
            ASSERT_EQ(ompx_event_wait(&event), 0);
        }
        expect(length, [&](int, std::size_t i) { return sum(i) * size_ * size_; });
    }
    EXPECT_EQ(ompx_group_free(&other), 0);
}

TEST_F(device_collectives, calls_that_differ_are_an_error_on_all) {
    if (ompx_num_ranks() == 1) {
        GTEST_SKIP() << "one rank cannot disagree";
    }
    std::int32_t *const b = buffer_.data();
    std::size_t const count = ompx_rank_num() == 0 ? 100 : 101;
    EXPECT_EQ(ompx_target_allreduce(b, b, all, count, OMPX_INT32, OMPX_SUM, group_),
              OMPX_ERR_MISMATCH);
    fill();
    EXPECT_EQ(ompx_target_allreduce(b, b, all, length, OMPX_INT32, OMPX_SUM, group_), 0);
    expect(length, [&](int, std::size_t i) { return sum(i); });
    EXPECT_EQ(ompx_target_allreduce(b, b, all, 0, OMPX_INT32, OMPX_SUM, group_), 0);
}

class demanded_library : public device_collectives {};

TEST_F(demanded_library, DISABLED_that_cannot_be_is_an_error) {
    std::int32_t *const b = buffer_.data();
    EXPECT_EQ(ompx_target_allreduce(b, b, all, 10, OMPX_INT32, OMPX_SUM, group_),
              OMPX_ERR_UNSUPPORTED);
    EXPECT_THAT(ompx_last_error(), testing::HasSubstr("DIOMP_CCL demands"));
}

} // namespace
} // namespace diomp::test
