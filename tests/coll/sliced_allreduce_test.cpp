// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sliced allreduces between threads as ranks, with each exchange and with small chunks: results,
// bits, order of operands, and different calls. And which calls are sliced.
#include "coll/internal/allreduce_choice.h"
#include "coll/internal/select.h"
#include "coll/thread_calls.h"
#include "support/sanitized.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <ostream>
#include <random>
#include <tuple>

namespace diomp::coll {
namespace {

using sync::operation;
using test::storage;
using test::thread_groups;
using testing::HasSubstr;

constexpr std::size_t kibibyte = std::size_t{1} << 10;
constexpr std::size_t mebibyte = kibibyte << 10;
constexpr std::size_t slot_bytes = 16 * mebibyte;
constexpr std::size_t workspace_bytes = 4 * mebibyte;

using nodes = std::vector<std::int32_t>;

// Powers of two and other numbers of nodes, consecutive and interleaved ranks, unequal nodes.
const std::vector<nodes> layouts{{0, 0, 1, 1},
                                 {0, 1, 0, 1},
                                 {0, 0, 0, 1, 1},
                                 {0, 0, 1, 1, 2, 2},
                                 {0, 0, 1, 1, 2, 2, 3, 3},
                                 {0, 0, 1, 1, 2, 2, 3, 3, 4, 4},
                                 {0, 0, 0, 0, 1, 1, 1, 2, 2}};

// Each exchange, with and without lag; one halving, so that nodes double what is left.
const std::vector<slicing> ways{{.num_halvings = 0},
                                {.num_halvings = SIZE_MAX},
                                {.num_halvings = 1, .has_lag = true},
                                {.num_halvings = SIZE_MAX, .has_lag = true},
                                {.is_direct = true, .has_lag = true}};

class sliced : public testing::TestWithParam<std::tuple<nodes, slicing, std::size_t>> {
protected:
    [[nodiscard]] static const nodes &layout() { return std::get<0>(GetParam()); }
    [[nodiscard]] static std::size_t num_ranks() { return layout().size(); }
    static thread_groups make_job() {
        return thread_groups(
            std::make_unique<test::thread_ranks>(static_cast<int>(num_ranks()), slot_bytes),
            workspace_bytes, layout());
    }
    static options options_of(thread_groups &job) {
        options chosen = test::options_for(job);
        chosen.slicing = {.min_members = 2,
                          .forced = std::get<1>(GetParam()),
                          .max_chunk_bytes = std::get<2>(GetParam())};
        return chosen;
    }
};

std::string name_of(const testing::TestParamInfo<sliced::ParamType> &info) {
    auto const &[layout, way, chunk] = info.param;
    std::string name;
    for (std::int32_t const node : layout) {
        name += std::to_string(node);
    }
    if (way.is_direct) {
        name += "_direct";
    } else if (way.num_halvings == SIZE_MAX) {
        name += "_halving";
    } else {
        name += "_" + std::to_string(way.num_halvings) + "_halvings";
    }
    return name + (way.has_lag ? "_lag_" : "_") + std::to_string(chunk);
}

INSTANTIATE_TEST_SUITE_P(small_chunks, sliced,
                         testing::Combine(testing::ValuesIn(layouts), testing::ValuesIn(ways),
                                          testing::Values(2 * kibibyte)),
                         name_of);
// Slices as large as they can be, which are sent in parts.
INSTANTIATE_TEST_SUITE_P(large_chunks, sliced,
                         testing::Combine(testing::Values(layouts[0], layouts[4], layouts[6]),
                                          testing::ValuesIn(ways), testing::Values(SIZE_MAX)),
                         name_of);

/// Sums of these are exact in any type.
int value(std::size_t member, std::size_t i) { return static_cast<int>((i * 7 + member * 3) % 9); }

template <typename T>
void expect_sums(collectives &all, group::group &world, ompx_type_t type, std::size_t count,
                 bool in_place, std::byte *memory) {
    T *const dst = reinterpret_cast<T *>(memory);
    T *const src = in_place ? dst : dst + count + 1;
    for (std::size_t i = 0; i < count; ++i) {
        dst[i] = static_cast<T>(55);
        src[i] = static_cast<T>(value(world.self().index(), i));
    }
    T const guard = static_cast<T>(77);
    dst[count] = guard;
    request const asked{.what = operation::allreduce,
                        .dst = dst,
                        .src = src,
                        .amount = count,
                        .type = type,
                        .op = OMPX_SUM};
    status const ran = all.run(world, asked);
    ASSERT_TRUE(ran.ok()) << ran.failure().message();
    std::size_t wrong = dst[count] == guard ? 0 : 1;
    for (std::size_t i = 0; i < count; ++i) {
        int sum = 0;
        for (std::size_t member = 0; member < world.size(); ++member) {
            sum += value(member, i);
        }
        wrong += dst[i] == static_cast<T>(sum) ? 0 : 1;
        wrong += in_place || src[i] == static_cast<T>(value(world.self().index(), i)) ? 0 : 1;
    }
    EXPECT_EQ(wrong, 0U) << count << " elements of type " << type;
}

// Fewer elements than members, slices that differ, many chunks, a last chunk of a few elements.
TEST_P(sliced, sums_are_right) {
    // Many chunks: 20 of 2 KiB for each member, or slices that are sent in several parts.
    std::size_t const most = std::get<2>(GetParam()) == SIZE_MAX ? 20003 : 5003;
    thread_groups job = make_job();
    job.run([&](world_rank self) {
        collectives all(options_of(job));
        storage memory(job, self, workspace_bytes);
        group::group &world = job.registry(self).world();
        for (std::size_t const count :
             {std::size_t{1}, std::size_t{3}, std::size_t{65}, std::size_t{1000}, most}) {
            for (bool const is_global : {false, true}) {
                std::byte *const here = memory.at(is_global);
                expect_sums<double>(all, world, OMPX_DOUBLE, count, is_global, here);
                expect_sums<std::int8_t>(all, world, OMPX_INT8, count, !is_global, here);
                expect_sums<long double>(all, world, OMPX_LONG_DOUBLE, count / 2 + 1, is_global,
                                         here);
            }
        }
    });
}

// One member's operand lies in the arena, another one's does not, a third one's is not aligned.
TEST_P(sliced, members_pass_their_operands_in_different_ways) {
    thread_groups job = make_job();
    job.run([&](world_rank self) {
        collectives all(options_of(job));
        storage memory(job, self, workspace_bytes);
        group::group &world = job.registry(self).world();
        for (std::size_t round = 0; round < 6; ++round) {
            bool const is_global = (self.index() + round) % 2 == 0;
            std::size_t const offset = (self.index() + round) % 3 == 0 ? 2 : 0;
            expect_sums<std::int16_t>(all, world, OMPX_INT16, 3000 + round, round % 2 == 0,
                                      memory.at(is_global) + offset);
        }
    });
}

TEST_P(sliced, floating_sums_are_the_same_bits_on_all_members) {
    thread_groups job = make_job();
    for (std::size_t const count : {5U, 1000U, 30001U}) {
        std::vector<std::vector<float>> results(num_ranks());
        job.run([&](world_rank self) {
            collectives all(options_of(job));
            std::mt19937 random(static_cast<unsigned>(self.value() + 1));
            std::vector<float> &own = results[self.index()];
            own.resize(count);
            for (float &each : own) {
                each = std::ldexp(static_cast<float>(random()) - 2e9F,
                                  static_cast<int>(random() % 40) - 20);
            }
            EXPECT_TRUE(all.run(job.registry(self).world(), {.what = operation::allreduce,
                                                             .dst = own.data(),
                                                             .src = own.data(),
                                                             .amount = count,
                                                             .type = OMPX_FLOAT,
                                                             .op = OMPX_SUM})
                            .ok());
        });
        for (auto const &each : results) {
            EXPECT_EQ(std::memcmp(each.data(), results[0].data(), count * sizeof(float)), 0);
        }
    }
}

/// Composition of x -> a x + b modulo 2^32, which does not commute; 12 bytes are no part of a
/// cache line.
struct affine {
    std::uint32_t a, b, unused;
    bool operator==(const affine &) const = default;
};
affine then(const affine &x, const affine &y) { return {x.a * y.a, x.b * y.a + y.b, 3}; }
void compose(void *inout, const void *in, std::size_t count, ompx_type_t, void * /*context*/) {
    for (std::size_t i = 0; i < count; ++i) {
        affine &to = static_cast<affine *>(inout)[i];
        to = then(to, static_cast<const affine *>(in)[i]);
    }
}
affine affine_of(std::size_t member, std::size_t i) {
    auto const x = static_cast<std::uint32_t>(member * 31 + i);
    return {2 * x + 1, x * 5 + 2, 3};
}

TEST_P(sliced, operands_are_combined_in_rank_order) {
    thread_groups job = make_job();
    job.run([&](world_rank self) {
        collectives all(options_of(job));
        auto const op = all.operators().create(compose, nullptr, false);
        ASSERT_TRUE(op.ok());
        for (std::size_t const count : {1U, 3U, 200U, 7001U}) {
            std::vector<affine> data(count);
            std::vector<affine> expected(count);
            for (std::size_t i = 0; i < count; ++i) {
                data[i] = affine_of(self.index(), i);
                expected[i] = affine_of(0, i);
                for (std::size_t member = 1; member < num_ranks(); ++member) {
                    expected[i] = then(expected[i], affine_of(member, i));
                }
            }
            status const ran =
                all.run(job.registry(self).world(), {.what = operation::allreduce,
                                                     .dst = data.data(),
                                                     .src = data.data(),
                                                     .amount = count,
                                                     .type = OMPX_TYPE_OF_SIZE(sizeof(affine)),
                                                     .op = op.value()});
            ASSERT_TRUE(ran.ok()) << ran.failure().message();
            EXPECT_EQ(data, expected);
        }
    });
}

// Every call reuses stage buffers and messages of the ones before; bcasts let their root run ahead.
TEST_P(sliced, calls_follow_each_other_and_others) {
    thread_groups job = make_job();
    job.run([&](world_rank self) {
        collectives all(options_of(job));
        storage memory(job, self, workspace_bytes);
        group::group &world = job.registry(self).world();
        std::mt19937 random(5); // equal on all members
        constexpr int rounds = DIOMP_SANITIZED ? 25 : 80;
        for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
            std::size_t const count = 1 + random() % (random() % 2 == 0 ? 50 : 6000);
            int const root = static_cast<int>(random() % num_ranks());
            std::byte *const here = memory.at(random() % 2 == 0);
            if (random() % 3 == 0) {
                std::memset(here, self.value() == root ? round % 100 : 101, count);
                ASSERT_TRUE(
                    all.run(world,
                            {.what = operation::bcast, .dst = here, .amount = count, .root = root})
                        .ok());
                EXPECT_EQ(static_cast<int>(here[count - 1]), round % 100);
            } else {
                expect_sums<std::int32_t>(all, world, OMPX_INT32, count, random() % 2 == 0, here);
            }
        }
    });
}

TEST_P(sliced, different_calls_are_an_error_on_all_and_leave_the_buffers) {
    thread_groups job = make_job();
    job.run([&](world_rank self) {
        collectives all(options_of(job));
        storage memory(job, self, workspace_bytes);
        group::group &world = job.registry(self).world();
        constexpr std::size_t count = 20000;
        auto *const a = reinterpret_cast<std::int32_t *>(memory.at(true));
        std::fill_n(a, count, self.value());
        auto const sum = [&](std::size_t amount, ompx_type_t type, ompx_op_t op) {
            return request{.what = operation::allreduce,
                           .dst = a,
                           .src = a,
                           .amount = amount,
                           .type = type,
                           .op = op};
        };
        ASSERT_TRUE(all.run(world, sum(1, OMPX_INT32, OMPX_MIN)).ok());
        std::fill_n(a, count, self.value());
        request const usual = sum(count, OMPX_INT32, OMPX_SUM);
        std::vector<request> const others{
            sum(count, OMPX_INT32, OMPX_MAX),
            sum(count, OMPX_FLOAT, OMPX_SUM),
            sum(count - 1, OMPX_INT32, OMPX_SUM),
            sum(2, OMPX_INT32, OMPX_SUM),
            sum(0, OMPX_INT32, OMPX_SUM),
            {.what = operation::barrier},
            {.what = operation::bcast, .dst = a, .amount = 80000, .root = 1},
        };
        std::size_t number = 0;
        for (request const &different : others) {
            bool const odd = self.index() == ++number % num_ranks();
            status const ran = all.run(world, odd ? different : usual);
            ASSERT_FALSE(ran.ok()) << number;
            EXPECT_EQ(ran.failure().code(), OMPX_ERR_MISMATCH) << ran.failure().message();
            EXPECT_TRUE(std::all_of(a, a + count, [&](int each) { return each == self.value(); }));
            ASSERT_TRUE(all.run(world, {.what = operation::barrier}).ok());
        }
        expect_sums<std::int32_t>(all, world, OMPX_INT32, count, true, memory.at(true));
    });
}

allreduce_choice choice_of(std::size_t num_nodes, std::size_t num_local, std::size_t nbytes) {
    return choose_allreduce({num_nodes, num_local, num_local, nbytes / 8, 8, {}});
}

TEST(allreduce_choice, few_members_are_not_sliced) {
    for (std::size_t nodes = 1; nodes <= 4; ++nodes) {
        for (std::size_t members = 1; members <= 4; ++members) {
            for (std::size_t nbytes = 8; nbytes <= 64 * mebibyte; nbytes *= 2) {
                EXPECT_FALSE(choice_of(nodes, members, nbytes).is_sliced);
            }
        }
    }
    EXPECT_FALSE(choice_of(1, 64, mebibyte).is_sliced);
    EXPECT_FALSE(choose_allreduce({16, 1, 64, 8192, 8, {}}).is_sliced);
    EXPECT_FALSE(choice_of(16, 64, 8).is_sliced);
    EXPECT_FALSE(choice_of(16, 64, 0).is_sliced);
}

TEST(allreduce_choice, many_members_double_small_slices_and_halve_large_ones) {
    EXPECT_EQ(choice_of(16, 64, 4096).how, slicing{});
    EXPECT_GT(choice_of(16, 64, mebibyte).how.num_halvings, 0U);
    EXPECT_TRUE(choice_of(16, 64, mebibyte).how.has_lag);
    EXPECT_TRUE(choice_of(3, 64, mebibyte).how.is_direct);
    EXPECT_EQ(choice_of(16, 64, 64 * kibibyte).num_slices, 64U);
    EXPECT_EQ(choose_allreduce({16, 20, 64, 8192, 8, {}}).num_slices, 20U);
}

TEST(allreduce_choice, chunks_and_slices_fit_their_buffers) {
    std::size_t num_sliced = 0;
    for (std::size_t const nodes : {2U, 3U, 16U, 17U, 1563U}) {
        for (std::size_t const members : {2U, 5U, 64U}) {
            for (std::size_t const unit : {1U, 8U, 12U, 16U, 1000U, 65535U}) {
                for (std::size_t count = 1; count <= mebibyte; count = count * 3 + 1) {
                    allreduce_choice const chosen = choose_allreduce(
                        {nodes, members, members, count, unit, {2, false, {}, SIZE_MAX}});
                    if (!chosen.is_sliced) {
                        continue;
                    }
                    ++num_sliced;
                    EXPECT_LE(chosen.chunk_elements * unit, chosen.stage_bytes);
                    EXPECT_LE(chosen.stage_bytes, large_stage_bytes);
                    EXPECT_GE(chosen.chunk_elements, 1U);
                }
            }
        }
    }
    EXPECT_GT(num_sliced, 100U);
}

} // namespace
} // namespace diomp::coll
