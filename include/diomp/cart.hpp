// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cartesian grids of ranks.
#ifndef DIOMP_CART_HPP
#define DIOMP_CART_HPP

#include "diomp.h"
#include "diomp/error.hpp"
#include "diomp/types.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

namespace diomp {
inline namespace v1 {

/// Extents of a grid of num_ranks; those that are 0 in `dims` are chosen.
template <std::size_t NumDims>
[[nodiscard]] std::array<int, NumDims> dims_create(int num_ranks,
                                                   std::array<int, NumDims> dims = {}) {
    detail::check(ompx_dims_create(num_ranks, static_cast<int>(NumDims), dims.data()));
    return dims;
}

/// Owns a grid of ranks with NumDims dimensions; empty for ranks without a position.
template <std::size_t NumDims>
class cart {
public:
    using coordinates = std::array<int, NumDims>;
    static constexpr std::size_t num_neighbours = 2 * NumDims;

    cart() noexcept = default;
    /// Collective over the group.
    explicit cart(const coordinates &dims, const std::array<bool, NumDims> &periodic = {},
                  bool reorder = false, ompx_group_t members = ompx_group_world) {
        coordinates rings{};
        for (std::size_t i = 0; i < NumDims; ++i) {
            rings[i] = static_cast<int>(periodic[i]);
        }
        detail::check(ompx_cart_create(members, static_cast<int>(NumDims), dims.data(),
                                       rings.data(), static_cast<int>(reorder), &handle_));
    }
    cart(cart &&other) noexcept : handle_(std::exchange(other.handle_, OMPX_CART_NONE)) {}
    cart &operator=(cart &&other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    cart(const cart &) = delete;
    cart &operator=(const cart &) = delete;
    /// Not collective.
    ~cart() {
        if (handle_ != OMPX_CART_NONE && ompx_is_initialized() == 1) {
            ompx_cart_free(&handle_);
        }
    }

    /// Whether this rank has a position; the functions below need one.
    [[nodiscard]] explicit operator bool() const noexcept { return handle_ != OMPX_CART_NONE; }
    [[nodiscard]] int size() const { return detail::check(ompx_cart_size(handle_)); }
    [[nodiscard]] coordinates dims() const {
        coordinates extents{};
        detail::check(ompx_cart_dims(handle_, extents.data(), nullptr));
        return extents;
    }
    /// nullopt: outside of the grid.
    [[nodiscard]] std::optional<int> rank(const coordinates &coords) const {
        int found = OMPX_NO_RANK;
        detail::check(ompx_cart_rank(handle_, coords.data(), &found));
        return found == OMPX_NO_RANK ? std::nullopt : std::optional(found);
    }
    [[nodiscard]] coordinates coords(int rank) const {
        coordinates found{};
        detail::check(ompx_cart_coords(handle_, rank, found.data()));
        return found;
    }
    [[nodiscard]] coordinates coords() const { return coords(this_rank()); }

    struct neighbours {
        std::optional<int> source; ///< before
        std::optional<int> target; ///< after
    };
    [[nodiscard]] neighbours shift(int dim, int displacement = 1) const {
        int source = OMPX_NO_RANK;
        int target = OMPX_NO_RANK;
        detail::check(ompx_cart_shift(handle_, dim, displacement, &source, &target));
        return {source == OMPX_NO_RANK ? std::nullopt : std::optional(source),
                target == OMPX_NO_RANK ? std::nullopt : std::optional(target)};
    }

    /// Blocks of equal size for the neighbours before and after in each dimension, in that order.
    template <transferable T>
    void exchange(std::span<const T> send, std::span<T> receive) {
        if (send.size() != receive.size() || send.size() % num_neighbours != 0) {
            detail::fail(OMPX_ERR_ARG, "cart::exchange: not equally many elements for each "
                                       "neighbour to send and to receive");
        }
        detail::check(ompx_cart_exchange(handle_, send.data(), receive.data(),
                                         send.size_bytes() / num_neighbours));
    }
    /// A block for each neighbour; blocks of missing ones are not used.
    template <transferable T>
    void exchange(const std::array<std::span<const T>, num_neighbours> &send,
                  const std::array<std::span<T>, num_neighbours> &receive) {
        std::array<const void *, num_neighbours> sources{};
        std::array<void *, num_neighbours> targets{};
        std::array<std::size_t, num_neighbours> sent{};
        std::array<std::size_t, num_neighbours> received{};
        for (std::size_t i = 0; i < num_neighbours; ++i) {
            sources[i] = send[i].data();
            sent[i] = send[i].size_bytes();
            targets[i] = receive[i].data();
            received[i] = receive[i].size_bytes();
        }
        detail::check(ompx_cart_exchangev(handle_, sources.data(), sent.data(), targets.data(),
                                          received.data()));
    }
    /// A block for the neighbour before and one for that after in one dimension.
    template <transferable T>
    void exchange(int dim, const std::array<std::span<const T>, 2> &send,
                  const std::array<std::span<T>, 2> &receive) {
        std::array<const void *, 2> const sources{send[0].data(), send[1].data()};
        std::array<void *, 2> const targets{receive[0].data(), receive[1].data()};
        std::array<std::size_t, 2> const sent{send[0].size_bytes(), send[1].size_bytes()};
        std::array<std::size_t, 2> const received{receive[0].size_bytes(), receive[1].size_bytes()};
        detail::check(ompx_cart_exchange_dim(handle_, dim, sources.data(), sent.data(),
                                             targets.data(), received.data()));
    }
    /// For functions of diomp.h; still owned.
    [[nodiscard]] ompx_cart_t get() const noexcept { return handle_; }

private:
    ompx_cart_t handle_ = OMPX_CART_NONE;
};

} // namespace v1
} // namespace diomp

#endif // DIOMP_CART_HPP
