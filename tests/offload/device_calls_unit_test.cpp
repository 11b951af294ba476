// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The code of GPUs for calls in target regions, on a processor: threads of the test are those of
// the device, and arrays are the segments of two ranks.
#include "diomp/device_calls.h"
#include "offload/internal/endpoint_record.h"
#include "offload/internal/region_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace {

using testing::HasSubstr;

constexpr std::size_t segment_bytes = 4096;
constexpr std::size_t symmetric_end = 2048; ///< half of it is mapped at the other rank
constexpr std::size_t mapped_begin = 3072;

class device_calls : public testing::Test {
protected:
    device_calls() {
        own_.version = DIOMP_ENDPOINT_VERSION;
        own_.rank = 0;
        own_.num_ranks = 3; // rank 2 is not mapped
        own_.base = address(mine_.data());
        own_.segment_bytes = segment_bytes;
        own_.peers = peers_.data();
        own_.symmetric_end = symmetric_end;
        own_.mapped_begin = mapped_begin;
        own_.host_begin = address(host_.data());
        own_.host_bytes = host_.size();
        own_.broken = &broken_;
        own_.error = &error_;
        peers_[0] = {own_.base, ~std::uint64_t{0}, 0, 0};
        peers_[1] = {address(theirs_.data()), symmetric_end, mapped_begin + 512, 0};
    }

    static std::uint64_t address(const void *at) { return reinterpret_cast<std::uintptr_t>(at); }
    int put(int rank, void *dst, const void *src, std::uint64_t nbytes) {
        return diomp_device_put(&own_, DIOMP_CALL_PUT, rank, dst, src, nbytes, {0, 1}, nullptr);
    }
    /// The message of the error that the device has stored; "" if none.
    std::string message() {
        if (error_.written != error_.taken + 1) {
            return "";
        }
        auto const found = diomp::offload::describe_region_error(error_, 4, own_.num_ranks);
        ++error_.taken;
        return std::string(found.function) + "(" + found.arguments + "): " + found.why.message();
    }
    template <typename T>
    T *at(std::size_t offset) {
        return reinterpret_cast<T *>(mine_.data() + offset);
    }
    template <typename T>
    T &there(std::size_t offset) {
        return *reinterpret_cast<T *>(theirs_.data() + offset);
    }
    template <typename T>
    int fetch(T operand, T *result, int type, int op) {
        return diomp_device_atomic_fetch(&own_, 1, at<T>(64), &operand, result, type, op);
    }

    alignas(64) std::array<char, segment_bytes> mine_{};
    alignas(64) std::array<char, segment_bytes> theirs_{};
    alignas(64) std::array<char, 64> host_{};
    std::array<diomp_peer, 3> peers_{};
    std::int32_t broken_ = 0;
    diomp_device_error error_{};
    diomp_endpoint own_{};
};

TEST_F(device_calls, puts_of_all_alignments_write_their_bytes_only) {
    for (std::size_t const nbytes : {0UL, 1UL, 2UL, 3UL, 4UL, 5UL, 7UL, 8UL, 9UL, 15UL, 16UL, 17UL,
                                     33UL, 64UL, 100UL, 500UL}) {
        for (std::size_t to = 16; to < 32; ++to) {
            for (std::size_t from = 16; from < 32; from += 3) {
                std::vector<char> source(from + nbytes);
                std::iota(source.begin(), source.end(), char{1});
                theirs_.fill(0);
                ASSERT_EQ(put(1, at<char>(to), source.data() + from, nbytes), OMPX_SUCCESS);
                ASSERT_EQ(std::memcmp(theirs_.data() + to, source.data() + from, nbytes), 0);
                ASSERT_EQ(theirs_[to - 1], 0);
                ASSERT_EQ(theirs_[to + nbytes], 0);
            }
        }
    }
}

/// What describe_peer() says of a segment of `theirs` bytes, of which [0, front) and the last
/// `back` bytes are mapped, to an own one of `own` bytes. The second halves are OpenMP's.
diomp_peer peer_of(std::uint64_t theirs, std::uint64_t front, std::uint64_t back,
                   std::uint64_t own) {
    static std::byte base;
    diomp::offload::peer_segments::view mapped;
    mapped.base = &base;
    mapped.extents = {{theirs - back, back}, {0, front}};
    diomp_peer found = diomp::offload::describe_peer(mapped, theirs, theirs, {own / 2, own});
    EXPECT_EQ(found.base, reinterpret_cast<std::uintptr_t>(&base));
    found.base = 0x10000;
    return found;
}

