// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// More of collectives of endpoints on devices: what matters where they go from device to device.
// ctest says by TEST_KERNELS whether large reductions run on the devices; if it says nothing the
// way does not matter.
#include "offload/accelerator_collectives.h"

#include <cstring>
#include <random>

namespace diomp::test {
namespace {

int launches() { return scripted::ask_stand_in<int>("_launches"); }

TEST_F(device_collectives, reductions_run_where_they_are_expected) {
    if (kernels().empty()) {
        GTEST_SKIP() << "the way does not matter";
    }
    std::int32_t *const b = buffer_.data();
    auto const launched = [&](std::size_t count) {
        int const before = launches();
        fill();
        EXPECT_EQ(ompx_target_allreduce(b, b, all, count, OMPX_INT32, OMPX_SUM, group_), 0);
        expect(count, [&](int, std::size_t i) { return sum(i); });
        return launches() - before;
    };
    EXPECT_EQ(launched(length), kernels() == "none" ? 0 : num_own());
    // An array shorter than a share for each: the last members have one, those before nothing.
    EXPECT_LE(launched(1), 1);
}

/// Positive numbers below 2 of any type, with bits in all places.
std::vector<std::byte> any_numbers(ompx_type_t type, std::size_t count, unsigned seed) {
    std::size_t const unit = ompx_type_size(type);
    bool const is_complex = type == OMPX_FLOAT_COMPLEX || type == OMPX_DOUBLE_COMPLEX;
    std::size_t const part = is_complex ? unit / 2 : unit;
    std::vector<std::byte> made(count * unit);
    std::mt19937 random(seed);
    for (std::size_t i = 0; i < made.size(); ++i) {
        unsigned const bits = type == OMPX_BOOL ? random() & 1 : random() & 255;
        bool const is_top = type >= OMPX_FLOAT16 && type != OMPX_BOOL && i % part == part - 1;
        made[i] = static_cast<std::byte>(is_top ? bits & 0x3f : bits);
    }
    return made;
}

// All of them at least by way of host memory: long double, which no GPU has.
TEST_F(device_collectives, every_type_and_operator_gives_the_bits_of_a_call_of_ranks) {
    if (size_ != ompx_num_ranks() || size_ == 1 || kernels().empty()) {
        GTEST_SKIP() << "a rank with several endpoints may combine its own operands first, and a "
                        "library as it likes";
    }
    constexpr std::size_t count = 700;
    std::int32_t *const b = buffer_.data();
    for (ompx_type_t type = OMPX_INT8; type <= OMPX_DOUBLE_COMPLEX + 1; ++type) {
        if (type == OMPX_LONG_DOUBLE) {
            continue; // its bits are not all a value's
        }
        for (ompx_op_t const op : {OMPX_SUM, OMPX_PROD, OMPX_MIN, OMPX_MAX, OMPX_BAND, OMPX_BOR,
                                   OMPX_BXOR, OMPX_LAND, OMPX_LOR, OMPX_AVG}) {
            auto const own = any_numbers(type, count, static_cast<unsigned>(first_));
            std::vector<std::byte> wanted(own.size());
            int const outcome =
                ompx_allreduce(wanted.data(), own.data(), count, type, op, ompx_group_world);
            scripted::write(copies_[0], own);
            ASSERT_EQ(ompx_target_allreduce(b, b, all, count, type, op, group_), outcome);
            if (outcome == OMPX_SUCCESS) {
                auto const got = scripted::read<std::byte>(copies_[0], own.size());
                ASSERT_EQ(std::memcmp(got.data(), wanted.data(), got.size()), 0)
                    << "type " << type << ", operator " << op;
            }
        }
    }
}

TEST_F(device_collectives, operators_of_the_program_and_types_without_kernels) {
    std::int32_t *const b = buffer_.data();
    ompx_op_t op = 0;
    auto const function = [](void *inout, const void *in, std::size_t count, ompx_type_t, void *) {
        auto *const into = static_cast<std::int32_t *>(inout);
        for (std::size_t i = 0; i < count; ++i) {
            into[i] += static_cast<const std::int32_t *>(in)[i];
        }
    };
    ASSERT_EQ(ompx_op_create(&op, function, nullptr, 1), 0);
    fill();
    ASSERT_EQ(ompx_target_allreduce(b, b, all, length, OMPX_INT32, op, group_), 0);
    expect(length, [&](int, std::size_t i) { return sum(i); });
    ASSERT_EQ(ompx_op_free(&op), 0);
    std::vector<long double> const ones(100, 1.0L);
    for (void *const copy : copies_) {
        scripted::write(copy, ones);
    }
    ASSERT_EQ(ompx_target_allreduce(b, b, all, 100, OMPX_LONG_DOUBLE, OMPX_SUM, group_), 0);
    for (void *const copy : copies_) {
        EXPECT_EQ(scripted::read<long double>(copy, 100),
                  std::vector<long double>(100, static_cast<long double>(size_)));
    }
}

TEST_F(device_collectives, in_place) {
    if (num_own() > 1) {
        GTEST_SKIP() << "one call for several endpoints has one pointer, so not each's own block";
    }
    constexpr std::size_t block = 500;
    constexpr std::size_t bytes = block * sizeof(std::int32_t);
    std::int32_t *const b = buffer_.data();
    std::int32_t *const own = b + static_cast<std::size_t>(first_) * block;
    std::size_t const whole = static_cast<std::size_t>(size_) * block;
    auto const from = [](std::size_t i) { return static_cast<int>(i / block); };
    fill();
    ASSERT_EQ(ompx_target_allgather(b, own, all, bytes, group_), 0);
    expect(whole, [&](int, std::size_t i) { return brought(from(i), i); });
    fill();
    ASSERT_EQ(ompx_target_gather(b, first_ == 0 ? own : b + 1, all, bytes, 0, group_), 0);
    expect(whole, [&](int member, std::size_t i) {
        return member == 0 ? brought(from(i), from(i) == 0 ? i : 1 + i % block)
                           : brought(member, i);
    });
    fill();
    ASSERT_EQ(ompx_target_scatter(first_ == 0 ? own : b, b, all, bytes, 0, group_), 0);
    expect(block, [&](int member, std::size_t i) {
        return brought(0, static_cast<std::size_t>(member) * block + i);
    });
    fill();
    ASSERT_EQ(ompx_target_reduce(b, b, all, length, OMPX_INT32, OMPX_SUM, 0, group_), 0);
    expect(length,
           [&](int member, std::size_t i) { return member == 0 ? sum(i) : brought(member, i); });
    fill();
    ASSERT_EQ(ompx_target_reduce_scatter(b, b, all, block, OMPX_INT32, OMPX_SUM, group_), 0);
    expect(block, [&](int member, std::size_t i) {
        return sum(static_cast<std::size_t>(member) * block + i);
    });
}

// Each result has all operands before it, rounded after each.
TEST_F(device_collectives, scans_give_the_bits_of_calls_of_ranks) {
    if (size_ != ompx_num_ranks() || kernels().empty()) {
        GTEST_SKIP() << "there are no ranks for all endpoints, or the way does not matter";
    }
    constexpr std::size_t count = 700;
    std::int32_t *const b = buffer_.data();
    std::int32_t *const beside = b + 1500;
    auto const offset = reinterpret_cast<std::byte *>(beside) - reinterpret_cast<std::byte *>(b);
    for (ompx_type_t const type : {OMPX_INT16, OMPX_BFLOAT16, OMPX_FLOAT, OMPX_DOUBLE}) {
        for (bool const in_place : {true, false}) {
            auto const own = any_numbers(type, count, static_cast<unsigned>(first_));
            std::vector<std::byte> scanned(own.size());
            std::vector<std::byte> before = own; // member 0's is left as it is
            ASSERT_EQ(
                ompx_scan(scanned.data(), own.data(), count, type, OMPX_SUM, ompx_group_world), 0);
            ASSERT_EQ(
                ompx_exscan(before.data(), own.data(), count, type, OMPX_SUM, ompx_group_world), 0);
            auto *const array = static_cast<std::byte *>(copies_[0]);
            std::byte *const result = array + (in_place ? 0 : offset);
            void *const dst = in_place ? b : beside;
            through_host const counted;
            scripted::write(array, own);
            ASSERT_EQ(ompx_target_scan(dst, b, all, count, type, OMPX_SUM, group_), 0);
            EXPECT_EQ(scripted::read<std::byte>(result, own.size()), scanned);
            scripted::write(array, own);
            scripted::write(result, own);
            ASSERT_EQ(ompx_target_exscan(dst, b, all, count, type, OMPX_SUM, group_), 0);
            EXPECT_EQ(scripted::read<std::byte>(result, own.size()), before);
            counted.check();
        }
    }
}

// Others read where the results go.
TEST_F(device_collectives, all_blocks_in_place) {
    std::int32_t *const b = buffer_.data();
    auto const block = length / static_cast<std::size_t>(size_);
    through_host const counted;
    fill();
    ASSERT_EQ(ompx_target_reduce_scatter(b, b, all, block, OMPX_INT32, OMPX_SUM, group_), 0);
    expect(length, [&](int member, std::size_t i) {
        return i < block ? sum(static_cast<std::size_t>(member) * block + i) : brought(member, i);
    });
    fill();
    ASSERT_EQ(ompx_target_alltoall(b, b, all, block * sizeof(*b), group_), 0);
    expect(length, [&](int member, std::size_t i) {
        return i < block * static_cast<std::size_t>(size_)
                   ? brought(static_cast<int>(i / block),
                             static_cast<std::size_t>(member) * block + i % block)
                   : brought(member, i);
    });
    counted.check();
}

TEST_F(device_collectives, larger_blocks_change_places_piece_by_piece) {
    if (kernels().empty()) {
        GTEST_SKIP() << "more than NCCL's stand-in holds";
    }
    constexpr std::size_t block = std::size_t{5} << 18; // more than a piece
    std::size_t const whole = static_cast<std::size_t>(size_) * block;
    values host(whole);
    std::vector<void *> arrays;
    auto const value = [](int member, std::size_t i) {
        return static_cast<std::int32_t>(i) ^ (member << 24);
    };
    for (int place = 0; place < num_own(); ++place) {
        arrays.push_back(scripted::map(host.data(), whole * sizeof(host[0]),
                                       devices_[static_cast<std::size_t>(place)]));
        values made(whole);
        for (std::size_t i = 0; i < whole; ++i) {
            made[i] = value(first_ + place, i);
        }
        scripted::write(arrays.back(), made);
    }
    through_host const counted;
    ASSERT_EQ(ompx_target_alltoall(host.data(), host.data(), all, block * sizeof(host[0]), group_),
              0);
    counted.check();
    for (int place = 0; place < num_own(); ++place) {
        values const got =
            scripted::read<std::int32_t>(arrays[static_cast<std::size_t>(place)], whole);
        bool is_right = true;
        for (std::size_t i = 0; i < whole; ++i) {
            std::size_t const at = static_cast<std::size_t>(first_ + place) * block + i % block;
            is_right = is_right && got[i] == value(static_cast<int>(i / block), at);
        }
        EXPECT_TRUE(is_right) << "place " << place;
        scripted::unmap(host.data(), devices_[static_cast<std::size_t>(place)]);
    }
}

TEST_F(device_collectives, device_that_fails_is_an_error_on_all_and_the_group_goes_on) {
    if (kernels() != "run" || ompx_num_ranks() == 1) {
        GTEST_SKIP() << "no kernel is launched, or nobody else is there";
    }
    std::int32_t *const b = buffer_.data();
    fill();
    bool const is_first = ompx_rank_num() == 0;
    if (is_first) {
        scripted::fail_launches();
    }
    EXPECT_EQ(ompx_target_allreduce(b, b, all, length, OMPX_INT32, OMPX_SUM, group_),
              OMPX_ERR_SYSTEM);
    EXPECT_THAT(ompx_last_error(), testing::HasSubstr(is_first ? scripted::used().launch
                                                               : "a device of rank 0 failed"));
    scripted::fail_nothing();
    fill();
    EXPECT_EQ(ompx_target_allreduce(b, b, all, length, OMPX_INT32, OMPX_SUM, group_), 0);
    expect(length, [&](int, std::size_t i) { return sum(i); });
}

TEST_F(device_collectives, members_that_differ_in_anything_get_an_error) {
    if (ompx_num_ranks() == 1) {
        GTEST_SKIP() << "one rank cannot disagree";
    }
    std::int32_t *const b = buffer_.data();
    bool const is_first = ompx_rank_num() == 0;
    EXPECT_EQ(ompx_target_allreduce(b, b, all, length, OMPX_INT32, is_first ? OMPX_SUM : OMPX_PROD,
                                    group_),
              OMPX_ERR_MISMATCH);
    EXPECT_THAT(ompx_last_error(), testing::HasSubstr("OMPX_PROD"));
    EXPECT_EQ(ompx_target_allreduce(b, b, all, length, is_first ? OMPX_INT32 : OMPX_UINT32,
                                    OMPX_SUM, group_),
              OMPX_ERR_MISMATCH);
    if (kernels() == "run") { // between nodes two roots do not wait for anybody
        EXPECT_EQ(ompx_target_bcast(b, all, 4 * length, is_first ? 0 : size_ - 1, group_),
                  OMPX_ERR_MISMATCH);
    }
    EXPECT_EQ(is_first ? ompx_target_alltoall(b, b + 2000, all, 500, group_)
                       : ompx_target_allgather(b, b + 2000, all, 500, group_),
              OMPX_ERR_MISMATCH);
    fill();
    EXPECT_EQ(ompx_target_allreduce(b, b, all, length, OMPX_INT32, OMPX_SUM, group_), 0);
    expect(length, [&](int, std::size_t i) { return sum(i); });
}

std::int32_t g_outside[length]; // NOLINT(*-avoid-non-const-global-variables): `declare target`

// Others do not reach a variable of an image.
TEST_F(device_collectives, a_buffer_outside_of_its_segment_sends_all_through_host_memory) {
    static bool const is_declared = [] {
        scripted::declare(g_outside, sizeof(g_outside), "outside");
        return true;
    }();
    ASSERT_TRUE(is_declared);
    bool const is_last = ompx_rank_num() == ompx_num_ranks() - 1;
    fill();
    through_host const counted;
    ASSERT_EQ(
        ompx_target_bcast(is_last ? g_outside : buffer_.data(), all, sizeof(g_outside), 0, group_),
        0);
    if (!kernels().empty()) {
        EXPECT_GT(counted.bytes(), 0U);
    }
    if (!is_last) {
        expect(length, [](int, std::size_t i) { return brought(0, i); });
        return;
    }
    for (int const device : devices_) {
        values got(length);
        ASSERT_EQ(
            ompx_target_get(got.data(), -1, ompx_rank_num(), g_outside, device, sizeof(g_outside)),
            0);
        values wanted(length);
        for (std::size_t i = 0; i < length; ++i) {
            wanted[i] = size_ == num_own() ? 0 : brought(0, i);
        }
        EXPECT_EQ(got, wanted);
    }
}

TEST_F(device_collectives, past_the_end_of_what_is_mapped_is_an_error_here) {
    std::int32_t *const b = buffer_.data();
    EXPECT_EQ(ompx_target_allreduce(b, b, all, length + 1, OMPX_INT32, OMPX_SUM, group_),
              OMPX_ERR_RANGE);
    EXPECT_EQ(ompx_target_allgather(b, nullptr, all, 400, group_), OMPX_ERR_ARG);
}

} // namespace
} // namespace diomp::test
