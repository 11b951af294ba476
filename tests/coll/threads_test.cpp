// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The collectives with threads as ranks, so that the sanitizers see all members at once.
#include "coll/requests.h"
#include "coll/thread_calls.h"
#include "group/agreed_autotuner.h"
#include "rma/event.h"
#include "support/sanitized.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <set>

namespace diomp::coll {
namespace {

using sync::operation;
using test::draw;
using test::kind;
using test::options_for;
using test::request_of;
using test::storage;
using test::thread_groups;
using test::trial;
using test::trial_buffers;
using testing::HasSubstr;

constexpr std::size_t slot_bytes = std::size_t{16} << 20;
constexpr int random_rounds = DIOMP_SANITIZED ? 15 : 80;
/// The workspace's part of a slot; buffers lie behind it.
constexpr std::size_t workspace_bytes = std::size_t{4} << 20;

void run_trial(collectives &all, group::group &members, const trial &t, std::byte *where) {
    std::size_t const self = members.self().index();
    ASSERT_LE(trial_buffers::storage_bytes(t, members.size()), slot_bytes - workspace_bytes - 64);
    trial_buffers const buffers(t, members.size(), self, where);
    status const ran = all.run(members, request_of(t, buffers));
    ASSERT_TRUE(ran.ok()) << to_string(t) << ": " << ran.failure().message();
    buffers.check();
}

using nodes = std::vector<std::int32_t>;

/// All on one node.
nodes one_node(int num_ranks) { return nodes(static_cast<std::size_t>(num_ranks)); }

/// Each on a node of its own.
nodes one_each(int num_ranks) {
    nodes made = one_node(num_ranks);
    std::iota(made.begin(), made.end(), 0);
    return made;
}

/// [rank] its node.
class collective_sizes : public testing::TestWithParam<nodes> {
protected:
    static int num_ranks() { return static_cast<int>(GetParam().size()); }
    static std::unique_ptr<test::thread_ranks> make_ranks() {
        return std::make_unique<test::thread_ranks>(num_ranks(), slot_bytes);
    }
};

TEST_P(collective_sizes, random_calls_match_the_reference) {
    thread_groups job(make_ranks(), workspace_bytes, GetParam());
    for (bool const oversubscribed : {false, true}) {
        job.run([&](world_rank self) {
            options chosen = options_for(job, oversubscribed);
            if (oversubscribed && self.value() == 1) { // as on a core with another cache
                chosen.shared_bcast_min_bytes *= 2;
            }
            collectives all(chosen);
            storage memory(job, self, workspace_bytes);
            std::mt19937_64 random(static_cast<std::uint64_t>(num_ranks()) * 2 + oversubscribed);
            for (int round = 0; round < random_rounds && !testing::Test::HasFailure(); ++round) {
                trial const t =
                    draw(random, num_ranks(),
                         (std::size_t{512} << 10) / static_cast<std::size_t>(num_ranks()));
                bool const global = random() % 2 == 0;
                bool const odd_one = random() % 4 == 0; // one member's memory is different
                bool const differs = odd_one && self.value() == t.root;
                run_trial(all, job.registry(self).world(), t, memory.at(global != differs));
            }
        });
    }
}

TEST_P(collective_sizes, sizes_around_every_switch_are_right) {
    thread_groups job(make_ranks(), workspace_bytes, GetParam());
    job.run([&](world_rank self) {
        collectives all(options_for(job));
        storage memory(job, self, workspace_bytes);
        std::uint64_t number = 0;
        // Many threads take long under a sanitizer, and smaller groups have the other switches.
        bool const takes_half = DIOMP_SANITIZED && num_ranks() > 8;
        for (std::size_t const bytes :
             {8UL, 40UL, 128UL, 256UL, 8192UL, 16384UL, 32768UL, 65536UL, 131072UL}) {
            if (takes_half && (bytes == 40 || bytes == 128 || bytes == 8192 || bytes > 32768)) {
                continue;
            }
            // Both sides of a switch; without a sanitizer one more.
            for (std::size_t count = bytes / 8 - (DIOMP_SANITIZED ? 0 : 1); count <= bytes / 8 + 1;
                 ++count) {
                for (int what = 0; what < static_cast<int>(test::num_kinds); ++what) {
                    trial t;
                    t.number = ++number * 1000;
                    t.what = static_cast<kind>(what);
                    t.type = OMPX_DOUBLE;
                    t.count = count;
                    t.root = static_cast<int>(number) % num_ranks();
                    run_trial(all, job.registry(self).world(), t, memory.at(number % 3 == 0));
                }
            }
        }
    });
}

INSTANTIATE_TEST_SUITE_P(one_node, collective_sizes,
                         testing::Values(one_node(1), one_node(2), one_node(3), one_node(4),
                                         one_node(5), one_node(8), one_node(17)));
INSTANTIATE_TEST_SUITE_P(nodes, collective_sizes,
                         testing::Values(nodes{0, 1}, nodes{0, 0, 1, 1}, nodes{0, 1, 2},
                                         nodes{0, 1, 0, 1}, nodes{0, 1, 2, 3, 4},
                                         nodes{2, 1, 1, 0, 2, 0, 2},
                                         nodes{0, 0, 0, 1, 1, 2, 2, 2, 3, 4, 5}));
INSTANTIATE_TEST_SUITE_P(many_nodes, collective_sizes, testing::Values(one_each(16), one_each(19)));

class collective_series : public collective_sizes {};
INSTANTIATE_TEST_SUITE_P(placements, collective_series,
                         testing::Values(one_node(2), one_node(3), one_node(5), nodes{0, 0, 1, 1}));

// A group measures stage buffers and attached memory in turn, so a series of calls takes both ways.
TEST_P(collective_series, large_calls_are_right) {
    int const copies_before = test::thread_node::num_private_copies;
    thread_groups job(make_ranks(), workspace_bytes, GetParam());
    constexpr int series = group::agreed_autotuner::trial_calls + 2;
    // From 32 KiB on; a bcast is shared from 16 KiB per member on.
    std::size_t const count = std::max<std::size_t>(40, 20 * GetParam().size()) * 1024 / 8;
    job.run([&](world_rank self) {
        collectives all(options_for(job));
        storage memory(job, self, workspace_bytes);
        std::uint64_t number = 0;
        for (std::uint64_t what = 0; what < test::num_without_scans; ++what) {
            for (int call = 0; call < series && !testing::Test::HasFailure(); ++call) {
                trial t;
                t.number = ++number * 1000;
                t.what = static_cast<kind>(what);
                t.type = OMPX_DOUBLE;
                t.count = count - static_cast<std::size_t>(call);
                t.root = static_cast<int>(number) % num_ranks();
                t.in_place = call % 3 == 2;
                bool const is_odd_one = call % 5 == 4 && self.value() == 0;
                run_trial(all, job.registry(self).world(), t, memory.at(is_odd_one));
            }
        }
    });
    EXPECT_GT(test::thread_node::num_private_copies, copies_before);
}

class collective_columns : public collective_sizes {};
INSTANTIATE_TEST_SUITE_P(nodes, collective_columns,
                         testing::Values(nodes{0, 0, 1, 1}, nodes{0, 1, 0, 1},
                                         nodes{0, 0, 0, 1, 1, 1}, nodes{0, 0, 1},
                                         nodes{0, 0, 1, 1, 2, 2, 3, 3}));

/// What a member brings, as all operands of one place are below 100 the sum is exact in any type.
std::int8_t column_value(std::size_t member, std::size_t i) {
    return static_cast<std::int8_t>((i * 7 + member * 3) % 13);
}
template <typename T>
void expect_column_sums(collectives &all, group::group &world, ompx_type_t type, std::size_t count,
                        bool in_place, std::byte *memory) {
    T *const dst = reinterpret_cast<T *>(memory);
    T *const src = in_place ? dst : dst + count + 1;
    for (std::size_t i = 0; i < count; ++i) {
        src[i] = column_value(world.self().index(), i);
    }
    T const guard = column_value(5, count);
    dst[count] = guard;
    status const ran = all.run(world, {.what = operation::allreduce,
                                       .dst = dst,
                                       .src = src,
                                       .amount = count,
                                       .type = type,
                                       .op = OMPX_SUM});
    ASSERT_TRUE(ran.ok()) << ran.failure().message();
    std::size_t wrong = dst[count] == guard ? 0 : 1;
    for (std::size_t i = 0; i < count; ++i) {
        int sum = 0;
        for (std::size_t member = 0; member < world.size(); ++member) {
            sum += column_value(member, i);
        }
        wrong += dst[i] == static_cast<T>(sum) ? 0 : 1;
    }
    EXPECT_EQ(wrong, 0U) << count << " elements of type " << type;
}

// One or more pieces, columns that are equal and that are not, a last piece of a few elements.
TEST_P(collective_columns, large_allreduces_are_right) {
    thread_groups job(make_ranks(), workspace_bytes, GetParam());
    std::size_t const per_node =
        GetParam().size() / std::set(GetParam().begin(), GetParam().end()).size();
    job.run([&](world_rank self) {
        collectives all(options_for(job));
        storage memory(job, self, workspace_bytes);
        group::group &world = job.registry(self).world();
        constexpr std::size_t mebibyte = std::size_t{1} << 20;
        std::size_t const piece = per_node * mebibyte;
        for (std::size_t const nbytes :
             {mebibyte / 8 + 8, mebibyte / 4 + 104, mebibyte, piece + 8, 2 * piece + 6216}) {
            if (2 * nbytes + 64 > slot_bytes - workspace_bytes) {
                continue; // three members on a node
            }
            for (bool const is_global : {false, true}) {
                std::byte *const here = memory.at(is_global);
                expect_column_sums<double>(all, world, OMPX_DOUBLE, nbytes / 8, is_global, here);
                if (nbytes < mebibyte) {
                    expect_column_sums<std::int8_t>(all, world, OMPX_INT8, nbytes - 1, !is_global,
                                                    here);
                }
            }
        }
    });
}

// 2x2 matrices do not commute.
struct matrix {
    std::int64_t a, b, c, d;
    bool operator==(const matrix &) const = default;
};
matrix operator*(const matrix &x, const matrix &y) {
    return {x.a * y.a + x.b * y.c, x.a * y.b + x.b * y.d, x.c * y.a + x.d * y.c,
            x.c * y.b + x.d * y.d};
}
void multiply(void *inout, const void *in, std::size_t count, ompx_type_t type, void *context) {
    EXPECT_EQ(type, OMPX_TYPE_OF_SIZE(sizeof(matrix)));
    ++*static_cast<std::atomic<int> *>(context);
    for (std::size_t i = 0; i < count; ++i) {
        auto &to = static_cast<matrix *>(inout)[i];
        to = to * static_cast<const matrix *>(in)[i];
    }
}
matrix matrix_of(std::size_t member, std::size_t i) {
    auto const x = static_cast<std::int64_t>(member + i);
    return {1, x % 5, x % 3, 1 + x % 2};
}

TEST_P(collective_sizes, user_defined_operators_see_operands_in_rank_order) {
    thread_groups job(make_ranks(), workspace_bytes, GetParam());
    std::atomic<int> calls{0};
    job.run([&](world_rank self) {
        collectives all(options_for(job));
        auto const op = all.operators().create(multiply, &calls, false);
        ASSERT_TRUE(op.ok());
        auto const n = static_cast<std::size_t>(num_ranks());
        for (std::size_t const count : {1U, 3U, 200U, 5000U}) {
            for (bool const in_place : {false, true}) {
                std::vector<matrix> src(count);
                std::vector<matrix> dst(count);
                std::vector<matrix> expected(count);
                for (std::size_t i = 0; i < count; ++i) {
                    src[i] = matrix_of(self.index(), i);
                    expected[i] = matrix_of(0, i);
                    for (std::size_t member = 1; member < n; ++member) {
                        expected[i] = expected[i] * matrix_of(member, i);
                    }
                }
                for (operation const what : {operation::allreduce, operation::reduce}) {
                    dst = in_place ? src : dst;
                    request asked{.what = what,
                                  .dst = dst.data(),
                                  .src = in_place ? dst.data() : src.data(),
                                  .amount = count,
                                  .type = OMPX_TYPE_OF_SIZE(sizeof(matrix)),
                                  .op = op.value(),
                                  .root = num_ranks() - 1};
                    ASSERT_TRUE(all.run(job.registry(self).world(), asked).ok());
                    if (what == operation::allreduce || self.value() == num_ranks() - 1) {
                        EXPECT_EQ(dst, expected);
                    }
                }
            }
        }
        EXPECT_TRUE(all.operators().free(op.value()).ok());
        EXPECT_EQ(all.operators().free(op.value()).failure().code(), OMPX_ERR_ARG);
    });
    EXPECT_EQ(calls > 0, num_ranks() > 1);
}

TEST_P(collective_sizes, elements_as_large_as_they_may_be) {
    thread_groups job(make_ranks(), workspace_bytes, GetParam());
    constexpr std::size_t element = 65535;
    auto const add_bytes = [](void *inout, const void *in, std::size_t count, ompx_type_t, void *) {
        for (std::size_t i = 0; i < count * element; ++i) {
            static_cast<unsigned char *>(inout)[i] = static_cast<unsigned char>(
                static_cast<unsigned char *>(inout)[i] + static_cast<const unsigned char *>(in)[i]);
        }
    };
    job.run([&](world_rank self) {
        collectives all(options_for(job));
        auto const op = all.operators().create(add_bytes, nullptr, true).value();
        auto const n = static_cast<std::size_t>(num_ranks());
        for (operation const what :
             {operation::allreduce, operation::reduce_scatter, operation::reduce}) {
            std::vector<unsigned char> src(2 * element * n);
            std::vector<unsigned char> dst(2 * element * n);
            for (std::size_t i = 0; i < src.size(); ++i) {
                src[i] = static_cast<unsigned char>(self.index() + i);
            }
            request const asked{.what = what,
                                .dst = dst.data(),
                                .src = src.data(),
                                .amount = 2,
                                .type = OMPX_TYPE_OF_SIZE(element),
                                .op = op,
                                .root = 0};
            status const ran = all.run(job.registry(self).world(), asked);
            ASSERT_TRUE(ran.ok()) << ran.failure().message();
            if (what == operation::reduce && self.value() != 0) {
                continue;
            }
            std::size_t const offset =
                what == operation::reduce_scatter ? self.index() * 2 * element : 0;
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < 2 * element; ++i) {
                auto const sum = n * (n - 1) / 2 + n * (offset + i);
                wrong += dst[i] == static_cast<unsigned char>(sum) ? 0U : 1U;
            }
            EXPECT_EQ(wrong, 0U);
        }
    });
}

TEST(collectives, floating_sums_are_the_same_bits_on_all_members) {
    for (nodes const &layout : {one_node(2), one_node(3), one_node(4), nodes{0, 1}, nodes{0, 1, 2},
                                nodes{0, 1, 0, 1}, nodes{0, 0, 1, 2, 2}}) {
        auto const n = static_cast<int>(layout.size());
        thread_groups job(std::make_unique<test::thread_ranks>(n, slot_bytes), workspace_bytes,
                          layout);
        for (std::size_t const count : {3U, 5U, 1000U, 20001U, 90001U}) {
            std::vector<std::vector<float>> results(static_cast<std::size_t>(n));
            job.run([&](world_rank self) {
                collectives all(options_for(job));
                std::mt19937 random(static_cast<unsigned>(self.value() + 1));
                std::vector<float> &own = results[self.index()];
                own.resize(count);
                for (float &each : own) {
                    each = std::ldexp(static_cast<float>(random()) - 2e9F,
                                      static_cast<int>(random() % 40) - 20);
                }
                request const asked{.what = operation::allreduce,
                                    .dst = own.data(),
                                    .src = own.data(),
                                    .amount = count,
                                    .type = OMPX_FLOAT,
                                    .op = OMPX_SUM};
                EXPECT_TRUE(all.run(job.registry(self).world(), asked).ok());
            });
            for (auto const &each : results) {
                EXPECT_EQ(std::memcmp(each.data(), results[0].data(), count * sizeof(float)), 0);
            }
        }
    }
}

class collective_mistakes : public testing::TestWithParam<nodes> {};
INSTANTIATE_TEST_SUITE_P(layouts, collective_mistakes,
                         testing::Values(one_node(3), nodes{0, 1, 2}, nodes{0, 0, 1},
                                         nodes{0, 1, 1}, nodes{0, 1, 0}));

TEST_P(collective_mistakes, different_calls_are_an_error_on_all_and_leave_the_buffers) {
    thread_groups job(std::make_unique<test::thread_ranks>(3, slot_bytes), workspace_bytes,
                      GetParam());
    job.run([&](world_rank self) {
        collectives all(options_for(job, false, true));
        group::group &world = job.registry(self).world();
        std::vector<std::int32_t> a(100000, self.value());
        std::vector<std::int32_t> const before = a;
        bool const odd = self.value() == 1;
        auto const bcast = [&](std::size_t nbytes, int root) {
            return request{
                .what = operation::bcast, .dst = a.data(), .amount = nbytes, .root = root};
        };
        auto const sum = [&](std::size_t count, ompx_type_t type, ompx_op_t op) {
            return request{.what = operation::allreduce,
                           .dst = a.data(),
                           .src = a.data(),
                           .amount = count,
                           .type = type,
                           .op = op};
        };
        std::vector<std::pair<request, request>> const pairs{
            {bcast(8, 0), bcast(16, 0)},
            {bcast(8, 0), bcast(400000, 0)},
            {bcast(4000, 0), bcast(400000, 0)},
            {bcast(64, 0), bcast(64, 1)},
            {sum(5, OMPX_INT32, OMPX_SUM), sum(5, OMPX_FLOAT, OMPX_SUM)},
            {sum(50000, OMPX_INT32, OMPX_SUM), sum(50000, OMPX_INT32, OMPX_MAX)},
            {sum(50000, OMPX_INT32, OMPX_SUM), sum(2, OMPX_INT32, OMPX_SUM)},
            {sum(0, OMPX_INT32, OMPX_SUM), sum(2, OMPX_INT32, OMPX_SUM)},
            {request{.what = operation::barrier}, bcast(8, 0)},
        };
        for (auto const &[usual, different] : pairs) {
            status const ran = all.run(world, odd ? different : usual);
            ASSERT_FALSE(ran.ok());
            EXPECT_EQ(ran.failure().code(), OMPX_ERR_MISMATCH);
            // Between nodes a member may notice before it hears of rank 0.
            if (GetParam() == one_node(3)) {
                EXPECT_THAT(ran.failure().message(), HasSubstr("rank 0 made ompx_"));
            }
            EXPECT_THAT(ran.failure().message(), HasSubstr("rank 1 made ompx_"));
            EXPECT_EQ(a, before);
            EXPECT_TRUE(all.run(world, {.what = operation::barrier}).ok());
        }
    });
}

TEST_P(collective_mistakes, no_call_writes_before_all_have_made_it) {
    thread_groups job(std::make_unique<test::thread_ranks>(3, slot_bytes), workspace_bytes,
                      GetParam());
    job.run([&](world_rank self) {
        collectives all(options_for(job, false, true));
        group::group &world = job.registry(self).world();
        for (std::size_t const count : {std::size_t{1}, std::size_t{2000}, std::size_t{40000}}) {
            std::vector<std::int32_t> const src(3 * count, self.value() + 1);
            std::vector<std::int32_t> dst(3 * count, -1);
            std::vector<std::int32_t> const before = dst;
            for (operation const what :
                 {operation::reduce, operation::allreduce, operation::gather, operation::scatter,
                  operation::allgather, operation::reduce_scatter, operation::alltoall}) {
                bool const reduces = what == operation::reduce || what == operation::allreduce ||
                                     what == operation::reduce_scatter;
                request const asked{.what = what,
                                    .dst = dst.data(),
                                    .src = src.data(),
                                    .amount = count * (reduces ? 1 : sizeof(std::int32_t)),
                                    .type = reduces ? OMPX_INT32 : request{}.type,
                                    .op = reduces ? OMPX_SUM : request{}.op,
                                    .root = has_root(what) ? 1 : -1};
                for (int odd = 0; odd < 3; ++odd) {
                    status const ran = all.run(
                        world, self.value() == odd ? request{.what = operation::barrier} : asked);
                    ASSERT_FALSE(ran.ok()) << sync::name_of(what);
                    EXPECT_EQ(ran.failure().code(), OMPX_ERR_MISMATCH);
                    EXPECT_EQ(dst, before) << sync::name_of(what) << " of " << count;
                }
            }
        }
    });
}

// Members that did not wait for each other notice later, at the end of a call that all make.
TEST(collective_late_mistakes, leave_the_members_in_step) {
    thread_groups job(std::make_unique<test::thread_ranks>(2, slot_bytes), workspace_bytes,
                      one_node(2));
    for (std::size_t const count : {std::size_t{1}, std::size_t{2000}, std::size_t{100000}}) {
        std::atomic<int> num_noticed = 0;
        job.run([&](world_rank self) {
            collectives all(options_for(job));
            group::group &world = job.registry(self).world();
            std::vector<std::int32_t> const src(count, self.value() + 1);
            std::vector<std::int32_t> dst(count);
            bool const gathers = self.value() == 0;
            std::vector<std::int32_t> few(2 * 25);
            request different{.what = operation::gather,
                              .dst = few.data() + 25,
                              .src = few.data(),
                              .amount = 100,
                              .root = 1};
            if (!gathers) {
                different = {.what = operation::scan,
                             .dst = few.data() + 25,
                             .src = few.data(),
                             .amount = 25,
                             .type = OMPX_INT32,
                             .op = OMPX_SUM};
            }
            num_noticed += all.run(world, different).ok() ? 0 : 1;
            for (int call = 0; call < 3; ++call) {
                std::ranges::fill(dst, 0);
                status const ran = all.run(world, {.what = operation::allreduce,
                                                   .dst = dst.data(),
                                                   .src = src.data(),
                                                   .amount = count,
                                                   .type = OMPX_INT32,
                                                   .op = OMPX_SUM});
                if (!ran.ok()) {
                    EXPECT_EQ(ran.failure().code(), OMPX_ERR_MISMATCH);
                    ++num_noticed;
                }
                EXPECT_EQ(dst, std::vector<std::int32_t>(count, 3)) << "call " << call;
            }
        });
        EXPECT_EQ(num_noticed, 2) << count; // each member once
    }
}

TEST_P(collective_mistakes, small_calls_with_a_root_tell_those_who_wait) {
    thread_groups job(std::make_unique<test::thread_ranks>(3, slot_bytes), workspace_bytes,
                      GetParam());
    job.run([&](world_rank self) {
        collectives all(options_for(job));
        group::group &world = job.registry(self).world();
        std::int64_t x = self.value();
        int num_told = 0;
        for (int round = 0; round < 50; ++round) {
            // Rank 2 thinks that there is more to come. The root does not wait.
            status const ran = all.run(world, {.what = operation::bcast,
                                               .dst = &x,
                                               .amount = self.value() == 2 ? 8U : 4U,
                                               .root = 0});
            num_told += ran.ok() ? 0 : 1;
            if (self.value() == 2) {
                ASSERT_FALSE(ran.ok());
                EXPECT_EQ(ran.failure().code(), OMPX_ERR_MISMATCH);
                EXPECT_EQ(ran.failure().message(),
                          "ranks disagree about a collective call: rank 0 made "
                          "ompx_bcast(root=0, nbytes=4), rank 2 made ompx_bcast(root=0, nbytes=8)");
                EXPECT_EQ(x, 2);
            }
        }
        // Between nodes all meet now and then, and members on a node wait together.
        bool const waits_with_rank_2 = GetParam() != one_node(3) &&
                                       GetParam()[self.index()] == GetParam()[2] &&
                                       self.value() > 0;
        if (self.value() != 2 && !waits_with_rank_2) {
            EXPECT_LE(num_told, GetParam() == one_node(3) ? 0 : 2);
        }
        EXPECT_TRUE(all.run(world, {.what = operation::barrier}).ok());
    });
}

class collective_runners : public testing::TestWithParam<nodes> {};
INSTANTIATE_TEST_SUITE_P(layouts, collective_runners,
                         testing::Values(one_node(4), nodes{0, 1, 2, 3}, nodes{0, 0, 1, 1},
                                         nodes{0, 1, 1, 0}));

TEST_P(collective_runners, a_root_that_runs_ahead_overwrites_nothing) {
    thread_groups job(std::make_unique<test::thread_ranks>(4, slot_bytes), workspace_bytes,
                      GetParam());
    job.run([&](world_rank self) {
        collectives all(options_for(job, true));
        group::group &world = job.registry(self).world();
        std::int64_t wrong = 0;
        std::int64_t const num_rounds =
            (GetParam() == one_node(4) ? 20000 : 4000) / (DIOMP_SANITIZED ? 10 : 1);
        for (std::int64_t round = 0; round < num_rounds; ++round) {
            std::int64_t x = self.value() == 1 ? round : -1;
            if (!all.run(world, {.what = operation::bcast, .dst = &x, .amount = 8, .root = 1})) {
                ++wrong;
            }
            wrong += x != round ? 1 : 0;
            if (round % 1000 == 7) { // a stage in between
                std::vector<std::int64_t> y(200, self.value() == 0 ? round : -1);
                if (!all.run(world, {.what = operation::bcast,
                                     .dst = y.data(),
                                     .amount = y.size() * sizeof(y[0]),
                                     .root = 0})) {
                    ++wrong;
                }
                wrong += y != std::vector<std::int64_t>(200, round) ? 1 : 0;
            }
            std::int64_t sum = 0;
            if (!all.run(world, {.what = operation::reduce,
                                 .dst = &sum,
                                 .src = &x,
                                 .amount = 1,
                                 .type = OMPX_INT64,
                                 .op = OMPX_SUM,
                                 .root = 3})) {
                ++wrong;
            }
            wrong += self.value() == 3 && sum != 4 * round ? 1 : 0;
        }
        EXPECT_EQ(wrong, 0);
    });
}

// Runs of broadcasts, in which the root is calls ahead of the others on its node, among calls that
// use the same stages. The thread sanitizer sees what may overlap though it does not happen to.
TEST_P(collective_runners, what_a_root_announces_ahead_stays_until_all_have_read_it) {
    thread_groups job(std::make_unique<test::thread_ranks>(4, slot_bytes), workspace_bytes,
                      GetParam());
    job.run([&](world_rank self) {
        collectives all(options_for(job, true));
        group::group &world = job.registry(self).world();
        std::mt19937_64 random(5); // the same everywhere
        constexpr std::size_t run_lengths[] = {1, 2, 3, 7, 20, 50};
        constexpr std::size_t sizes[] = {257, 512, 1000, 2048, 2049, 4096, 5000, 8192, 9000, 70000};
        std::int64_t wrong = 0;
        std::int64_t value = 0;
        for (int run = 0; run < (DIOMP_SANITIZED ? 60 : 400); ++run) {
            std::size_t const length = run_lengths[random() % std::size(run_lengths)];
            std::size_t const amount = sizes[random() % std::size(sizes)];
            auto const root = static_cast<int>(random() % 4);
            for (std::size_t i = 0; i < length; ++i) {
                ++value;
                auto const byte = static_cast<unsigned char>(value % 251);
                std::vector<unsigned char> x(amount, self.value() == root ? byte : 255);
                wrong +=
                    all.run(
                        world,
                        {.what = operation::bcast, .dst = x.data(), .amount = amount, .root = root})
                        ? 0
                        : 1;
                wrong += x == std::vector<unsigned char>(amount, byte) ? 0 : 1;
            }
            std::size_t const count = 1 + random() % 1000;
            bool const is_reduce = random() % 3 == 0;
            bool const is_for_self = !is_reduce || self.value() == 2;
            std::vector<std::int64_t> const y(count, value);
            std::vector<std::int64_t> sum(count);
            wrong += all.run(world, {.what = is_reduce ? operation::reduce : operation::allreduce,
                                     .dst = sum.data(),
                                     .src = y.data(),
                                     .amount = count,
                                     .type = OMPX_INT64,
                                     .op = OMPX_SUM,
                                     .root = is_reduce ? 2 : 0})
                         ? 0
                         : 1;
            wrong += !is_for_self || sum == std::vector<std::int64_t>(count, 4 * value) ? 0 : 1;
        }
        EXPECT_EQ(wrong, 0);
    });
}

TEST(collectives, bad_arguments_are_told) {
    thread_groups job(2, slot_bytes, workspace_bytes);
    collectives all(options_for(job));
    group::group &world = job.registry(world_rank{0}).world();
    int x = 0;
    auto const code = [&](const request &asked) {
        status const ran = all.run(world, asked);
        return ran.ok() ? OMPX_SUCCESS : ran.failure().code();
    };
    request const sum{.what = operation::allreduce,
                      .dst = &x,
                      .src = &x,
                      .amount = 1,
                      .type = OMPX_FLOAT,
                      .op = OMPX_BAND};
    EXPECT_EQ(code(sum), OMPX_ERR_ARG);
    auto with = [&](auto change) {
        request changed = sum;
        changed.op = OMPX_SUM;
        change(changed);
        return code(changed);
    };
    EXPECT_EQ(with([](request &r) { r.op = OMPX_REPLACE; }), OMPX_ERR_ARG);
    EXPECT_EQ(with([](request &r) { r.op = 99; }), OMPX_ERR_ARG);
    EXPECT_EQ(with([](request &r) { r.op = user_operators::first_handle; }), OMPX_ERR_ARG);
    EXPECT_EQ(with([](request &r) { r.type = 0; }), OMPX_ERR_ARG);
    EXPECT_EQ(with([](request &r) { r.type = OMPX_TYPE_OF_SIZE(4); }), OMPX_ERR_ARG);
    EXPECT_EQ(with([](request &r) { r.type = OMPX_FLOAT_COMPLEX, r.op = OMPX_MAX; }), OMPX_ERR_ARG);
    EXPECT_EQ(with([](request &r) { r.type = OMPX_BOOL; }), OMPX_ERR_ARG);
    EXPECT_EQ(with([](request &r) { r.src = nullptr; }), OMPX_ERR_ARG);
    EXPECT_EQ(with([](request &r) { r.dst = nullptr; }), OMPX_ERR_ARG);
    EXPECT_EQ(with([](request &r) { r.amount = SIZE_MAX / 2; }), OMPX_ERR_ARG);
    EXPECT_EQ(with([](request &r) { r.amount = static_cast<std::size_t>(-4); }), OMPX_ERR_ARG);
    EXPECT_EQ(with([](request &r) { r.what = operation::reduce, r.root = 2; }), OMPX_ERR_RANK);
    EXPECT_EQ(with([](request &r) { r.what = operation::bcast, r.root = -1; }), OMPX_ERR_RANK);
    EXPECT_EQ(all.start(world, sum).failure().code(), OMPX_ERR_ARG);
    EXPECT_EQ(all.operators().create(nullptr, nullptr, true).failure().code(), OMPX_ERR_ARG);
    EXPECT_EQ(all.operators().free(OMPX_SUM).failure().code(), OMPX_ERR_ARG);
}

status wait_and_release(ompx_event *event) {
    while (!event->is_done()) {
        std::this_thread::yield();
    }
    status outcome = std::move(event->outcome);
    event->release();
    return outcome;
}

TEST(collectives, queued_calls_run_in_order_with_blocking_ones) {
    thread_groups job(3, slot_bytes, workspace_bytes);
    job.run([&](world_rank self) {
        collectives all(options_for(job));
        group::group &world = job.registry(self).world();
        for (int round = 0; round < 20; ++round) {
            std::vector<std::int64_t> a(3000, 1);
            std::vector<ompx_event *> events;
            for (int i = 0; i < 5; ++i) {
                events.push_back(all.start(world, {.what = operation::allreduce,
                                                   .dst = a.data(),
                                                   .src = a.data(),
                                                   .amount = a.size(),
                                                   .type = OMPX_INT64,
                                                   .op = OMPX_SUM})
                                     .value());
            }
            // A blocking call comes after what was queued.
            ASSERT_TRUE(all.run(world, {.what = operation::allreduce,
                                        .dst = a.data(),
                                        .src = a.data(),
                                        .amount = a.size(),
                                        .type = OMPX_INT64,
                                        .op = OMPX_MAX})
                            .ok());
            EXPECT_EQ(a, std::vector<std::int64_t>(3000, 243));
            for (ompx_event *const each : events) {
                EXPECT_TRUE(wait_and_release(each).ok());
            }
        }
    });
}

TEST(collectives, a_queued_call_tells_a_mismatch_through_its_event) {
    thread_groups job(2, slot_bytes, workspace_bytes);
    job.run([&](world_rank self) {
        collectives all(options_for(job));
        std::array<std::byte, 400> x{};
        auto *const event =
            all.start(job.registry(self).world(), {.what = operation::bcast,
                                                   .dst = x.data(),
                                                   .amount = self.value() == 0 ? 300U : 400U,
                                                   .root = 0})
                .value();
        EXPECT_EQ(wait_and_release(event).failure().code(), OMPX_ERR_MISMATCH);
    });
}

TEST(collectives, different_groups_are_active_at_once) {
    constexpr int num_threads = 3;
    thread_groups job(3, slot_bytes, workspace_bytes);
    job.run([&](world_rank self) {
        collectives all(options_for(job, true));
        group::group_registry &registry = job.registry(self);
        // Thread t of every rank uses a group of its own: all ranks, in rotated order.
        std::vector<group::group *> groups;
        for (int t = 0; t < num_threads; ++t) {
            groups.push_back(
                registry.find(registry.create(std::vector{t, (t + 1) % 3, (t + 2) % 3}).value())
                    .value());
        }
        std::vector<std::thread> threads;
        for (std::size_t t = 0; t < num_threads; ++t) {
            threads.emplace_back([&, t] {
                std::mt19937_64 random(t);
                std::vector<std::byte> memory(std::size_t{8} << 20);
                auto const address = reinterpret_cast<std::uintptr_t>(memory.data());
                for (int round = 0; round < 100; ++round) {
                    trial const test = draw(random, 3, 30000);
                    run_trial(all, *groups[t], test, memory.data() + (64 - address % 64) % 64);
                }
            });
        }
        for (std::thread &each : threads) {
            each.join();
        }
    });
}

TEST(collectives, go_on_with_small_stages_when_the_workspace_is_full) {
    thread_groups job(3, slot_bytes, sizeof(group::member_block) + (std::size_t{400} << 10));
    job.run([&](world_rank self) {
        collectives all(options_for(job));
        storage memory(job, self, workspace_bytes);
        std::mt19937_64 random(5);
        for (int round = 0; round < 60; ++round) {
            run_trial(all, job.registry(self).world(), draw(random, 3, std::size_t{128} << 10),
                      memory.at(false));
        }
    });
}

} // namespace
} // namespace diomp::coll
