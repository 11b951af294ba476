// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cartesian grids of ranks.
#include "cart/cart.h"

#include "api/internal/state.h"
#include "cart/dims.h"
#include "coll/collective.h"
#include "diomp/cart.h"
#include "group/group.h"
#include "group/registry.h"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

using namespace diomp;

namespace {

std::string describe(ompx_cart_t cart) { return fmt::format("cart={}", fmt::ptr(cart)); }

status check_num_dims(int num_dims) {
    if (num_dims < 1 || num_dims > OMPX_CART_MAX_DIMS) {
        return error(OMPX_ERR_ARG, fmt::format("a grid of {} dimensions", num_dims),
                     fmt::format("pass 1 to {}", OMPX_CART_MAX_DIMS));
    }
    return {};
}

/// Arguments of ompx_cart_create().
struct cart_shape {
    std::vector<int> dims;
    std::vector<bool> periodic;
    bool reorder = false;

    cart_shape(int num_dims, const int *extents, const int *rings, int arranges)
        : dims(extents, extents + num_dims), periodic(dims.size()), reorder(arranges != 0) {
        for (std::size_t i = 0; rings != nullptr && i < dims.size(); ++i) {
            periodic[i] = rings[i] != 0;
        }
    }
    /// Number of positions. OMPX_ERR_ARG if it exceeds `available`.
    [[nodiscard]] result<std::size_t> size(std::size_t available) const {
        std::size_t product = 1;
        for (int const each : dims) {
            if (each < 1) {
                return error(OMPX_ERR_ARG, fmt::format("the extent {} is not positive", each),
                             "ompx_dims_create() chooses extents");
            }
            product *= static_cast<std::size_t>(each);
            if (product > available) {
                return error(OMPX_ERR_ARG,
                             fmt::format("the grid is larger than the group of {}", available),
                             "reduce an extent; ompx_dims_create() chooses extents");
            }
        }
        return product;
    }
    /// FNV-1a of all arguments.
    [[nodiscard]] std::uint64_t hash() const {
        std::uint64_t value = 0xcbf29ce484222325;
        auto const add = [&](int number) {
            value = (value ^ static_cast<std::uint32_t>(number)) * 0x100000001b3;
        };
        add(static_cast<int>(reorder));
        for (std::size_t i = 0; i < dims.size(); ++i) {
            add(dims[i]);
            add(static_cast<int>(periodic[i]));
        }
        return value;
    }
};

/// The arguments of ompx_cart_create(), or why they are invalid.
result<cart_shape> make_shape(const ompx_cart_t *cart, int num_dims, const int *dims,
                              const int *periodic, int reorder) {
    DIOMP_TRY(api::check_pointer(cart, "cart"));
    DIOMP_TRY(api::check_pointer(dims, "dims"));
    DIOMP_TRY(check_num_dims(num_dims));
    return cart_shape(num_dims, dims, periodic, reorder);
}

/// The id of a new grid, after a comparison of the arguments on all members. Collective; blocks.
result<std::uint64_t> agree(runtime::runtime &running, group::group &members, std::uint64_t hash) {
    std::array<std::uint64_t, 3> const own{hash, ~hash, running.carts().next_id()};
    std::array<std::uint64_t, 3> largest{};
    DIOMP_TRY(running.collectives().on_host().run(members, {.what = sync::operation::allreduce,
                                                            .dst = largest.data(),
                                                            .src = own.data(),
                                                            .amount = own.size(),
                                                            .type = OMPX_UINT64,
                                                            .op = OMPX_MAX}));
    if (largest[0] != ~largest[1]) {
        return error(OMPX_ERR_MISMATCH, "the members have passed different grids",
                     "pass the same extents, periods and reorder on all members");
    }
    running.carts().note_id(largest[2]);
    return largest[2];
}

/// World ranks by position.
std::vector<world_rank> arranged_members(const group::group &members, const cart_shape &shape,
                                         std::size_t size) {
    std::vector<std::size_t> order(size);
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (shape.reorder) {
        std::vector<std::uint32_t> nodes(size);
        for (std::size_t member = 0; member < size; ++member) {
            nodes[member] = static_cast<std::uint32_t>(members.layout().node(member));
        }
        order = cart::arrange_by_node(shape.dims, nodes).value_or(std::move(order));
    }
    std::vector<world_rank> placed(size);
    std::ranges::transform(order, placed.begin(),
                           [&](std::size_t member) { return members.members()[member]; });
    return placed;
}

/// OMPX_CART_NONE if this rank has no position. Collective, also for members whose arguments are
/// invalid: the others get an error too. Blocks.
result<ompx_cart_t> create(runtime::runtime &running, ompx_group_t group,
                           result<cart_shape> given) {
    auto found = running.collectives().groups().find(group);
    DIOMP_TRY(found);
    group::group &members = *found.value();
    if (!members.endpoints().empty()) {
        return error(OMPX_ERR_ARG, "the group has endpoints as members", "pass a group of ranks");
    }
    auto size =
        given ? given.value().size(members.size()) : result<std::size_t>(given.take_failure());
    auto id = agree(running, members, size ? given.value().hash() : 0);
    DIOMP_TRY(size);
    DIOMP_TRY(id);
    cart_shape const &shape = given.value();
    cart::cart_grid grid(shape.dims, shape.periodic,
                         arranged_members(members, shape, size.value()));
    world_rank const self = running.job().rank;
    if (!grid.coords_of(self)) {
        return OMPX_CART_NONE;
    }
    auto handle = running.carts().table().insert(std::make_unique<cart::cart>(
        std::move(grid), running.carts().channels(), id.value(), self));
    if (!handle) {
        return error(OMPX_ERR_NOMEM, "this rank has too many grids", "free unused ones");
    }
    return *handle;
}

result<cart::cart *> find(runtime::runtime &running, ompx_cart_t handle) {
    cart::cart *const found = running.carts().table().find(handle);
    if (found == nullptr) {
        return error(OMPX_ERR_ARG, "not a grid in which this rank has a position, or freed already",
                     "pass what ompx_cart_create() has stored, unless it is OMPX_CART_NONE");
    }
    return found;
}

/// Runs then(cart, runtime) -> status.
template <typename Then>
int use_cart(const char *function, const void *site, ompx_cart_t handle, Then &&then) {
    return api::call(
        function, site, [&] { return describe(handle); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            auto found = find(running, handle);
            DIOMP_TRY(found);
            return then(*found.value(), running);
        });
}

int number_or_none(const std::optional<world_rank> &rank) {
    return rank ? rank->value() : OMPX_NO_RANK;
}

status check_dim(const cart::cart_grid &grid, int dim) {
    if (dim < 0 || static_cast<std::size_t>(dim) >= grid.dims().size()) {
        return error(OMPX_ERR_ARG, fmt::format("{} is not a dimension of the grid", dim),
                     fmt::format("pass 0 to {}", grid.dims().size() - 1));
    }
    return {};
}

/// Sides of a grid.
struct sides {
    std::size_t first;
    std::size_t count;
};
sides all_sides(cart::cart &of) { return {0, of.exchange().num_neighbours()}; }

/// Checks and exchanges the blocks that block_at(n), for n < which.count, -> pair of sent_block and
/// received_block describes. Counts what is sent.
template <typename BlockAt>
status exchange(cart::cart &of, sides which, api::call_stats &stats, BlockAt &&block_at) {
    auto &exchange = of.exchange();
    auto const [send, receive] = exchange.empty_lists(which.count);
    for (std::size_t n = 0; n < which.count; ++n) {
        if (!exchange.has_neighbour(which.first + n)) {
            continue;
        }
        std::tie(send[n], receive[n]) = block_at(n);
        DIOMP_TRY(api::check_size(send[n].nbytes));
        DIOMP_TRY(api::check_size(receive[n].nbytes));
        if (send[n].nbytes > 0) {
            DIOMP_TRY(api::check_pointer(send[n].data, "send"));
        }
        if (receive[n].nbytes > 0) {
            DIOMP_TRY(api::check_pointer(receive[n].data, "receive"));
        }
        stats.nbytes += send[n].nbytes;
    }
    return exchange.exchange(which.first, send, receive);
}

/// Lists with an element for each of some sides.
struct neighbour_lists {
    const void *const *send;
    const std::size_t *send_nbytes;
    void *const *receive;
    const std::size_t *receive_nbytes;

