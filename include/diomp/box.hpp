// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers of n-dimensional boxes between arrays.
#ifndef DIOMP_BOX_HPP
#define DIOMP_BOX_HPP

#include "diomp.h"
#include "diomp/error.hpp"
#include "diomp/event.hpp"
#include "diomp/global_ptr.hpp"
#include "diomp/types.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace diomp {
inline namespace v1 {

/// Where a box lies in the caller's array and in that of the other rank. All numbers are in
/// elements, slowest dimension first (ompx_put_rect).
template <std::size_t NumDims>
struct box {
    std::array<std::size_t, NumDims> volume;
    std::array<std::size_t, NumDims> own_offsets;
    std::array<std::size_t, NumDims> own_dimensions;
    std::array<std::size_t, NumDims> remote_offsets;
    std::array<std::size_t, NumDims> remote_dimensions;
};

/// Copies a box of the caller's array `from` to the array at `to`. Returns when `from` may be
/// reused; a fence completes it.
template <transferable T, std::size_t NumDims>
void put_box(global_ptr<T> to, const std::type_identity_t<T> *from, const box<NumDims> &where) {
    detail::check(ompx_put_rect(to.rank(), to.address(), from, sizeof(T), static_cast<int>(NumDims),
                                where.volume.data(), where.remote_offsets.data(),
                                where.own_offsets.data(), where.remote_dimensions.data(),
                                where.own_dimensions.data()));
}
/// The box in `from` must not be changed until the event is complete.
template <transferable T, std::size_t NumDims>
event put_box_nb(global_ptr<T> to, const std::type_identity_t<T> *from, const box<NumDims> &where) {
    ompx_event_t handle = nullptr;
    detail::check(
        ompx_put_rect_nb(to.rank(), to.address(), from, sizeof(T), static_cast<int>(NumDims),
                         where.volume.data(), where.remote_offsets.data(), where.own_offsets.data(),
                         where.remote_dimensions.data(), where.own_dimensions.data(), &handle));
    return event(handle);
}
/// Copies a box of the array at `from` to the caller's array `to`; blocks until it is there.
template <transferable T, std::size_t NumDims>
void get_box(std::remove_const_t<T> *to, global_ptr<T> from, const box<NumDims> &where) {
    detail::check(ompx_get_rect(to, from.rank(), from.address(), sizeof(T),
                                static_cast<int>(NumDims), where.volume.data(),
                                where.own_offsets.data(), where.remote_offsets.data(),
                                where.own_dimensions.data(), where.remote_dimensions.data()));
}
/// The box in `to` must not be used until the event is complete.
template <transferable T, std::size_t NumDims>
event get_box_nb(std::remove_const_t<T> *to, global_ptr<T> from, const box<NumDims> &where) {
    ompx_event_t handle = nullptr;
    detail::check(
        ompx_get_rect_nb(to, from.rank(), from.address(), sizeof(T), static_cast<int>(NumDims),
                         where.volume.data(), where.own_offsets.data(), where.remote_offsets.data(),
                         where.own_dimensions.data(), where.remote_dimensions.data(), &handle));
    return event(handle);
}

/// put_box(), then the update of a signal at the same rank: a thread that sees the new value sees
/// the whole box.
template <transferable T, std::size_t NumDims>
void put_box_signal(global_ptr<T> to, const std::type_identity_t<T> *from,
                    const box<NumDims> &where, global_ptr<std::uint64_t> signal,
                    std::uint64_t value, ompx_signal_op_t how = OMPX_SIGNAL_SET) {
    if (signal.rank() != to.rank()) {
        detail::fail(OMPX_ERR_RANK, "put_box_signal: box and signal belong to different ranks");
    }
    detail::check(ompx_put_rect_signal(
        to.rank(), to.address(), from, sizeof(T), static_cast<int>(NumDims), where.volume.data(),
        where.remote_offsets.data(), where.own_offsets.data(), where.remote_dimensions.data(),
        where.own_dimensions.data(), signal.address(), value, how));
}
/// The box in `from` must not be changed until the event is complete, which is when box and signal
/// have arrived.
template <transferable T, std::size_t NumDims>
event put_box_signal_nb(global_ptr<T> to, const std::type_identity_t<T> *from,
                        const box<NumDims> &where, global_ptr<std::uint64_t> signal,
                        std::uint64_t value, ompx_signal_op_t how = OMPX_SIGNAL_SET) {
    if (signal.rank() != to.rank()) {
        detail::fail(OMPX_ERR_RANK, "put_box_signal_nb: box and signal belong to different ranks");
    }
    ompx_event_t handle = nullptr;
    detail::check(ompx_put_rect_signal_nb(
        to.rank(), to.address(), from, sizeof(T), static_cast<int>(NumDims), where.volume.data(),
        where.remote_offsets.data(), where.own_offsets.data(), where.remote_dimensions.data(),
        where.own_dimensions.data(), signal.address(), value, how, &handle));
    return event(handle);
}

} // namespace v1
} // namespace diomp

#endif // DIOMP_BOX_HPP
