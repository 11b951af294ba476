// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The collectives as programs call them, on real ranks.
#include "coll/trial.h"
#include "diomp.h"
#include "support/nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>

namespace {

using diomp::test::draw;
using diomp::test::kind;
using diomp::test::trial;
using diomp::test::trial_buffers;

constexpr std::size_t most_bytes = std::size_t{96} << 10;

/// Private or global memory for a trial's buffers, the same size on all ranks.
class storage {
public:
    storage(int num_members, bool global)
        : nbytes_(2 * (static_cast<std::size_t>(num_members) * (most_bytes + 64) +
                       2 * trial_buffers::guard_bytes)),
          global_(global ? static_cast<std::byte *>(ompx_alloc(nbytes_, 64, OMPX_MEM_SYMMETRIC))
                         : nullptr),
          private_(global ? 0 : nbytes_ + 64) {}
    ~storage() {
        if (global_ != nullptr) {
            EXPECT_EQ(ompx_free(global_), OMPX_SUCCESS);
        }
    }
    storage(const storage &) = delete;
    storage &operator=(const storage &) = delete;

    std::byte *memory() {
        if (global_ != nullptr) {
            return global_;
        }
        auto const address = reinterpret_cast<std::uintptr_t>(private_.data());
        return private_.data() + (64 - address % 64) % 64;
    }

private:
    std::size_t nbytes_;
    std::byte *global_;
    std::vector<std::byte> private_;
};

int call(const trial &t, const trial_buffers &buffers, ompx_group_t group) {
    void *const dst = buffers.dst();
    const void *const src = buffers.src();
    std::size_t const nbytes = t.count * t.unit();
    switch (t.what) {
    case kind::bcast:
        return t.root == 0 ? ompx_bcast(dst, nbytes, group)
                           : ompx_bcast_from(dst, nbytes, t.root, group);
    case kind::reduce:
        return ompx_reduce(dst, src, t.count, t.type, t.op, t.root, group);
    case kind::allreduce:
        return ompx_allreduce(dst, src, t.count, t.type, t.op, group);
    case kind::gather:
        return ompx_gather(dst, src, nbytes, t.root, group);
    case kind::scatter:
        return ompx_scatter(dst, src, nbytes, t.root, group);
    case kind::allgather:
        return ompx_allgather(dst, src, nbytes, group);
    case kind::reduce_scatter:
        return ompx_reduce_scatter(dst, src, t.count, t.type, t.op, group);
    case kind::alltoall:
        return ompx_alltoall(dst, src, nbytes, group);
    case kind::scan:
        return ompx_scan(dst, src, t.count, t.type, t.op, group);
    case kind::exscan:
        return ompx_exscan(dst, src, t.count, t.type, t.op, group);
    }
    return OMPX_ERR_ARG;
}

int start(const trial &t, const trial_buffers &buffers, ompx_group_t group, ompx_event_t *event) {
    void *const dst = buffers.dst();
    const void *const src = buffers.src();
    std::size_t const nbytes = t.count * t.unit();
    switch (t.what) {
    case kind::bcast:
        return ompx_bcast_from_nb(dst, nbytes, t.root, group, event);
    case kind::reduce:
        return ompx_reduce_nb(dst, src, t.count, t.type, t.op, t.root, group, event);
    case kind::allreduce:
        return ompx_allreduce_nb(dst, src, t.count, t.type, t.op, group, event);
    case kind::gather:
        return ompx_gather_nb(dst, src, nbytes, t.root, group, event);
    case kind::scatter:
        return ompx_scatter_nb(dst, src, nbytes, t.root, group, event);
    case kind::allgather:
        return ompx_allgather_nb(dst, src, nbytes, group, event);
    case kind::reduce_scatter:
        return ompx_reduce_scatter_nb(dst, src, t.count, t.type, t.op, group, event);
    case kind::alltoall:
        return ompx_alltoall_nb(dst, src, nbytes, group, event);
    case kind::scan:
        return ompx_scan_nb(dst, src, t.count, t.type, t.op, group, event);
    case kind::exscan:
        return ompx_exscan_nb(dst, src, t.count, t.type, t.op, group, event);
    }
    return OMPX_ERR_ARG;
}

void run_trial(const trial &t, std::byte *memory, ompx_group_t group) {
    trial_buffers const buffers(t, static_cast<std::size_t>(ompx_group_size(group)),
                                static_cast<std::size_t>(ompx_group_rank(group)), memory);
    ASSERT_EQ(call(t, buffers, group), OMPX_SUCCESS) << to_string(t);
    buffers.check();
}

TEST(collectives, two_thousand_random_calls_in_sequence) {
    int const size = ompx_num_ranks();
    storage private_memory(size, false);
    storage global_memory(size, true);
    std::mt19937_64 random(42);
    for (int round = 0; round < 2000 && !HasFailure(); ++round) {
        // Mostly small, so that the calls overlap as far as they can.
        trial const t = draw(random, size, round % 8 == 0 ? most_bytes : 2000);
        bool const global = random() % 2 == 0;
        run_trial(t, global ? global_memory.memory() : private_memory.memory(), ompx_group_world);
    }
}

TEST(collectives, queued_calls_give_the_same_results) {
    int const size = ompx_num_ranks();
    std::mt19937_64 random(43);
    constexpr std::size_t at_once = 4;
    std::vector<std::unique_ptr<storage>> memory;
    for (std::size_t i = 0; i < at_once; ++i) {
        memory.push_back(std::make_unique<storage>(size, i % 2 == 0));
    }
    for (int round = 0; round < 50 && !HasFailure(); ++round) {
        std::vector<std::unique_ptr<trial_buffers>> buffers;
        std::vector<ompx_event_t> events(at_once);
        for (std::size_t i = 0; i < at_once; ++i) {
            trial const t = draw(random, size, most_bytes);
            buffers.push_back(std::make_unique<trial_buffers>(
                t, static_cast<std::size_t>(size), static_cast<std::size_t>(ompx_rank_num()),
                memory[i]->memory()));
            ASSERT_EQ(start(t, *buffers[i], ompx_group_world, &events[i]), OMPX_SUCCESS);
        }
        ompx_event_t barrier = nullptr;
        ASSERT_EQ(ompx_barrier_nb(ompx_group_world, &barrier), OMPX_SUCCESS);
        ASSERT_EQ(ompx_event_wait(&barrier), OMPX_SUCCESS);
        for (std::size_t i = 0; i < at_once; ++i) {
            // The barrier was queued last, so all others are complete.
            int done = 0;
            ASSERT_EQ(ompx_event_test(&events[i], &done), OMPX_SUCCESS);
            EXPECT_EQ(done, 1);
            buffers[i]->check();
        }
    }
}

TEST(collectives, overlapping_groups_from_several_threads) {
    int const size = ompx_num_ranks();
    int const rank = ompx_rank_num();
    if (size == 1) {
        GTEST_SKIP() << "one rank has no groups to overlap";
    }
    // One thread per group: all ranks in reverse order, and all but rank 0, 1 and 2.
    std::vector<std::thread> threads;
    for (int i = -1; i < std::min(size, 3); ++i) {
        std::vector<int> members;
        for (int each = size - 1; each >= 0; --each) {
            if (each != i) {
                members.push_back(each);
            }
        }
        if (std::find(members.begin(), members.end(), rank) == members.end()) {
            continue;
        }
        threads.emplace_back([members, i] {
            ompx_group_t group = nullptr;
            ASSERT_EQ(ompx_group_create(&group, members.data(), static_cast<int>(members.size())),
                      OMPX_SUCCESS);
            storage memory(static_cast<int>(members.size()), false);
            std::mt19937_64 random(static_cast<std::uint64_t>(i + 1));
            for (int round = 0; round < 60 && !testing::Test::HasFailure(); ++round) {
                run_trial(draw(random, static_cast<int>(members.size()), 20000), memory.memory(),
                          group);
            }
            EXPECT_EQ(ompx_group_free(&group), OMPX_SUCCESS);
            EXPECT_EQ(group, OMPX_GROUP_NONE);
        });
    }
    for (std::thread &each : threads) {
        each.join();
    }
}

// In several letters and pieces, which nodes pass on, and in a row, so that they overlap.
TEST(collectives, large_bcasts_reach_all_from_every_root) {
    int const size = ompx_num_ranks();
    int const rank = ompx_rank_num();
    constexpr std::uint64_t spoilt = ~std::uint64_t{0};
    for (std::size_t const count : {40'001U, 98'305U, 131'072U, 131'073U, 330'000U}) {
        std::vector<std::vector<std::uint64_t>> data(static_cast<std::size_t>(size));
        auto const of = [](int root, std::size_t i) {
            return (i + 1) * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(root);
        };
        for (int root = 0; root < size; ++root) {
            auto &mine = data[static_cast<std::size_t>(root)];
            mine.assign(count + 1, spoilt);
            for (std::size_t i = 0; root == rank && i < count; ++i) {
                mine[i] = of(root, i);
            }
        }
        for (int root = 0; root < size; ++root) {
            void *const mine = data[static_cast<std::size_t>(root)].data();
            ASSERT_EQ(ompx_bcast_from(mine, count * sizeof(spoilt), root, nullptr), OMPX_SUCCESS)
                << ompx_last_error();
        }
        for (int root = 0; root < size; ++root) {
            auto const &mine = data[static_cast<std::size_t>(root)];
            std::size_t num_wrong = 0;
            for (std::size_t i = 0; i < count; ++i) {
                num_wrong += mine[i] == of(root, i) ? 0U : 1U;
            }
            EXPECT_EQ(num_wrong, 0U) << count << " words from " << root;
            EXPECT_EQ(mine[count], spoilt);
        }
    }
}

struct matrix {
    std::int64_t a, b, c, d;
};
matrix operator*(const matrix &x, const matrix &y) {
    return {x.a * y.a + x.b * y.c, x.a * y.b + x.b * y.d, x.c * y.a + x.d * y.c,
            x.c * y.b + x.d * y.d};
}
void multiply(void *inout, const void *in, size_t count, ompx_type_t, void *) {
    for (size_t i = 0; i < count; ++i) {
        auto &to = static_cast<matrix *>(inout)[i];
        to = to * static_cast<const matrix *>(in)[i];
    }
}

// More than travels beside a post, less than goes another way: through the stages, before anything
// else has.
TEST(collectives, first_call_on_a_group) {
    for (std::size_t const nbytes : {std::size_t{700}, std::size_t{8000}}) {
        for (bool const to_all : {true, false}) {
            ompx_group_t group = OMPX_GROUP_NONE;
            ASSERT_EQ(ompx_group_dup(ompx_group_world, &group), OMPX_SUCCESS);
            std::vector<std::int8_t> const ones(nbytes, 1);
            std::vector<std::int8_t> sum(nbytes);
            int const outcome =
                to_all
                    ? ompx_allreduce(sum.data(), ones.data(), nbytes, OMPX_INT8, OMPX_SUM, group)
                    : ompx_reduce(sum.data(), ones.data(), nbytes, OMPX_INT8, OMPX_SUM, 0, group);
            ASSERT_EQ(outcome, OMPX_SUCCESS) << ompx_last_error();
            if (to_all || ompx_rank_num() == 0) {
                auto const num_ranks = static_cast<std::int8_t>(ompx_num_ranks());
                EXPECT_EQ(sum, std::vector<std::int8_t>(nbytes, num_ranks));
            }
            ASSERT_EQ(ompx_group_free(&group), OMPX_SUCCESS);
        }
    }
}

// Stages grow where there is space, and leave some for more groups.
TEST(collectives, groups_without_space_for_large_stages) {
    constexpr std::size_t count = 4096;
    auto const num_ranks = ompx_num_ranks();
    std::vector<ompx_group_t> groups;
    while (groups.size() < 300) {
        ompx_group_t group = OMPX_GROUP_NONE;
        if (int const made = ompx_group_dup(ompx_group_world, &group); made != OMPX_SUCCESS) {
            EXPECT_EQ(made, OMPX_ERR_NOMEM) << ompx_last_error();
            break;
        }
        groups.push_back(group);
        for (int round = 0; round < 3; ++round) {
            std::vector<std::int32_t> data(count, ompx_rank_num() + round);
            ASSERT_EQ(ompx_allreduce(data.data(), data.data(), count, OMPX_INT32, OMPX_SUM, group),
                      OMPX_SUCCESS)
                << "group " << groups.size() << ": " << ompx_last_error();
            std::int32_t const sum = num_ranks * (num_ranks - 1) / 2 + round * num_ranks;
            ASSERT_EQ(std::ranges::count(data, sum), static_cast<std::ptrdiff_t>(count))
                << "group " << groups.size();
        }
    }
    EXPECT_GT(groups.size(), 100U);
    for (ompx_group_t &each : groups) {
        EXPECT_EQ(ompx_group_free(&each), OMPX_SUCCESS) << ompx_last_error();
    }
}

TEST(collectives, user_defined_operator_in_rank_order) {
    ompx_op_t op = 0;
    ASSERT_EQ(ompx_op_create(&op, multiply, nullptr, 0), OMPX_SUCCESS);
    auto const of = [](int rank, std::size_t i) {
        auto const x = static_cast<std::int64_t>(i) + rank;
        return matrix{1, x % 3, x % 2, 1 + x % 2};
    };
    for (std::size_t const count : {1U, 50U, 4000U}) {
        std::vector<matrix> values(count);
        for (std::size_t i = 0; i < count; ++i) {
            values[i] = of(ompx_rank_num(), i);
        }
        ASSERT_EQ(ompx_allreduce(values.data(), values.data(), count,
                                 OMPX_TYPE_OF_SIZE(sizeof(matrix)), op, nullptr),
                  OMPX_SUCCESS);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < count; ++i) {
            matrix expected = of(0, i);
            for (int rank = 1; rank < ompx_num_ranks(); ++rank) {
                expected = expected * of(rank, i);
            }
            wrong += std::memcmp(&expected, &values[i], sizeof(matrix)) == 0 ? 0U : 1U;
        }
        EXPECT_EQ(wrong, 0U);
    }
    EXPECT_EQ(ompx_op_free(&op), OMPX_SUCCESS);
}

TEST(collectives, members_agree_on_whether_an_operator_is_commutative) {
    if (ompx_num_ranks() == 1) {
        GTEST_SKIP() << "one rank cannot disagree";
    }
    auto const add = [](void *inout, const void *in, std::size_t count, ompx_type_t, void *) {
        for (std::size_t i = 0; i < count; ++i) {
            static_cast<double *>(inout)[i] += static_cast<const double *>(in)[i];
        }
    };
    ompx_op_t op = 0;
    ASSERT_EQ(ompx_op_create(&op, add, nullptr, ompx_rank_num() == 0 ? 1 : 0), OMPX_SUCCESS);
    std::vector<double> const one(50000, 1.0);
    std::vector<double> sum(one.size());
    for (std::size_t const count : {5U, 50000U}) {
        EXPECT_EQ(ompx_allreduce(sum.data(), one.data(), count, OMPX_DOUBLE, op, nullptr),
                  OMPX_ERR_MISMATCH);
        EXPECT_THAT(ompx_last_error(), testing::HasSubstr("op=user-defined, not commutative"));
        EXPECT_EQ(ompx_barrier_group(nullptr), OMPX_SUCCESS) << ompx_last_error();
    }
    EXPECT_EQ(ompx_op_free(&op), OMPX_SUCCESS);
}

TEST(collectives, mismatch_comes_back_on_all_ranks_and_the_job_goes_on) {
    if (ompx_num_ranks() == 1) {
        GTEST_SKIP() << "one rank cannot disagree";
    }
    bool const odd = ompx_rank_num() == ompx_num_ranks() - 1;
    bool one_node = true;
    for (int rank = 0; rank < ompx_num_ranks(); ++rank) {
        one_node &= diomp_test::is_mapped(rank);
    }
    std::vector<double> a(50000, 1.0);
    for (std::size_t const count : {40U, 2000U, 50000U}) {
        // Between nodes nobody looks but those whom the data comes from and goes to.
        if (one_node) {
            EXPECT_EQ(ompx_bcast(a.data(), (odd ? count - 1 : count) * sizeof(double), nullptr),
                      OMPX_ERR_MISMATCH);
            EXPECT_THAT(ompx_last_error(),
                        testing::HasSubstr("rank 0 made ompx_bcast(root=0, nbytes="));
        }
        EXPECT_EQ(ompx_allreduce(a.data(), a.data(), count, OMPX_DOUBLE, odd ? OMPX_MAX : OMPX_SUM,
                                 nullptr),
                  OMPX_ERR_MISMATCH);
        EXPECT_THAT(ompx_last_error(), testing::HasSubstr("op=OMPX_MAX"));
        int const other =
            odd ? ompx_barrier_group(nullptr)
                : ompx_allreduce(a.data(), a.data(), count, OMPX_DOUBLE, OMPX_SUM, nullptr);
        EXPECT_EQ(other, OMPX_ERR_MISMATCH);
        EXPECT_EQ(a, std::vector<double>(50000, 1.0));
        EXPECT_EQ(ompx_barrier_group(nullptr), OMPX_SUCCESS);
    }
}

// Between nodes members look at those whom data comes from and goes to, up to a megabyte; then at
// all.
class disagreement_about_bcasts : public testing::Test {
protected:
    using call = int (*)(double *data, std::size_t count);