    [[nodiscard]] status check() const {
        DIOMP_TRY(api::check_pointer(send, "send"));
        DIOMP_TRY(api::check_pointer(send_nbytes, "send_nbytes"));
        DIOMP_TRY(api::check_pointer(receive, "receive"));
        return api::check_pointer(receive_nbytes, "receive_nbytes");
    }
    [[nodiscard]] std::pair<cart::sent_block, cart::received_block>
    operator()(std::size_t n) const {
        return {{send[n], send_nbytes[n]}, {receive[n], receive_nbytes[n]}};
    }
};

/// Block `side` of a buffer; null stays null.
template <typename Byte, typename Void>
Void *block_of(Void *buffer, std::size_t side, std::size_t nbytes) {
    return buffer == nullptr ? nullptr : static_cast<Byte *>(buffer) + side * nbytes;
}

} // namespace

extern "C" {

int ompx_dims_create(int num_ranks, int num_dims, int *dims) noexcept {
    auto const choose = [&]() -> status {
        DIOMP_TRY(check_num_dims(num_dims));
        DIOMP_TRY(api::check_pointer(dims, "dims"));
        return cart::choose_dims(num_ranks, {dims, static_cast<std::size_t>(num_dims)});
    };
    status const chosen = choose();
    return chosen ? OMPX_SUCCESS
                  : api::fail("ompx_dims_create",
                              fmt::format("num_ranks={}, num_dims={}", num_ranks, num_dims),
                              chosen.failure());
}

int ompx_cart_create(ompx_group_t group, int num_dims, const int *dims, const int *periodic,
                     int reorder, ompx_cart_t *cart) noexcept {
    return api::call(
        "ompx_cart_create", DIOMP_SITE,
        [&] {
            return fmt::format("group={}, num_dims={}, dims={}", fmt::ptr(group), num_dims,
                               fmt::ptr(dims));
        },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            auto made = create(running, group, make_shape(cart, num_dims, dims, periodic, reorder));
            DIOMP_TRY(made);
            *cart = made.value();
            return {};
        });
}