TEST_F(device_calls, counterparts_in_segments_of_other_sizes) {
    own_.symmetric_end = segment_bytes / 2;
    own_.mapped_begin = segment_bytes / 2;
    auto const located = [&](const diomp_peer &peer, std::size_t offset) -> std::uint64_t {
        peers_[1] = peer;
        char *found = nullptr;
        EXPECT_EQ(diomp_device_locate(&own_, 1, at<char>(offset), 8, &found), DIOMP_DEVICE_OK);
        return address(found);
    };
    for (std::uint64_t const theirs :
         {std::uint64_t{segment_bytes} / 4, std::uint64_t{segment_bytes}, std::uint64_t{1} << 20}) {
        diomp_peer const peer = peer_of(theirs, 256, 512, segment_bytes);
        EXPECT_EQ(located(peer, 0), 0x10000U);
        EXPECT_EQ(located(peer, 248), 0x10000U + 248);
        EXPECT_EQ(located(peer, 249), 0U) << "its last byte is not mapped";
        EXPECT_EQ(located(peer, segment_bytes / 2), 0U);
        EXPECT_EQ(located(peer, segment_bytes - 513), 0U);
        EXPECT_EQ(located(peer, segment_bytes - 512), 0x10000U + theirs - 512);
        EXPECT_EQ(located(peer, segment_bytes - 8), 0x10000U + theirs - 8);
    }
    // All of it is mapped: the halves do not begin at the same offset.
    diomp_peer const larger =
        peer_of(4 * segment_bytes, 2 * segment_bytes, 2 * segment_bytes, segment_bytes);
    EXPECT_EQ(located(larger, segment_bytes / 2 - 8), 0x10000U + segment_bytes / 2 - 8);
    EXPECT_EQ(located(larger, segment_bytes / 2), 0x10000U + 4 * segment_bytes - segment_bytes / 2);
    // Nothing of OpenMP's memory is.
    EXPECT_EQ(located(peer_of(4 * segment_bytes, 64, 0, segment_bytes), segment_bytes - 8), 0U);
}

TEST_F(device_calls, requests_refuse_the_operators_that_loads_and_stores_refuse) {
    std::uint64_t const operand = 3;
    for (int const type :
         {OMPX_INT32, OMPX_UINT32, OMPX_INT64, OMPX_UINT64, OMPX_FLOAT, OMPX_DOUBLE}) {
        for (int op = -1; op <= OMPX_NO_OP + 1; ++op) {
            alignas(8) std::array<char, 8> word{};
            int const reason = diomp_atomic_apply(word.data(), &operand, nullptr, type, op);
            EXPECT_EQ(diomp_atomic_has(type, op) != 0, reason == DIOMP_DEVICE_OK)
                << type << " " << op;
        }
    }
}

TEST_F(device_calls, threads_of_a_team_copy_everything_once) {
    constexpr std::uint64_t count = 7;
    for (std::size_t const nbytes : {1UL, 6UL, 16UL, 113UL, 1000UL}) {
        std::vector<char> source(nbytes + 3);
        std::iota(source.begin(), source.end(), char{5});
        theirs_.fill(0);
        for (std::uint64_t thread = 0; thread < count; ++thread) {
            ASSERT_EQ(diomp_device_put(&own_, DIOMP_CALL_TEAM_PUT, 1, at<char>(9),
                                       source.data() + 3, nbytes, {thread, count}, nullptr),
                      OMPX_SUCCESS);
        }
        EXPECT_EQ(std::memcmp(theirs_.data() + 9, source.data() + 3, nbytes), 0);
        EXPECT_EQ(theirs_[8] + theirs_[9 + nbytes], 0);
    }
}