    static int as_the_others(double *data, std::size_t count) {
        return ompx_bcast(data, count * sizeof(double), nullptr);
    }
    static int with_less(double *data, std::size_t count) {
        return ompx_bcast(data, (count - 1) * sizeof(double), nullptr);
    }
    static int with_another_root(double *data, std::size_t count) {
        return ompx_bcast_from(data, count * sizeof(double), 1, nullptr);
    }
    static int with_another_call(double *, std::size_t) { return ompx_barrier_group(nullptr); }

    /// One differs. Nobody waits until the timeout, and what a buffer has is all or nothing.
    static void try_once(std::size_t count, int who_differs, call differs) {
        int const rank = ompx_rank_num();
        bool const is_other = rank == who_differs;
        double const before = rank == 0 ? 2.0 : 1.0;
        std::vector<double> data(count, before);
        auto const start = std::chrono::steady_clock::now();
        int const outcome = (is_other ? differs : as_the_others)(data.data(), count);
        EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15));
        bool const must_fail = is_other || count * sizeof(double) > 1 << 20;
        EXPECT_TRUE(outcome == OMPX_ERR_MISMATCH || (!must_fail && outcome == OMPX_SUCCESS))
            << outcome << ompx_last_error();
        double const found = data[0];
        EXPECT_EQ(std::ranges::count(data, found), static_cast<std::ptrdiff_t>(count));
        EXPECT_TRUE(found == (outcome == OMPX_SUCCESS ? 2.0 : before) ||
                    (found == 2.0 && !must_fail))
            << found;
        // Where nobody has waited for the one that differs, the next meeting tells it.
        int const next = ompx_barrier_group(nullptr);
        EXPECT_TRUE(next == OMPX_SUCCESS || next == OMPX_ERR_MISMATCH) << ompx_last_error();
        EXPECT_EQ(ompx_barrier_group(nullptr), OMPX_SUCCESS) << ompx_last_error();
        EXPECT_EQ(as_the_others(data.data(), count), OMPX_SUCCESS) << ompx_last_error();
        EXPECT_EQ(std::ranges::count(data, 2.0), static_cast<std::ptrdiff_t>(count));
        // Who differs by size and who is next to it in the tree have both been told, at least.
        int const failed = outcome == OMPX_ERR_MISMATCH ? 1 : 0;
        int num_failed = 0;
        ASSERT_EQ(ompx_allreduce(&num_failed, &failed, 1, OMPX_INT32, OMPX_SUM, nullptr),
                  OMPX_SUCCESS);
        EXPECT_GE(num_failed, differs == with_less ? 2 : 1);
    }
};

