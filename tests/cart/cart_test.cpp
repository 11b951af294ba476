// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Grids on ranks: neighbours, exchanges without barriers, misuse.
#include "diomp.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

namespace {

int const me = ompx_rank_num();
int const ranks = ompx_num_ranks();

/// What `from` sends in a step to its neighbour on a side: element i.
std::int64_t element(int from, int step, std::size_t side, std::size_t i) {
    return ((from * 1000LL + step) * 100 + static_cast<std::int64_t>(side)) * 100000 +
           static_cast<std::int64_t>(i);
}

struct grid {
    ompx_cart_t cart = OMPX_CART_NONE;
    int num_dims;
    std::vector<int> neighbours; ///< [side]

    grid(std::vector<int> const &dims, std::vector<int> const &periodic, int reorder = 0)
        : num_dims(static_cast<int>(dims.size())) {
        EXPECT_EQ(ompx_cart_create(ompx_group_world, num_dims, dims.data(), periodic.data(),
                                   reorder, &cart),
                  0);
        for (int dim = 0; cart != OMPX_CART_NONE && dim < num_dims; ++dim) {
            int before = 0;
            int after = 0;
            EXPECT_EQ(ompx_cart_shift(cart, dim, 1, &before, &after), 0);
            neighbours.insert(neighbours.end(), {before, after});
        }
    }
    ~grid() {
        EXPECT_EQ(ompx_cart_free(&cart), 0);
        EXPECT_EQ(cart, OMPX_CART_NONE);
    }
    grid(const grid &) = delete;
    grid &operator=(const grid &) = delete;
};

/// Steps without any synchronisation but the exchange. Ranks run at different speeds.
void exchange_repeatedly(const grid &on, std::size_t count, int steps) {
    std::size_t const sides = on.neighbours.size();
    std::vector<std::int64_t> send(sides * count);
    std::vector<std::int64_t> receive(sides * count);
    for (int step = 0; step < steps; ++step) {
        for (std::size_t side = 0; side < sides; ++side) {
            for (std::size_t i = 0; i < count; ++i) {
                send[side * count + i] = element(me, step, side, i);
            }
        }
        std::ranges::fill(receive, -1);
        if ((step + me) % 7 == 0) {
            for (int n = 0; n < 20; ++n) {
                ASSERT_EQ(ompx_progress(), 0);
            }
        }
        ASSERT_EQ(
            ompx_cart_exchange(on.cart, send.data(), receive.data(), count * sizeof(std::int64_t)),
            0);
        std::ranges::fill(send, -2); // may be reused
        for (std::size_t side = 0; side < sides; ++side) {
            for (std::size_t i = 0; i < count; ++i) {
                std::int64_t const expected = on.neighbours[side] == OMPX_NO_RANK
                                                  ? -1
                                                  : element(on.neighbours[side], step, side ^ 1, i);
                ASSERT_EQ(receive[side * count + i], expected)
                    << "step " << step << ", side " << side << ", element " << i;
            }
        }
    }
}

TEST(cart, exchange_in_rings_and_lines_of_one_to_three_dimensions) {
    for (int const periodic : {0, 1}) {
        for (int num_dims = 1; num_dims <= 3; ++num_dims) {
            std::vector<int> dims(static_cast<std::size_t>(num_dims));
            ASSERT_EQ(ompx_dims_create(ranks, num_dims, dims.data()), 0);
            grid const on(dims, std::vector<int>(dims.size(), periodic));
            exchange_repeatedly(on, 1, 50);
            exchange_repeatedly(on, 0, 3);
            exchange_repeatedly(on, 1000, 20); // larger: new channels
            exchange_repeatedly(on, 3, 20);    // smaller: the same
            exchange_repeatedly(on, 30000, 4);
        }
    }
}

TEST(cart, two_grids_at_once_and_reordered) {
    std::vector<int> dims{0, 0};
    ASSERT_EQ(ompx_dims_create(ranks, 2, dims.data()), 0);
    grid const a(dims, {1, 0});
    grid const b({1, ranks}, {1, 1}, 1);
    for (int n = 0; n < 10; ++n) {
        exchange_repeatedly(a, 5, 3);
        exchange_repeatedly(b, 5, 3);
    }
}

TEST(cart, coordinates_ranks_and_shifts_agree) {
    std::vector<int> dims{0, 0};
    ASSERT_EQ(ompx_dims_create(ranks, 2, dims.data()), 0);
    for (int const reorder : {0, 1}) {
        grid const on(dims, {1, 0}, reorder);
        EXPECT_EQ(ompx_cart_num_dims(on.cart), 2);
        EXPECT_EQ(ompx_cart_size(on.cart), ranks);
        std::array<int, 2> extents{};
        std::array<int, 2> rings{};
        ASSERT_EQ(ompx_cart_dims(on.cart, extents.data(), rings.data()), 0);
        EXPECT_THAT(extents, testing::ElementsAreArray(dims));
        EXPECT_THAT(rings, testing::ElementsAre(1, 0));
        std::vector<int> seen(static_cast<std::size_t>(ranks));
        for (int i = 0; i < dims[0]; ++i) {
            for (int j = 0; j < dims[1]; ++j) {
                std::array<int, 2> const at{i + 3 * dims[0], j}; // wraps
                int rank = OMPX_NO_RANK;
                ASSERT_EQ(ompx_cart_rank(on.cart, at.data(), &rank), 0);
                ASSERT_TRUE(rank >= 0 && rank < ranks);
                ++seen[static_cast<std::size_t>(rank)];
                std::array<int, 2> coords{};
                ASSERT_EQ(ompx_cart_coords(on.cart, rank, coords.data()), 0);
                EXPECT_THAT(coords, testing::ElementsAre(i, j));
                EXPECT_TRUE(reorder != 0 || rank == i * dims[1] + j);
            }
        }
        EXPECT_THAT(seen, testing::Each(1));
        std::array<int, 2> const outside{0, dims[1]};
        int rank = 5;
        ASSERT_EQ(ompx_cart_rank(on.cart, outside.data(), &rank), 0);
        EXPECT_EQ(rank, OMPX_NO_RANK);
        int source = 0;
        int target = 0;
        ASSERT_EQ(ompx_cart_shift(on.cart, 0, dims[0], &source, &target), 0);
        EXPECT_EQ(source, me);
        EXPECT_EQ(target, me);
        ASSERT_EQ(ompx_cart_shift(on.cart, 1, INT32_MIN, &source, &target), 0);
        EXPECT_EQ(source, OMPX_NO_RANK);
        EXPECT_EQ(target, OMPX_NO_RANK);
    }
}

TEST(cart, members_beyond_the_grid_get_none) {
    int const size = std::max(1, ranks - 1);
    grid const on({size}, {1});
    EXPECT_EQ(on.cart != OMPX_CART_NONE, me < size);
    if (me < size) {
        exchange_repeatedly(on, 2, 10);
    }
    ompx_barrier();
}

TEST(cart, of_a_group_has_world_ranks) {
    if (ranks < 2) {
        GTEST_SKIP() << "needs 2 ranks";
    }
    // The ranks backwards.
    std::vector<int> list(static_cast<std::size_t>(ranks));
    std::iota(list.rbegin(), list.rend(), 0);
    ompx_group_t group = OMPX_GROUP_NONE;
    ASSERT_EQ(ompx_group_create(&group, list.data(), ranks), 0);
    ompx_cart_t cart = OMPX_CART_NONE;
    ASSERT_EQ(ompx_cart_create(group, 1, &ranks, nullptr, 0, &cart), 0);
    int source = 0;
    int target = 0;
    ASSERT_EQ(ompx_cart_shift(cart, 0, 1, &source, &target), 0);
    EXPECT_EQ(source, me + 1 < ranks ? me + 1 : OMPX_NO_RANK);
    EXPECT_EQ(target, me - 1);
    ASSERT_EQ(ompx_cart_free(&cart), 0);
    ASSERT_EQ(ompx_group_free(&group), 0);
}

TEST(cart, blocks_of_different_sizes) {
    std::array<int, 2> dims{};
    ASSERT_EQ(ompx_dims_create(ranks, 2, dims.data()), 0);
    grid const on({dims[0], dims[1]}, {1, 1});
    for (std::size_t step = 0; step < 10; ++step) {
        // To the one after twice as much as to the one before; nothing in the second dimension at
        // times.
        std::size_t const rows = step % 3 * 10;
        std::array<std::size_t, 4> const sent{5, 10, rows, 2 * rows};
        std::array<std::size_t, 4> const received{10, 5, 2 * rows, rows};
        std::array<std::vector<std::int32_t>, 4> send;
        std::array<std::vector<std::int32_t>, 4> receive;
        std::array<const void *, 4> sources{};
        std::array<void *, 4> targets{};
        std::array<std::size_t, 4> sent_bytes{};
        std::array<std::size_t, 4> received_bytes{};
        for (std::size_t i = 0; i < 4; ++i) {
            send[i].assign(sent[i], me * 100 + static_cast<int>(i * 10 + step));
            receive[i].assign(received[i], -1);
            sources[i] = send[i].data();
            targets[i] = receive[i].data();
            sent_bytes[i] = sent[i] * sizeof(std::int32_t);
            received_bytes[i] = received[i] * sizeof(std::int32_t);
        }
        ASSERT_EQ(ompx_cart_exchangev(on.cart, sources.data(), sent_bytes.data(), targets.data(),
                                      received_bytes.data()),
                  0);
        for (std::size_t i = 0; i < 4; ++i) {
            EXPECT_THAT(receive[i], testing::Each(on.neighbours[i] * 100 +
                                                  static_cast<int>((i ^ 1) * 10 + step)));
        }
    }
}

/// A field of cells with a ghost cell on each side: [rows][columns].
constexpr int edge = 6;
using square = std::array<std::array<std::int64_t, edge>, edge>;

std::int64_t cell(int rank, int step, int row, int column) {
    return ((rank * 100LL + step) * 10 + row) * 10 + column;
}

/// Exchanges the ghosts of one dimension, of lines of `edge` cells: corners of the other dimension
/// go along.
void exchange_ghosts(const grid &on, int dim, square &field) {
    std::array<std::array<std::int64_t, edge>, 2> out{};
    std::array<std::array<std::int64_t, edge>, 2> in{};
    auto const at = [&](int line, int i) -> std::int64_t & {
        auto const l = static_cast<std::size_t>(line);
        auto const k = static_cast<std::size_t>(i);
        return dim == 0 ? field[l][k] : field[k][l];
    };
    for (int i = 0; i < edge; ++i) {
        out[0][static_cast<std::size_t>(i)] = at(1, i);
        out[1][static_cast<std::size_t>(i)] = at(edge - 2, i);
    }
    std::array<const void *, 2> const send{out[0].data(), out[1].data()};
    std::array<void *, 2> const receive{in[0].data(), in[1].data()};
    std::array<std::size_t, 2> const nbytes{sizeof out[0], sizeof out[1]};
    ASSERT_EQ(ompx_cart_exchange_dim(on.cart, dim, send.data(), nbytes.data(), receive.data(),
                                     nbytes.data()),
              0);
    for (int side = 0; side < 2; ++side) {
        if (on.neighbours[static_cast<std::size_t>(2 * dim + side)] == OMPX_NO_RANK) {
            EXPECT_THAT(in[static_cast<std::size_t>(side)], testing::Each(0)) << "not touched";
            continue;
        }
        for (int i = 0; i < edge; ++i) {
            at(side == 0 ? 0 : edge - 1, i) =
                in[static_cast<std::size_t>(side)][static_cast<std::size_t>(i)];
        }
    }
}

/// The cell that a ghost shows, or -1 beyond the edge of the grid.
std::int64_t ghost(const grid &on, int step, int row, int column) {
    std::array<int, 2> coords{};
    EXPECT_EQ(ompx_cart_coords(on.cart, me, coords.data()), 0);
    auto const shift = [](int i) { return i == 0 ? -1 : i == edge - 1 ? 1 : 0; };
    auto const wrapped = [](int i) { return i == 0 ? edge - 2 : i == edge - 1 ? 1 : i; };
    std::array<int, 2> const there{coords[0] + shift(row), coords[1] + shift(column)};
    int owner = OMPX_NO_RANK;
    EXPECT_EQ(ompx_cart_rank(on.cart, there.data(), &owner), 0);
    return owner == OMPX_NO_RANK ? -1 : cell(owner, step, wrapped(row), wrapped(column));
}

void check_halos(std::vector<int> const &dims, std::vector<int> const &periodic) {
    grid const on(dims, periodic);
    if (on.cart == OMPX_CART_NONE) {
        return;
    }
    for (int step = 0; step < 20; ++step) {
        square field{};
        for (int row = 0; row < edge; ++row) {
            for (int column = 0; column < edge; ++column) {
                bool const is_own = row > 0 && row < edge - 1 && column > 0 && column < edge - 1;
                field[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)] =
                    is_own ? cell(me, step, row, column) : -1;
            }
        }
        exchange_ghosts(on, 1, field);
        exchange_ghosts(on, 0, field);
        for (int row = 0; row < edge; ++row) {
            for (int column = 0; column < edge; ++column) {
                ASSERT_EQ(field[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)],
                          ghost(on, step, row, column))
                    << "step " << step << ", row " << row << ", column " << column;
            }
        }
    }
}

