// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OMPCCL with typed buffers. All functions are collective over the group (default: the world) and
// block unless their name ends in _nb. A root is a rank of the group. Buffers are contiguous
// ranges; a mismatch of their sizes is an error (OMPX_ERR_ARG).
#ifndef DIOMP_COLLECTIVE_HPP
#define DIOMP_COLLECTIVE_HPP

#include "diomp.h"
#include "diomp/error.hpp"
#include "diomp/event.hpp"
#include "diomp/group.hpp"
#include "diomp/types.hpp"

#include <concepts>
#include <cstddef>
#include <numeric>
#include <ranges>
#include <span>
#include <string>
#include <vector>

namespace diomp {
inline namespace v1 {

namespace detail {

template <typename R>
std::size_t size_of(const R &range) {
    return static_cast<std::size_t>(std::ranges::size(range));
}
template <typename R>
std::size_t nbytes_of(const R &range) {
    return size_of(range) * sizeof(std::ranges::range_value_t<R>);
}

inline void expect_size(const char *call, std::size_t size, std::size_t expected) {
    if (size != expected) [[unlikely]] {
        fail(OMPX_ERR_ARG, std::string(call) + ": a buffer of " + std::to_string(size) +
                               " elements where " + std::to_string(expected) + " are needed");
    }
}

/// A count for each member, which add up to the elements of a buffer.
inline void expect_blocks(const char *call, std::span<const std::size_t> counts, std::size_t size,
                          group_ref group) {
    if (counts.size() != static_cast<std::size_t>(group.size())) [[unlikely]] {
        fail(OMPX_ERR_ARG, std::string(call) + ": " + std::to_string(counts.size()) +
                               " counts for a group of " + std::to_string(group.size()));
    }
    expect_size(call, size, std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
}
template <typename T>
std::vector<std::size_t> block_nbytes(std::span<const std::size_t> counts) {
    std::vector<std::size_t> nbytes(counts.begin(), counts.end());
    for (std::size_t &each : nbytes) {
        each *= sizeof(T);
    }
    return nbytes;
}

/// Starts an _nb function of C, which takes the pointer to its event as the last argument.
template <typename Call>
event start(Call call) {
    ompx_event_t handle = nullptr;
    check(call(&handle));
    return event(handle);
}

/// The C type and operator of a reduction.
struct reduction {
    ompx_type_t type;
    ompx_op_t op;
};
template <reducible T>
constexpr reduction reduction_of(op what) {
    return {type_v<T>, static_cast<ompx_op_t>(what)};
}
template <transferable T>
reduction reduction_of(const user_op<T> &what) {
    return {user_op<T>::type, what.handle()};
}

} // namespace detail

/// diomp::op on an arithmetic element type, or a user_op on its own element type.
template <typename Op, typename T>
concept operator_on = (std::same_as<Op, op> && reducible<T>) || std::same_as<Op, user_op<T>>;

/// One value rather than a range of them: std::array is one for a user_op on std::array.
template <typename T, typename Op>
concept single_operand = !std::ranges::range<T> || std::same_as<Op, user_op<T>>;

template <typename R, typename Other>
concept same_elements =
    std::same_as<std::ranges::range_value_t<R>, std::ranges::range_value_t<Other>>;

inline event barrier_nb(group_ref group = {}) {
    return detail::start([=](ompx_event_t *e) { return ompx_barrier_nb(group.handle(), e); });
}

/// Copies a range, or a single value, from the root to all members.
template <writable_range R>
void bcast(R &&buffer, int root = 0, group_ref group = {}) {
    detail::check(ompx_bcast_from(std::ranges::data(buffer), detail::nbytes_of(buffer), root,
                                  group.handle()));
}
template <transferable T>
    requires(!std::ranges::range<T>)
void bcast(T &value, int root = 0, group_ref group = {}) {
    detail::check(ompx_bcast_from(&value, sizeof(T), root, group.handle()));
}
template <lasting_writable_range R>
event bcast_nb(R &&buffer, int root = 0, group_ref group = {}) {
    return detail::start([&](ompx_event_t *e) {
        return ompx_bcast_from_nb(std::ranges::data(buffer), detail::nbytes_of(buffer), root,
                                  group.handle(), e);
    });
}

/// Combines the buffers of all members; in place.
template <writable_range R, operator_on<std::ranges::range_value_t<R>> Op>
void allreduce(R &&buffer, const Op &what, group_ref group = {}) {
    const auto [type, op] = detail::reduction_of<std::ranges::range_value_t<R>>(what);
    auto *const data = std::ranges::data(buffer);
    detail::check(ompx_allreduce(data, data, detail::size_of(buffer), type, op, group.handle()));
}
template <writable_range Dst, transferable_range Src,
          operator_on<std::ranges::range_value_t<Dst>> Op>
    requires same_elements<Dst, Src>
void allreduce(Dst &&dst, const Src &src, const Op &what, group_ref group = {}) {
    const auto [type, op] = detail::reduction_of<std::ranges::range_value_t<Dst>>(what);
    detail::expect_size("allreduce", detail::size_of(dst), detail::size_of(src));
    detail::check(ompx_allreduce(std::ranges::data(dst), std::ranges::data(src),
                                 detail::size_of(src), type, op, group.handle()));
}
/// Combines one value per rank.
template <transferable T, operator_on<T> Op>
    requires single_operand<T, Op>
[[nodiscard]] T allreduce(const T &value, const Op &what, group_ref group = {}) {
    const auto [type, op] = detail::reduction_of<T>(what);
    T combined = value;
    detail::check(ompx_allreduce(&combined, &combined, 1, type, op, group.handle()));
    return combined;
}
template <lasting_writable_range R, operator_on<std::ranges::range_value_t<R>> Op>
event allreduce_nb(R &&buffer, const Op &what, group_ref group = {}) {
    const auto reduction = detail::reduction_of<std::ranges::range_value_t<R>>(what);
    return detail::start([&](ompx_event_t *e) {
        return ompx_allreduce_nb(std::ranges::data(buffer), std::ranges::data(buffer),
                                 detail::size_of(buffer), reduction.type, reduction.op,
                                 group.handle(), e);
    });
}

/// Combines src of all members into dst, which is used at the root only and may be empty elsewhere.
template <writable_range Dst, transferable_range Src,
          operator_on<std::ranges::range_value_t<Src>> Op>
    requires same_elements<Dst, Src>
void reduce(Dst &&dst, const Src &src, const Op &what, int root = 0, group_ref group = {}) {
    const auto [type, op] = detail::reduction_of<std::ranges::range_value_t<Src>>(what);
    if (group.rank() == root) {
        detail::expect_size("reduce", detail::size_of(dst), detail::size_of(src));
    }
    detail::check(ompx_reduce(std::ranges::data(dst), std::ranges::data(src), detail::size_of(src),
                              type, op, root, group.handle()));
}

/// Combines one value per rank; the result is defined at the root only.
template <transferable T, operator_on<T> Op>
    requires single_operand<T, Op>
[[nodiscard]] T reduce(const T &value, const Op &what, int root = 0, group_ref group = {}) {
    const auto [type, op] = detail::reduction_of<T>(what);
    T combined = value;
    detail::check(ompx_reduce(&combined, &value, 1, type, op, root, group.handle()));
    return combined;
}

/// Inclusive scan: dst at member r gets src of members 0 to r, combined.
template <writable_range Dst, transferable_range Src,
          operator_on<std::ranges::range_value_t<Src>> Op>
    requires same_elements<Dst, Src>
void scan(Dst &&dst, const Src &src, const Op &what, group_ref group = {}) {
    const auto [type, op] = detail::reduction_of<std::ranges::range_value_t<Src>>(what);
    detail::expect_size("scan", detail::size_of(dst), detail::size_of(src));
    detail::check(ompx_scan(std::ranges::data(dst), std::ranges::data(src), detail::size_of(src),
                            type, op, group.handle()));
}
/// Exclusive scan: dst at member r gets src of members 0 to r - 1, combined; dst of member 0 is
/// unchanged.
template <writable_range Dst, transferable_range Src,
          operator_on<std::ranges::range_value_t<Src>> Op>
    requires same_elements<Dst, Src>
void exscan(Dst &&dst, const Src &src, const Op &what, group_ref group = {}) {
    const auto [type, op] = detail::reduction_of<std::ranges::range_value_t<Src>>(what);
    detail::expect_size("exscan", detail::size_of(dst), detail::size_of(src));
    detail::check(ompx_exscan(std::ranges::data(dst), std::ranges::data(src), detail::size_of(src),
                              type, op, group.handle()));
}

/// Inclusive scan of one value per rank.
template <transferable T, operator_on<T> Op>
    requires single_operand<T, Op>
[[nodiscard]] T scan(const T &value, const Op &what, group_ref group = {}) {
    const auto [type, op] = detail::reduction_of<T>(what);
    T combined = value;
    detail::check(ompx_scan(&combined, &value, 1, type, op, group.handle()));
    return combined;
}
/// Exclusive scan of one value per rank; member 0 gets T{}.
template <transferable T, operator_on<T> Op>
    requires single_operand<T, Op>
[[nodiscard]] T exscan(const T &value, const Op &what, group_ref group = {}) {
    const auto [type, op] = detail::reduction_of<T>(what);
    T combined{};
    detail::check(ompx_exscan(&combined, &value, 1, type, op, group.handle()));
    return combined;
}

/// dst, used at the root only, gets the blocks of all members in order.
template <writable_range Dst, transferable_range Src>
    requires same_elements<Dst, Src>
void gather(Dst &&dst, const Src &src, int root = 0, group_ref group = {}) {
    if (group.rank() == root) {
        detail::expect_size("gather", detail::size_of(dst),
                            detail::size_of(src) * static_cast<std::size_t>(group.size()));
    }
    detail::check(ompx_gather(std::ranges::data(dst), std::ranges::data(src),
                              detail::nbytes_of(src), root, group.handle()));
}

/// The values of all members in order at the root; empty on other members.
template <transferable T>
    requires(!std::ranges::range<T> && !std::same_as<T, bool>)
[[nodiscard]] std::vector<T> gather(const T &value, int root = 0, group_ref group = {}) {
    std::vector<T> all(group.rank() == root ? static_cast<std::size_t>(group.size()) : 0);
    detail::check(ompx_gather(all.data(), &value, sizeof(T), root, group.handle()));
    return all;
}

/// src, used at the root only, holds one block for each member; dst gets this member's block.
template <writable_range Dst, transferable_range Src>
    requires same_elements<Dst, Src>
void scatter(Dst &&dst, const Src &src, int root = 0, group_ref group = {}) {
    if (group.rank() == root) {
        detail::expect_size("scatter", detail::size_of(src),
                            detail::size_of(dst) * static_cast<std::size_t>(group.size()));
    }
    detail::check(ompx_scatter(std::ranges::data(dst), std::ranges::data(src),
                               detail::nbytes_of(dst), root, group.handle()));
}

/// dst gets the blocks of all members in order.
template <writable_range Dst, transferable_range Src>
    requires same_elements<Dst, Src>
void allgather(Dst &&dst, const Src &src, group_ref group = {}) {
    detail::expect_size("allgather", detail::size_of(dst),
                        detail::size_of(src) * static_cast<std::size_t>(group.size()));
    detail::check(ompx_allgather(std::ranges::data(dst), std::ranges::data(src),
                                 detail::nbytes_of(src), group.handle()));
}

/// The values of all members in order.
template <transferable T>
    requires(!std::ranges::range<T> && !std::same_as<T, bool>)
[[nodiscard]] std::vector<T> allgather(const T &value, group_ref group = {}) {
    std::vector<T> all(static_cast<std::size_t>(group.size()));
    detail::check(ompx_allgather(all.data(), &value, sizeof(T), group.handle()));
    return all;
}

/// src holds one block for each member; dst gets this member's block of the reduction.
template <writable_range Dst, transferable_range Src,
          operator_on<std::ranges::range_value_t<Src>> Op>
    requires same_elements<Dst, Src>
void reduce_scatter(Dst &&dst, const Src &src, const Op &what, group_ref group = {}) {
    const auto [type, op] = detail::reduction_of<std::ranges::range_value_t<Src>>(what);
    detail::expect_size("reduce_scatter", detail::size_of(src),
                        detail::size_of(dst) * static_cast<std::size_t>(group.size()));
    detail::check(ompx_reduce_scatter(std::ranges::data(dst), std::ranges::data(src),
                                      detail::size_of(dst), type, op, group.handle()));
}

/// Block i of src goes to member i; dst gets the blocks of all members in order.
template <writable_range Dst, transferable_range Src>
    requires same_elements<Dst, Src>
void alltoall(Dst &&dst, const Src &src, group_ref group = {}) {
    const auto members = static_cast<std::size_t>(group.size());
    detail::expect_size("alltoall", detail::size_of(dst), detail::size_of(src));
    detail::expect_size("alltoall", detail::size_of(src) % members, 0);
    detail::check(ompx_alltoall(std::ranges::data(dst), std::ranges::data(src),
                                detail::nbytes_of(src) / members, group.handle()));
}

/// Block i of src, of src_counts[i] elements, goes to member i; dst gets the block of member i, of
/// dst_counts[i] elements. Blocks follow each other in the order of the members.
template <writable_range Dst, transferable_range Src>
    requires same_elements<Dst, Src>
void alltoallv(Dst &&dst, std::span<const std::size_t> dst_counts, const Src &src,
               std::span<const std::size_t> src_counts, group_ref group = {}) {
    detail::expect_blocks("alltoallv", dst_counts, detail::size_of(dst), group);
    detail::expect_blocks("alltoallv", src_counts, detail::size_of(src), group);
    using T = std::ranges::range_value_t<Src>;
    detail::check(ompx_alltoallv(std::ranges::data(dst), detail::block_nbytes<T>(dst_counts).data(),
                                 nullptr, std::ranges::data(src),
                                 detail::block_nbytes<T>(src_counts).data(), nullptr,
                                 group.handle()));
}

/// What the members have sent to this one: counts[i] elements from member i, in order.
template <transferable T>
struct blocks {
    std::vector<T> elements;
    std::vector<std::size_t> counts;
};
/// For members that do not know what others send to them: the counts travel first.
template <transferable_range Src>
[[nodiscard]] blocks<std::ranges::range_value_t<Src>>
alltoallv(const Src &src, std::span<const std::size_t> src_counts, group_ref group = {}) {
    detail::expect_blocks("alltoallv", src_counts, detail::size_of(src), group);
    blocks<std::ranges::range_value_t<Src>> received;
    received.counts.resize(src_counts.size());
    alltoall(received.counts, src_counts, group);
    received.elements.resize(
        std::accumulate(received.counts.begin(), received.counts.end(), std::size_t{0}));
    alltoallv(received.elements, received.counts, src, src_counts, group);
    return received;
}

} // namespace v1
} // namespace diomp

#endif // DIOMP_COLLECTIVE_HPP