TEST_F(disagreement_about_bcasts, is_told_to_who_differs_and_leaves_no_half_written_buffer) {
    if (ompx_num_ranks() == 1) {
        GTEST_SKIP() << "one rank cannot disagree";
    }
    for (std::size_t const count : {10'000U, 50'000U, 131'072U, 200'000U}) {
        for (int who = 0; who < ompx_num_ranks(); ++who) {
            for (call const each : {with_less, with_another_root, with_another_call}) {
                SCOPED_TRACE(testing::Message()
                             << count << " elements, rank " << who << " differs");
                try_once(count, who, each);
            }
        }
    }
}

TEST(collectives, every_name_of_bcast_copies_from_its_root) {
    int const last = ompx_num_ranks() - 1;
    auto const expect_from = [](int root, const char *name, auto &&call) {
        int value = ompx_rank_num();
        EXPECT_EQ(call(&value), OMPX_SUCCESS) << name << ": " << ompx_last_error();
        EXPECT_EQ(value, root) << name;
    };
    expect_from(0, "ompx_bcast", [](int *v) { return ompx_bcast(v, sizeof *v, nullptr); });
    expect_from(last, "ompx_bcast_from",
                [=](int *v) { return ompx_bcast_from(v, sizeof *v, last, nullptr); });
    for (auto *const start : {ompx_bcast_nb, ompx_bcast_from_nb}) {
        expect_from(last, "the _nb forms", [=](int *v) {
            ompx_event_t event = nullptr;
            int const started = start(v, sizeof *v, last, nullptr, &event);
            return started == OMPX_SUCCESS ? ompx_event_wait(&event) : started;
        });
    }
}