TEST(cart, one_dimension_after_the_other_carries_the_corners) {
    std::vector<int> dims(2);
    ASSERT_EQ(ompx_dims_create(ranks, 2, dims.data()), 0);
    check_halos(dims, {1, 1});
    check_halos(dims, {0, 0});
    check_halos({1, ranks}, {1, 0});
}

// The other dimension's neighbours need not call.
TEST(cart, exchange_in_one_dimension_waits_for_that_one_only) {
    if (ranks != 4) {
        GTEST_SKIP() << "needs 4 ranks";
    }
    grid const on({2, 2}, {0, 0});
    std::array<int, 2> const mine{me, me};
    std::array<int, 2> theirs{-1, -1};
    std::array<const void *, 2> const send{&mine[0], &mine[1]};
    std::array<void *, 2> const receive{&theirs[0], &theirs[1]};
    std::array<std::size_t, 2> const nbytes{sizeof(int), sizeof(int)};
    if (me < 2) { // the first row; the second one is in the barrier
        ASSERT_EQ(ompx_cart_exchange_dim(on.cart, 1, send.data(), nbytes.data(), receive.data(),
                                         nbytes.data()),
                  0);
        EXPECT_EQ(theirs, (me == 0 ? std::array{-1, 1} : std::array{0, -1}));
    }
    ompx_barrier();
    theirs = {-1, -1};
    ASSERT_EQ(ompx_cart_exchange_dim(on.cart, 0, send.data(), nbytes.data(), receive.data(),
                                     nbytes.data()),
              0);
    EXPECT_EQ(theirs, (me < 2 ? std::array{-1, me + 2} : std::array{me - 2, -1}));
    ompx_barrier();
}

