// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives with typed buffers. Runs with DIOMP_ERRORS=return.
#include "diomp.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

namespace {

class cpp_collective : public testing::Test {
protected:
    int me = diomp::this_rank();
    int ranks = diomp::num_ranks();
    std::size_t size = static_cast<std::size_t>(ranks);
};

TEST_F(cpp_collective, bcast_of_values_and_ranges) {
    const int root = ranks - 1;
    double value = me == root ? 2.5 : 0;
    diomp::bcast(value, root);
    EXPECT_EQ(value, 2.5);
    std::vector<int> values(1000, me == root ? 17 : 0);
    diomp::bcast(values, root);
    EXPECT_EQ(values[999], 17);
    std::fill(values.begin(), values.end(), me == 0 ? 18 : 0);
    diomp::bcast_nb(values).wait();
    EXPECT_EQ(values[0], 18);
    EXPECT_EQ(values[999], 18);
}

TEST_F(cpp_collective, allreduce_of_values_ranges_and_in_place) {
    EXPECT_EQ(diomp::allreduce(me + 1, diomp::op::sum), ranks * (ranks + 1) / 2);
    EXPECT_EQ(diomp::allreduce(static_cast<float>(me), diomp::op::max),
              static_cast<float>(ranks - 1));
    EXPECT_EQ(diomp::allreduce(me == 0, diomp::op::land), ranks == 1);
    EXPECT_TRUE(diomp::allreduce(me == ranks - 1, diomp::op::lor));
    const std::vector<long> source{me, -me, 1};
    std::vector<long> result(3);
    diomp::allreduce(result, source, diomp::op::sum);
    EXPECT_EQ(result,
              (std::vector<long>{ranks * (ranks - 1) / 2, -ranks * (ranks - 1) / 2, ranks}));
    std::array<unsigned, 2> bits{1u << me, ~0u};
    diomp::allreduce(bits, diomp::op::bor);
    EXPECT_EQ(bits[0], (1u << ranks) - 1);
    bits[1] = ~(1u << me);
    diomp::allreduce_nb(bits, diomp::op::band).wait();
    EXPECT_EQ(bits[1], ~((1u << ranks) - 1));
    diomp::barrier_nb().wait();
}

struct best {
    double cost;
    int rank;
};

TEST_F(cpp_collective, a_user_defined_operator_on_a_struct) {
    const diomp::user_op<best> least(
        [](const best &a, const best &b) { return b.cost < a.cost ? b : a; }, true);
    const best found = diomp::allreduce(best{std::abs(me - 1.25), me}, least);
    EXPECT_EQ(found.rank, ranks == 1 ? 0 : 1);
    EXPECT_EQ(found.cost, ranks == 1 ? 1.25 : 0.25);
}

TEST_F(cpp_collective, a_user_defined_operator_that_keeps_the_order_of_ranks) {
    // The product of 2x2 matrices is associative, but not commutative.
    using matrix = std::array<long, 4>;
    const auto times = [](const matrix &a, const matrix &b) {
        return matrix{a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3],
                      a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3]};
    };
    const diomp::user_op<matrix> product(times);
    const auto of_rank = [](int rank) { return matrix{1, rank + 1, rank, 2}; };
    std::vector<matrix> values(5, of_rank(me));
    diomp::allreduce(values, product);
    matrix expected = of_rank(0);
    for (int rank = 1; rank < ranks; ++rank) {
        expected = times(expected, of_rank(rank));
    }
    EXPECT_EQ(values.front(), expected);
    EXPECT_EQ(values.back(), expected);
    // One value, although it is a range of numbers.
    EXPECT_EQ(diomp::allreduce(of_rank(me), product), expected);
    const matrix at_root = diomp::reduce(of_rank(me), product, 0);
    if (me == 0) {
        EXPECT_EQ(at_root, expected);
    }
    const matrix last = diomp::scan(of_rank(me), product);
    const matrix before = diomp::exscan(of_rank(me), product);
    if (me == ranks - 1) {
        EXPECT_EQ(last, expected);
    }
    EXPECT_EQ(me == 0 ? of_rank(me) : times(before, of_rank(me)), last);
}

TEST_F(cpp_collective, reduce_gather_and_scatter_at_a_root) {
    const int root = ranks / 2;
    const std::vector<int> source{me, 2 * me};
    std::vector<int> sums(me == root ? 2 : 0);
    diomp::reduce(sums, source, diomp::op::sum, root);
    const int total = diomp::reduce(me, diomp::op::sum, root);
    std::vector<int> gathered(me == root ? 2 * size : 0);
    diomp::gather(gathered, source, root);
    if (me == root) {
        EXPECT_EQ(sums, (std::vector<int>{ranks * (ranks - 1) / 2, ranks * (ranks - 1)}));
        EXPECT_EQ(total, ranks * (ranks - 1) / 2);
        for (std::size_t rank = 0; rank < size; ++rank) {
            EXPECT_EQ(gathered[2 * rank + 1], 2 * static_cast<int>(rank));
        }
    }
    std::vector<int> mine(2, -1);
    diomp::scatter(mine, gathered, root);
    EXPECT_EQ(mine, source);
}