TEST_F(device_calls, gets_from_both_mapped_parts) {
    there<std::int64_t>(128) = 11;
    there<std::int64_t>(mapped_begin + 512) = 12;
    std::int64_t value = 0;
    EXPECT_EQ(diomp_device_get(&own_, DIOMP_CALL_GET, &value, 1, at<char>(128), 8, {0, 1}, nullptr),
              0);
    EXPECT_EQ(value, 11);
    EXPECT_EQ(diomp_device_get(&own_, DIOMP_CALL_GET, &value, 1, at<char>(mapped_begin + 512), 8,
                               {0, 1}, nullptr),
              0);
    EXPECT_EQ(value, 12);
}

TEST_F(device_calls, bad_places_are_errors) {
    std::int64_t const value = 1;
    EXPECT_EQ(put(3, at<char>(0), &value, 8), OMPX_ERR_RANK);
    EXPECT_THAT(message(), HasSubstr("ompx_put(rank=3, dst=0x"));
    EXPECT_EQ(put(-1, at<char>(0), &value, 8), OMPX_ERR_RANK);
    EXPECT_THAT(message(), HasSubstr("device 4: rank -1 is outside the world of 3 ranks"));
    EXPECT_EQ(put(1, at<char>(symmetric_end - 7), &value, 8), OMPX_ERR_RANGE);
    EXPECT_THAT(message(), HasSubstr("exceeds the symmetric memory"));
    EXPECT_EQ(put(1, at<char>(segment_bytes - 7), &value, 8), OMPX_ERR_RANGE);
    EXPECT_THAT(message(), HasSubstr("exceeds"));
    EXPECT_EQ(put(1, at<char>(symmetric_end), &value, 8), OMPX_ERR_ADDRESS);
    EXPECT_THAT(message(), HasSubstr("local or asymmetric memory"));
    EXPECT_EQ(put(1, at<char>(mapped_begin - 1), &value, 8), OMPX_ERR_ADDRESS);
    EXPECT_THAT(message(), HasSubstr("local or asymmetric memory"));
    EXPECT_EQ(put(1, at<char>(segment_bytes), &value, 8), OMPX_ERR_ADDRESS);
    EXPECT_THAT(message(), HasSubstr("neither in this rank's segment"));
    EXPECT_EQ(put(1, nullptr, &value, 8), OMPX_ERR_ARG);
    EXPECT_THAT(message(), HasSubstr("a pointer is null"));
    EXPECT_EQ(put(1, at<char>(0), nullptr, 8), OMPX_ERR_ARG);
    EXPECT_THAT(message(), HasSubstr("a pointer is null"));
    EXPECT_EQ(put(1, at<char>(0), host_.data(), 8), OMPX_ERR_ADDRESS);
    EXPECT_THAT(message(), HasSubstr("the local address is global host memory"));
    EXPECT_EQ(put(1, at<char>(0), &value, std::numeric_limits<std::uint64_t>::max()), OMPX_ERR_ARG);
    EXPECT_THAT(message(), HasSubstr("overflows"));
    EXPECT_EQ(put(1, at<char>(0), &value, 1 << 20), OMPX_ERR_RANGE);
    EXPECT_THAT(message(), HasSubstr("exceeds"));
    EXPECT_TRUE(std::ranges::all_of(theirs_, [](char each) { return each == 0; }));
}

TEST_F(device_calls, what_is_not_mapped_is_unreachable) {
    std::int64_t const value = 1;
    EXPECT_EQ(put(2, at<char>(0), &value, 8), OMPX_ERR_UNSUPPORTED);
    EXPECT_THAT(message(), HasSubstr("can neither load nor store"));
    EXPECT_EQ(put(1, at<char>(mapped_begin), &value, 8), OMPX_ERR_UNSUPPORTED);
    EXPECT_THAT(message(), HasSubstr("can neither load nor store"));
    EXPECT_EQ(put(1, host_.data(), &value, 8), OMPX_ERR_UNSUPPORTED);
    EXPECT_THAT(message(), HasSubstr("can neither load nor store"));
    EXPECT_EQ(put(2, at<char>(0), &value, 0), OMPX_SUCCESS);
}

TEST_F(device_calls, the_host_gets_the_first_error_until_it_has_looked) {
    EXPECT_EQ(put(3, nullptr, nullptr, 8), OMPX_ERR_RANK);
    EXPECT_EQ(put(1, nullptr, nullptr, 8), OMPX_ERR_ARG);
    EXPECT_THAT(message(), HasSubstr("rank 3 is outside"));
    EXPECT_EQ(message(), "");
    EXPECT_EQ(put(1, nullptr, nullptr, 8), OMPX_ERR_ARG);
    EXPECT_THAT(message(), HasSubstr("a pointer is null"));
}