TEST(cart, different_block_sizes_are_an_error) {
    if (ranks != 2) {
        GTEST_SKIP() << "needs 2 ranks";
    }
    grid const on({2}, {0});
    std::array<std::int64_t, 4> send{};
    std::array<std::int64_t, 4> receive{};
    ASSERT_EQ(ompx_cart_exchange(on.cart, send.data(), receive.data(), 16), 0);
    EXPECT_EQ(ompx_cart_exchange(on.cart, send.data(), receive.data(), me == 0 ? 8 : 16),
              OMPX_ERR_MISMATCH);
    ompx_barrier();
    std::array<const void *, 2> const sources{send.data(), send.data()};
    std::array<void *, 2> const targets{receive.data(), receive.data()};
    std::array<std::size_t, 2> const shorter{8, 8};
    std::array<std::size_t, 2> const longer{16, 16};
    EXPECT_EQ(ompx_cart_exchange_dim(on.cart, 0, sources.data(),
                                     me == 0 ? shorter.data() : longer.data(), targets.data(),
                                     me == 0 ? shorter.data() : longer.data()),
              OMPX_ERR_MISMATCH);
    ompx_barrier();
    ASSERT_EQ(ompx_cart_exchange(on.cart, send.data(), receive.data(), 16), 0)
        << "both have consumed the blocks of the failed call";
    ompx_barrier();
}

