// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The Cartesian grids of one rank.
#pragma once

#include "base/handle_table.h"
#include "cart/cart_grid.h"
#include "cart/neighbour_exchange.h"
#include "diomp/types.h"

#include <atomic>
#include <cstdint>
#include <utility>

namespace diomp::cart {

/// A grid in which this rank has a position.
class cart {
public:
    cart(cart_grid grid, channels::channel_registry &registry, std::uint64_t id, world_rank self)
        : grid_(std::move(grid)), exchange_(registry, id, neighbours(grid_, self)) {}

    [[nodiscard]] const cart_grid &grid() const { return grid_; }
    [[nodiscard]] neighbour_exchange &exchange() { return exchange_; }

private:
    static std::vector<std::optional<world_rank>> neighbours(const cart_grid &grid,
                                                             world_rank self) {
        std::vector<std::optional<world_rank>> found;
        for (std::size_t dim = 0; dim < grid.dims().size(); ++dim) {
            found.push_back(grid.shifted(self, dim, -1));
            found.push_back(grid.shifted(self, dim, 1));
        }
        return found;
    }

    cart_grid grid_;
    neighbour_exchange exchange_;
};

/// Finds grids by handle, and numbers them. Thread-safe.
class cart_registry {
public:
    explicit cart_registry(channels::channel_registry &channels) : channels_(channels) {}

    [[nodiscard]] handle_table<cart, ompx_cart_t, 0xd10d> &table() { return table_; }
    [[nodiscard]] channels::channel_registry &channels() { return channels_; }

    /// Ids: the members of a grid take the largest of their next ids, so that no rank has two grids
    /// with one id.
    [[nodiscard]] std::uint64_t next_id() const { return next_id_.load(std::memory_order_relaxed); }
    void note_id(std::uint64_t taken) {
        std::uint64_t now = next_id();
        while (now <= taken && !next_id_.compare_exchange_weak(now, taken + 1)) {
        }
    }

private:
    channels::channel_registry &channels_;
    handle_table<cart, ompx_cart_t, 0xd10d> table_;
    std::atomic<std::uint64_t> next_id_{1};
};

} // namespace diomp::cart