int ompx_cart_free(ompx_cart_t *cart) noexcept {
    return api::call(
        "ompx_cart_free", DIOMP_SITE, [&] { return fmt::format("cart={}", fmt::ptr(cart)); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(api::check_pointer(cart, "cart"));
            if (*cart == OMPX_CART_NONE) {
                return {};
            }
            DIOMP_TRY(find(running, *cart));
            auto const removed = running.carts().table().remove(*cart);
            *cart = OMPX_CART_NONE;
            return removed->exchange().close();
        });
}

int ompx_cart_num_dims(ompx_cart_t cart) noexcept {
    int num_dims = 0;
    int const outcome = use_cart("ompx_cart_num_dims", DIOMP_SITE, cart,
                                 [&](cart::cart &found, runtime::runtime &) -> status {
                                     num_dims = static_cast<int>(found.grid().dims().size());
                                     return {};
                                 });
    return outcome < 0 ? outcome : num_dims;
}

int ompx_cart_size(ompx_cart_t cart) noexcept {
    int size = 0;
    int const outcome = use_cart("ompx_cart_size", DIOMP_SITE, cart,
                                 [&](cart::cart &found, runtime::runtime &) -> status {
                                     size = static_cast<int>(found.grid().size());
                                     return {};
                                 });
    return outcome < 0 ? outcome : size;
}

int ompx_cart_dims(ompx_cart_t cart, int *dims, int *periodic) noexcept {
    return use_cart("ompx_cart_dims", DIOMP_SITE, cart,
                    [&](cart::cart &found, runtime::runtime &) -> status {
                        auto const extents = found.grid().dims();
                        for (std::size_t i = 0; i < extents.size(); ++i) {
                            if (dims != nullptr) {
                                dims[i] = extents[i];
                            }
                            if (periodic != nullptr) {
                                periodic[i] = static_cast<int>(found.grid().is_periodic(i));
                            }
                        }
                        return {};
                    });
}