TEST_F(device_calls, errors_of_many_threads_are_one) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([this] {
            for (int j = 0; j < 100; ++j) {
                EXPECT_EQ(put(7, nullptr, nullptr, 8), OMPX_ERR_RANK);
            }
        });
    }
    for (std::thread &each : threads) {
        each.join();
    }
    EXPECT_EQ(own_.error_claim, 1U);
    EXPECT_THAT(message(), HasSubstr("rank 7 is outside"));
}

TEST_F(device_calls, signals) {
    std::int64_t const value = 99;
    auto const signal = [&](std::uint64_t *where, std::uint64_t number, int op) {
        return diomp_device_put_signal(&own_, 1, at<char>(8), &value, 8, {where, number, op});
    };
    EXPECT_EQ(signal(at<std::uint64_t>(256), 5, OMPX_SIGNAL_SET), 0);
    EXPECT_EQ(signal(at<std::uint64_t>(256), 3, OMPX_SIGNAL_ADD), 0);
    EXPECT_EQ(there<std::uint64_t>(256), 8U);
    EXPECT_EQ(there<std::int64_t>(8), 99);
    there<std::int64_t>(8) = 0;
    EXPECT_EQ(signal(at<std::uint64_t>(260), 3, OMPX_SIGNAL_ADD), OMPX_ERR_ARG);
    EXPECT_THAT(message(), HasSubstr("not aligned"));
    EXPECT_EQ(signal(at<std::uint64_t>(256), 3, 7), OMPX_ERR_ARG);
    EXPECT_THAT(message(), HasSubstr("does not take this operator"));
    EXPECT_EQ(signal(nullptr, 3, OMPX_SIGNAL_SET), OMPX_ERR_ARG);
    EXPECT_EQ(there<std::int64_t>(8), 0); // not without its signal
}

TEST_F(device_calls, waits_end_when_the_condition_holds) {
    std::uint64_t signal = 0;
    diomp_call const call{DIOMP_CALL_SIGNAL_WAIT, -1, {}};
    std::thread sender([&] { diomp_release_64(&signal, 3); });
    EXPECT_EQ(diomp_device_wait(&own_, &call, &signal, {8, 0, OMPX_CMP_GE, 3}), 0);
    sender.join();
    std::int32_t const narrow = -4;
    std::int32_t wanted = -5;
    EXPECT_EQ(diomp_device_wait_until(&own_, &narrow, OMPX_INT32, OMPX_CMP_GT, &wanted), 0);
    EXPECT_EQ(diomp_device_wait_until(&own_, &narrow, OMPX_UINT32, OMPX_CMP_GT, &wanted), 0);
    wanted = 1;
    EXPECT_EQ(diomp_device_wait_until(&own_, &narrow, OMPX_INT32, OMPX_CMP_LT, &wanted), 0);
    EXPECT_EQ(diomp_device_wait_until(&own_, &narrow, OMPX_UINT32, OMPX_CMP_GE, &wanted), 0);
    std::int64_t const wide = -1;
    std::int64_t const zero = 0;
    EXPECT_EQ(diomp_device_wait_until(&own_, &wide, OMPX_INT64, OMPX_CMP_LE, &zero), 0);
    EXPECT_EQ(diomp_device_wait_until(&own_, &wide, OMPX_UINT64, OMPX_CMP_NE, &zero), 0);
    EXPECT_EQ(diomp_device_wait_until(&own_, &wide, OMPX_FLOAT, OMPX_CMP_NE, &zero), OMPX_ERR_ARG);
    EXPECT_THAT(message(), HasSubstr("does not take this type"));
}