TEST_F(cpp_collective, one_value_per_rank) {
    struct place {
        int rank;
        double of;
    };
    const auto all = diomp::allgather(place{me, 0.5 * me});
    ASSERT_EQ(all.size(), size);
    const auto at_last = diomp::gather(me + 10, ranks - 1);
    EXPECT_EQ(at_last.size(), me == ranks - 1 ? size : 0);
    for (std::size_t rank = 0; rank < size; ++rank) {
        EXPECT_EQ(all[rank].rank, static_cast<int>(rank));
        EXPECT_EQ(all[rank].of, 0.5 * static_cast<double>(rank));
        EXPECT_TRUE(at_last.empty() || at_last[rank] == static_cast<int>(rank) + 10);
    }
    EXPECT_EQ(diomp::scan(me + 1, diomp::op::sum), (me + 1) * (me + 2) / 2);
    EXPECT_EQ(diomp::exscan(me + 1, diomp::op::sum), me * (me + 1) / 2);
    const auto half = diomp::group::split({}, me % 2, me);
    EXPECT_EQ(diomp::allgather(me, half).front(), me % 2);
}

TEST_F(cpp_collective, allgather_alltoall_and_reduce_scatter) {
    const std::array<int, 1> one{me * 3};
    std::vector<int> all(size);
    diomp::allgather(all, one);
    for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(all[static_cast<std::size_t>(rank)], rank * 3);
    }
    std::vector<int> out(2 * size);
    for (std::size_t to = 0; to < size; ++to) {
        out[2 * to] = me;
        out[2 * to + 1] = static_cast<int>(to);
    }
    std::vector<int> in(2 * size);
    diomp::alltoall(in, out);
    for (std::size_t from = 0; from < size; ++from) {
        EXPECT_EQ(in[2 * from], static_cast<int>(from));
        EXPECT_EQ(in[2 * from + 1], me);
    }
    std::array<int, 2> block{};
    diomp::reduce_scatter(block, out, diomp::op::sum);
    EXPECT_EQ(block[0], ranks * (ranks - 1) / 2);
    EXPECT_EQ(block[1], me * ranks);
}

/// Member i gets (me + i) % 3 elements from me: 100 * me + i.
struct uneven {
    std::vector<int> elements;
    std::vector<std::size_t> counts;

    uneven(int me, std::size_t size) {
        for (std::size_t to = 0; to < size; ++to) {
            counts.push_back((static_cast<std::size_t>(me) + to) % 3);
            elements.insert(elements.end(), counts.back(), 100 * me + static_cast<int>(to));
        }
    }
};

TEST_F(cpp_collective, alltoallv_of_known_and_unknown_blocks) {
    uneven const out(me, size);
    std::vector<int> expected;
    for (int from = 0; from < ranks; ++from) {
        expected.insert(expected.end(), static_cast<std::size_t>(from + me) % 3, 100 * from + me);
    }
    auto const received = diomp::alltoallv(out.elements, out.counts);
    EXPECT_EQ(received.counts, out.counts) << "the counts of a pair are equal both ways";
    EXPECT_EQ(received.elements, expected);

    std::vector<int> in(received.elements.size(), -1);
    diomp::alltoallv(in, received.counts, out.elements, out.counts);
    EXPECT_EQ(in, expected);

    std::vector<std::size_t> const nothing(size);
    EXPECT_TRUE(diomp::alltoallv(std::vector<double>{}, nothing).elements.empty());
}

TEST_F(cpp_collective, alltoallv_of_wrong_counts_is_an_error_before_any_transfer) {
    std::vector<std::size_t> counts(size, 1);
    std::vector<int> block(size);
    std::vector<int> longer(size + 1);
    std::vector<std::size_t> const more(size + 1);
    EXPECT_THROW((void)diomp::alltoallv(longer, counts), diomp::error);
    EXPECT_THROW((void)diomp::alltoallv(block, more), diomp::error);
    EXPECT_THROW(diomp::alltoallv(longer, counts, block, counts), diomp::error);
    EXPECT_THROW(diomp::alltoallv(block, more, block, counts), diomp::error);
    EXPECT_EQ(diomp::allreduce(1, diomp::op::sum), ranks) << "no rank is out of step";
}

TEST_F(cpp_collective, scans_and_averages) {
    std::vector<int> const one(5, 1);
    std::vector<int> before(5, -1);
    diomp::exscan(before, one, diomp::op::sum);
    EXPECT_EQ(before, std::vector<int>(5, me == 0 ? -1 : me));
    std::vector<int> with(5);
    diomp::scan(with, one, diomp::op::sum);
    EXPECT_EQ(with, std::vector<int>(5, me + 1));
    double const mean = diomp::allreduce(static_cast<double>(me), diomp::op::avg);
    EXPECT_EQ(mean, (ranks - 1) / 2.0);
}

TEST_F(cpp_collective, buffers_that_do_not_fit_each_other_are_errors_before_any_transfer) {
    const std::vector<int> source(3);
    std::vector<int> block(3);
    std::vector<int> wrong(3 * size + 1);
    EXPECT_THROW(diomp::allreduce(wrong, source, diomp::op::sum), diomp::error);
    EXPECT_THROW(diomp::allgather(wrong, source), diomp::error);
    EXPECT_THROW(diomp::reduce_scatter(block, wrong, diomp::op::sum), diomp::error);
    if (ranks > 1) {
        EXPECT_THROW(diomp::alltoall(wrong, wrong), diomp::error);
    }
    const int sum = diomp::allreduce(1, diomp::op::sum);
    EXPECT_EQ(sum, ranks) << "no rank is out of step";
}

} // namespace