int ompx_cart_rank(ompx_cart_t cart, const int *coords, int *rank) noexcept {
    return use_cart(
        "ompx_cart_rank", DIOMP_SITE, cart, [&](cart::cart &found, runtime::runtime &) -> status {
            DIOMP_TRY(api::check_pointer(coords, "coords"));
            DIOMP_TRY(api::check_pointer(rank, "rank"));
            *rank = number_or_none(found.grid().rank_at({coords, found.grid().dims().size()}));
            return {};
        });
}

int ompx_cart_coords(ompx_cart_t cart, int rank, int *coords) noexcept {
    return use_cart("ompx_cart_coords", DIOMP_SITE, cart,
                    [&](cart::cart &found, runtime::runtime &) -> status {
                        DIOMP_TRY(api::check_pointer(coords, "coords"));
                        auto const at = found.grid().coords_of(world_rank{rank});
                        if (!at) {
                            return error(OMPX_ERR_RANK,
                                         fmt::format("rank {} has no position in the grid", rank),
                                         "pass a world rank of the grid");
                        }
                        std::ranges::copy(*at, coords);
                        return {};
                    });
}

int ompx_cart_shift(ompx_cart_t cart, int dim, int displacement, int *source,
                    int *target) noexcept {
    return use_cart("ompx_cart_shift", DIOMP_SITE, cart,
                    [&](cart::cart &found, runtime::runtime &running) -> status {
                        DIOMP_TRY(check_dim(found.grid(), dim));
                        DIOMP_TRY(api::check_pointer(source, "source"));
                        DIOMP_TRY(api::check_pointer(target, "target"));
                        auto const at = static_cast<std::size_t>(dim);
                        world_rank const self = running.job().rank;
                        long long const by = displacement;
                        *source = number_or_none(found.grid().shifted(self, at, -by));
                        *target = number_or_none(found.grid().shifted(self, at, by));
                        return {};
                    });
}

int ompx_cart_exchange(ompx_cart_t cart, const void *send, void *receive, size_t nbytes) noexcept {
    return api::call(
        "ompx_cart_exchange", DIOMP_SITE,
        [&] {
            return fmt::format("{}, send={}, receive={}, nbytes={}", describe(cart), send, receive,
                               nbytes);
        },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            auto found = find(running, cart);
            DIOMP_TRY(found);
            return exchange(
                *found.value(), all_sides(*found.value()), stats, [&](std::size_t side) {
                    return std::pair(
                        cart::sent_block{block_of<const std::byte>(send, side, nbytes), nbytes},
                        cart::received_block{block_of<std::byte>(receive, side, nbytes), nbytes});
                });
        });
}

int ompx_cart_exchangev(ompx_cart_t cart, const void *const *send, const size_t *send_nbytes,
                        void *const *receive, const size_t *receive_nbytes) noexcept {
    return api::call(
        "ompx_cart_exchangev", DIOMP_SITE, [&] { return describe(cart); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            neighbour_lists const blocks{send, send_nbytes, receive, receive_nbytes};
            DIOMP_TRY(blocks.check());
            auto found = find(running, cart);
            DIOMP_TRY(found);
            return exchange(*found.value(), all_sides(*found.value()), stats, blocks);
        });
}

int ompx_cart_exchange_dim(ompx_cart_t cart, int dim, const void *const *send,
                           const size_t *send_nbytes, void *const *receive,
                           const size_t *receive_nbytes) noexcept {
    return api::call(
        "ompx_cart_exchange_dim", DIOMP_SITE,
        [&] { return fmt::format("{}, dim={}", describe(cart), dim); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            neighbour_lists const blocks{send, send_nbytes, receive, receive_nbytes};
            DIOMP_TRY(blocks.check());
            auto found = find(running, cart);
            DIOMP_TRY(found);
            DIOMP_TRY(check_dim(found.value()->grid(), dim));
            return exchange(*found.value(), {2 * static_cast<std::size_t>(dim), 2}, stats, blocks);
        });
}

} // extern "C"