TEST(cart, blocks_that_do_not_fit_leave_the_grid_usable) {
    grid const g({ranks}, {1});
    std::vector<std::int64_t> sent(8);
    std::vector<std::int64_t> received(8);
    for (std::size_t const too_large :
         {std::size_t{1} << 62, std::size_t{1} << 46, std::size_t{1} << 40}) {
        EXPECT_NE(ompx_cart_exchange(g.cart, sent.data(), received.data(), too_large), 0);
        for (std::size_t side = 0; side < 2; ++side) {
            sent[side] = element(me, 1, side, 0);
        }
        ASSERT_EQ(ompx_cart_exchange(g.cart, sent.data(), received.data(), sizeof(std::int64_t)), 0)
            << ompx_last_error();
        for (std::size_t side = 0; side < 2; ++side) {
            EXPECT_EQ(received[side], element(g.neighbours[side], 1, side ^ 1, 0));
        }
    }
}

TEST(cart, arguments_must_be_equal_on_all_members) {
    if (ranks < 2) {
        GTEST_SKIP() << "needs 2 ranks";
    }
    ompx_cart_t cart = OMPX_CART_NONE;
    std::array<int, 2> const dims{me == 0 ? 1 : 2, me == 0 ? 2 : 1};
    EXPECT_EQ(ompx_cart_create(ompx_group_world, 2, dims.data(), nullptr, 0, &cart),
              OMPX_ERR_MISMATCH);
    int const periodic = me;
    EXPECT_EQ(ompx_cart_create(ompx_group_world, 1, &ranks, &periodic, 0, &cart),
              OMPX_ERR_MISMATCH);
    EXPECT_EQ(cart, OMPX_CART_NONE);
    // One member's arguments are invalid: all get an error, and the next call is in step.
    int const own_error = me == 0 ? OMPX_ERR_ARG : OMPX_ERR_MISMATCH;
    int const extent = me == 0 ? 0 : ranks;
    EXPECT_EQ(ompx_cart_create(ompx_group_world, 1, &extent, nullptr, 0, &cart), own_error);
    EXPECT_EQ(ompx_cart_create(ompx_group_world, me == 0 ? 0 : 1, &ranks, nullptr, 0, &cart),
              own_error);
    EXPECT_EQ(ompx_cart_create(ompx_group_world, 1, me == 0 ? nullptr : &ranks, nullptr, 0, &cart),
              own_error);
    EXPECT_EQ(cart, OMPX_CART_NONE);
    grid const after({ranks}, {1});
    EXPECT_EQ(ompx_cart_size(after.cart), ranks);
    ompx_barrier();
}