TEST(collectives, offsets_of_buffers_that_are_not_used_may_have_any_value) {
    auto const size = static_cast<std::size_t>(ompx_num_ranks());
    auto const me = static_cast<std::size_t>(ompx_rank_num());
    int const root = ompx_num_ranks() - 1;
    std::vector<std::size_t> nbytes(size, 3);
    nbytes[0] = size > 1 ? 0 : 3; // and of a block without bytes
    std::vector<std::size_t> offsets(size, ~std::size_t{0} - 4);
    if (ompx_rank_num() == root) {
        for (std::size_t i = 0; i < size; ++i) {
            offsets[i] = nbytes[i] == 0 ? ~std::size_t{0} : 3 * i;
        }
    }
    std::vector<char> all(3 * size, 'x');
    std::vector<char> own(3, static_cast<char>('a' + static_cast<int>(me)));
    char *const whole = ompx_rank_num() == root ? all.data() : nullptr;
    for (bool const waits_for_event : {false, true}) {
        ompx_event_t event = nullptr;
        int status = waits_for_event ? ompx_gatherv_nb(whole, nbytes.data(), offsets.data(),
                                                       own.data(), root, nullptr, &event)
                                     : ompx_gatherv(whole, nbytes.data(), offsets.data(),
                                                    own.data(), root, nullptr);
        ASSERT_EQ(status == 0 ? ompx_event_wait(&event) : status, 0) << ompx_last_error();
        std::vector<char> back(3, 'y');
        status = waits_for_event ? ompx_scatterv_nb(back.data(), whole, nbytes.data(),
                                                    offsets.data(), root, nullptr, &event)
                                 : ompx_scatterv(back.data(), whole, nbytes.data(), offsets.data(),
                                                 root, nullptr);
        ASSERT_EQ(status == 0 ? ompx_event_wait(&event) : status, 0) << ompx_last_error();
        EXPECT_EQ(back, nbytes[me] == 0 ? std::vector<char>(3, 'y') : own);
    }
}