TEST_F(device_calls, waits_end_by_the_timeout_and_by_a_broken_job) {
    std::uint64_t const signal = 41;
    diomp_call const call{DIOMP_CALL_SIGNAL_WAIT, -1, {address(&signal), 3, 42, 0}};
    own_.timeout_ns = 30'000'000;
    EXPECT_EQ(diomp_device_wait(&own_, &call, &signal, {8, 0, OMPX_CMP_GE, 42}), OMPX_ERR_TIMEOUT);
    EXPECT_THAT(message(), HasSubstr("timed out; the variable was 41"));
    own_.timeout_ns = 0;
    std::thread runtime([&] { __atomic_store_n(&broken_, OMPX_ERR_PEER, __ATOMIC_RELEASE); });
    EXPECT_EQ(diomp_device_wait(&own_, &call, &signal, {8, 0, OMPX_CMP_GE, 42}), OMPX_ERR_PEER);
    runtime.join();
    EXPECT_THAT(message(), HasSubstr("the job is broken"));
    EXPECT_EQ(diomp_device_test(&own_, &call, &signal, {8, 0, OMPX_CMP_GE, 42}), 0);
    EXPECT_EQ(diomp_device_test(&own_, &call, &signal, {8, 0, OMPX_CMP_GE, 41}), 1);
    EXPECT_EQ(diomp_device_test(&own_, &call, host_.data(), {8, 0, OMPX_CMP_GE, 42}),
              OMPX_ERR_ADDRESS);
}

TEST_F(device_calls, floating_atomics_treat_nan_and_zero_as_the_host_does) {
    there<double>(64) = -0.0;
    double old = 1;
    EXPECT_EQ(fetch(0.0, &old, OMPX_DOUBLE, OMPX_MAX), 0);
    EXPECT_TRUE(std::signbit(old));
    EXPECT_FALSE(std::signbit(there<double>(64)));
    EXPECT_EQ(fetch(-0.0, &old, OMPX_DOUBLE, OMPX_MIN), 0);
    EXPECT_TRUE(std::signbit(there<double>(64)));
    EXPECT_EQ(fetch(std::nan("7"), &old, OMPX_DOUBLE, OMPX_MIN), 0);
    EXPECT_EQ(there<std::uint64_t>(64), 0x7ff8000000000000U);
    there<float>(64) = 2;
    float old_float = 0;
    EXPECT_EQ(fetch(-3.0F, &old_float, OMPX_FLOAT, OMPX_MIN), 0);
    EXPECT_EQ(there<float>(64), -3.0F);
    EXPECT_EQ(fetch(std::nanf("1"), &old_float, OMPX_FLOAT, OMPX_MAX), 0);
    EXPECT_EQ(there<std::uint32_t>(64), 0x7fc00000U);
    EXPECT_EQ(fetch(1.0F, &old_float, OMPX_FLOAT, OMPX_BXOR), OMPX_ERR_ARG);
}

TEST_F(device_calls, concurrent_additions_lose_nothing) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([this] {
            for (int j = 0; j < 1000; ++j) {
                double const half = 0.5;
                EXPECT_EQ(diomp_device_atomic_fetch(&own_, 1, at<char>(64), &half, nullptr,
                                                    OMPX_DOUBLE, OMPX_SUM),
                          0);
                std::int32_t const one = 1;
                EXPECT_EQ(diomp_device_atomic_fetch(&own_, 1, at<char>(128), &one, nullptr,
                                                    OMPX_INT32, OMPX_SUM),
                          0);
            }
        });
    }
    for (std::thread &each : threads) {
        each.join();
    }
    EXPECT_EQ(there<double>(64), 2000.0);
    EXPECT_EQ(there<std::int32_t>(128), 4000);
}

TEST_F(device_calls, compare_and_swap) {
    there<std::int32_t>(64) = 4;
    std::int32_t const expected = 4;
    std::int32_t const desired = 9;
    std::int32_t old = 0;
    EXPECT_EQ(
        diomp_device_compare_swap(&own_, 1, at<char>(64), &expected, &desired, &old, OMPX_INT32),
        0);
    EXPECT_EQ(old, 4);
    EXPECT_EQ(
        diomp_device_compare_swap(&own_, 1, at<char>(64), &expected, &desired, &old, OMPX_INT32),
        0);
    EXPECT_EQ(old, 9);
    EXPECT_EQ(
        diomp_device_compare_swap(&own_, 1, at<char>(66), &expected, &desired, &old, OMPX_INT32),
        OMPX_ERR_ARG);
    EXPECT_EQ(
        diomp_device_compare_swap(&own_, 1, at<char>(64), &expected, &desired, &old, OMPX_INT16),
        OMPX_ERR_ARG);
}

} // namespace