TEST(cart, misuse_is_an_error) {
    ompx_cart_t cart = OMPX_CART_NONE;
    int const more = ranks + 1;
    int const none = 0;
    EXPECT_EQ(ompx_cart_create(ompx_group_world, 1, &more, nullptr, 0, &cart), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_cart_create(ompx_group_world, 1, &none, nullptr, 0, &cart), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_cart_create(ompx_group_world, 0, &ranks, nullptr, 0, &cart), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_cart_create(ompx_group_world, OMPX_CART_MAX_DIMS + 1, &ranks, nullptr, 0, &cart),
              OMPX_ERR_ARG);
    EXPECT_EQ(ompx_cart_create(ompx_group_world, 1, nullptr, nullptr, 0, &cart), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_cart_create(ompx_group_world, 1, &ranks, nullptr, 0, nullptr), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_cart_create(OMPX_GROUP_NONE, 1, &ranks, nullptr, 0, &cart), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_dims_create(4, 2, nullptr), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_cart_size(cart), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_cart_free(nullptr), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_cart_free(&cart), 0);

    grid const on({ranks}, {1});
    int number = 0;
    EXPECT_EQ(ompx_cart_shift(on.cart, 1, 1, &number, &number), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_cart_shift(on.cart, -1, 1, &number, &number), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_cart_shift(on.cart, 0, 1, nullptr, &number), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_cart_coords(on.cart, ranks, &number), OMPX_ERR_RANK);
    EXPECT_EQ(ompx_cart_coords(on.cart, -1, &number), OMPX_ERR_RANK);
    EXPECT_EQ(ompx_cart_rank(on.cart, nullptr, &number), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_cart_exchange(on.cart, nullptr, &number, 4), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_cart_exchange(on.cart, &number, nullptr, 4), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_cart_exchange(on.cart, &number, &number, SIZE_MAX), OMPX_ERR_ARG);
    EXPECT_EQ(ompx_cart_exchangev(on.cart, nullptr, nullptr, nullptr, nullptr), OMPX_ERR_ARG);
    std::array<const void *, 2> const send{&number, nullptr};
    std::array<void *, 2> const receive{&number, &number};
    std::array<std::size_t, 2> const sizes{4, 4};
    auto const exchange = [&](ompx_cart_t with, int dim, const std::size_t *nbytes) {
        return ompx_cart_exchange_dim(with, dim, send.data(), nbytes, receive.data(), nbytes);
    };
    EXPECT_EQ(exchange(on.cart, 0, sizes.data()), OMPX_ERR_ARG) << "a null block";
    EXPECT_EQ(exchange(on.cart, 0, nullptr), OMPX_ERR_ARG);
    EXPECT_EQ(exchange(on.cart, 1, sizes.data()), OMPX_ERR_ARG);
    EXPECT_EQ(exchange(on.cart, -1, sizes.data()), OMPX_ERR_ARG);
    EXPECT_EQ(exchange(OMPX_CART_NONE, 0, sizes.data()), OMPX_ERR_ARG);
    ompx_cart_t copy = on.cart;
    auto *const garbage = reinterpret_cast<ompx_cart_t>(&copy);
    EXPECT_EQ(ompx_cart_num_dims(garbage), OMPX_ERR_ARG);
    ompx_barrier();
}