TEST(collectives, bad_arguments_come_back_with_a_sentence) {
    double x = 0;
    EXPECT_EQ(ompx_bcast_from(&x, 8, ompx_num_ranks(), nullptr), OMPX_ERR_RANK);
    EXPECT_THAT(ompx_last_error(), testing::HasSubstr("outside the group"));
    EXPECT_EQ(ompx_allreduce(&x, nullptr, 1, OMPX_DOUBLE, OMPX_SUM, nullptr), OMPX_ERR_ARG);
    EXPECT_THAT(ompx_last_error(), testing::HasSubstr("src is a null pointer"));
    EXPECT_EQ(ompx_allreduce(&x, &x, 1, OMPX_DOUBLE, OMPX_BXOR, nullptr), OMPX_ERR_ARG);
    EXPECT_THAT(ompx_last_error(), testing::HasSubstr("OMPX_BXOR has no meaning for OMPX_DOUBLE"));
    EXPECT_EQ(ompx_bcast(&x, static_cast<size_t>(-8), nullptr), OMPX_ERR_ARG);
    EXPECT_THAT(ompx_last_error(), testing::HasSubstr("negative or overflows"));
    EXPECT_EQ(ompx_bcast(&x, 8, OMPX_GROUP_NONE), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_bcast_nb(&x, 8, 0, nullptr, nullptr), OMPX_ERR_ARG);
    ompx_op_t unknown = 12345;
    EXPECT_EQ(ompx_op_free(&unknown), OMPX_ERR_ARG);
}

TEST(averages, are_of_sums_in_the_type_of_the_elements) {
    int const ranks = ompx_num_ranks();
    std::int8_t const byte = 100;
    std::int8_t mean = 0;
    ASSERT_EQ(ompx_allreduce(&mean, &byte, 1, OMPX_INT8, OMPX_AVG, ompx_group_world), 0);
    EXPECT_EQ(mean, static_cast<std::int8_t>(100 * ranks) / ranks) << "the sum wraps";
    std::int32_t const word = 100;
    std::int32_t wide_mean = 0;
    ASSERT_EQ(ompx_allreduce(&wide_mean, &word, 1, OMPX_INT32, OMPX_AVG, ompx_group_world), 0);
    EXPECT_EQ(wide_mean, 100) << "a wider type does not";
    std::uint16_t const half = 0x7b53; // 60000
    std::uint16_t half_mean = 0;
    ASSERT_EQ(ompx_allreduce(&half_mean, &half, 1, OMPX_FLOAT16, OMPX_AVG, ompx_group_world), 0);
    EXPECT_EQ(half_mean, ranks == 1 ? half : 0x7c00) << "120000 is infinite";
}

} // namespace