TEST(cart_cpp, grid_of_two_dimensions) {
    auto const dims = diomp::dims_create<2>(ranks);
    EXPECT_EQ(dims[0] * dims[1], ranks);
    diomp::cart<2> on(dims, {true, false});
    ASSERT_TRUE(on);
    EXPECT_EQ(on.size(), ranks);
    EXPECT_EQ(on.dims(), dims);
    EXPECT_EQ(on.rank(on.coords()), me);
    EXPECT_EQ(on.rank({0, dims[1]}), std::nullopt);
    auto const [before, after] = on.shift(0);
    ASSERT_TRUE(before && after);
    std::array<int, 8> const send{me, me, me, me, me, me, me, me};
    std::array<int, 8> receive{-1, -1, -1, -1, -1, -1, -1, -1};
    on.exchange(std::span<const int>(send), std::span<int>(receive));
    EXPECT_EQ(receive[0], *before);
    EXPECT_EQ(receive[3], *after);
    EXPECT_EQ(receive[4], on.shift(1).source.value_or(-1));
    EXPECT_EQ(receive[7], on.shift(1).target.value_or(-1));
    std::array<int, 4> parts{-1, -1, -1, -1};
    std::span<const int> const own(send.data(), 1);
    std::span<int> const all(parts);
    on.exchange<int>({own, own, own, own},
                     {all.subspan(0, 1), all.subspan(1, 1), all.subspan(2, 1), all.subspan(3, 1)});
    EXPECT_EQ(parts[1], *after);
    parts.fill(-1);
    on.exchange<int>(0, {own, own}, {all.subspan(0, 1), all.subspan(1, 1)});
    EXPECT_EQ(parts, (std::array{*before, *after, -1, -1}));
    std::array<int, 7> odd{};
    EXPECT_THROW(on.exchange(std::span<const int>(odd), std::span<int>(odd)), diomp::error);
    diomp::cart<2> const moved = std::move(on);
    EXPECT_FALSE(on); // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(moved.size(), ranks);
}

} // namespace
