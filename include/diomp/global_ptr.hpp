// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A typed pointer to memory of any rank.
#ifndef DIOMP_GLOBAL_PTR_HPP
#define DIOMP_GLOBAL_PTR_HPP

#include "diomp.h"
#include "diomp/error.hpp"
#include "diomp/event.hpp"
#include "diomp/types.hpp"
#include "diomp/wait.hpp"

#include <array>
#include <bit>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <type_traits>

namespace diomp {
inline namespace v1 {

template <transferable T>
class global_ref;

/// A rank and an address. The address has one of the three forms of diomp.h: the caller's own
/// address in symmetric memory, or in its block of asymmetric memory, or the address as `rank` sees
/// it. Only the last form has the same meaning in every process: call portable() before a pointer
/// is sent to another rank. Pointers compare by rank, then by the stored address. Trivially
/// copyable.
///
/// Transfers are those of diomp.h: put returns when the source may be reused and is completed by
/// fence(), barrier() or an event; get blocks until the data has arrived. Any thread.
template <transferable T>
class global_ptr {
public:
    using element_type = T;
    using value_type = std::remove_cv_t<T>;
    using difference_type = std::ptrdiff_t;

    constexpr global_ptr() noexcept = default;
    constexpr global_ptr(std::nullptr_t) noexcept {}
    constexpr global_ptr(int rank, T *address) noexcept : address_(address), rank_(rank) {}
    /// Conversion to a pointer to const.
    template <transferable U>
        requires(!std::same_as<U, T> && std::same_as<const U, T>)
    constexpr global_ptr(const global_ptr<U> &other) noexcept
        : address_(other.address()), rank_(other.rank()) {}

    [[nodiscard]] constexpr int rank() const noexcept { return rank_; }
    [[nodiscard]] constexpr T *address() const noexcept { return address_; }
    [[nodiscard]] constexpr explicit operator bool() const noexcept { return address_ != nullptr; }

    /// Address for direct loads and stores by the calling process; nullptr if there is none.
    [[nodiscard]] T *local() const noexcept {
        return address_ == nullptr ? nullptr : static_cast<T *>(ompx_remote_ptr(address_, rank_));
    }
    [[nodiscard]] bool is_local() const noexcept { return local() != nullptr; }
    /// This location, named by the address that its owner uses. May block (ompx_global_ptr).
    [[nodiscard]] global_ptr portable() const {
        void *const address = ompx_global_ptr(address_, rank_, nullptr);
        if (address == nullptr) {
            detail::fail_last();
        }
        return {rank_, static_cast<T *>(address)};
    }

    void put(const value_type &value) const
        requires(!std::is_const_v<T>)
    {
        detail::check(ompx_put(rank_, address_, &value, sizeof(T)));
    }
    template <transferable_range R>
        requires(!std::is_const_v<T> && std::same_as<std::ranges::range_value_t<R>, value_type>)
    void put(const R &values) const {
        detail::check(ompx_put(rank_, address_, std::ranges::data(values), nbytes_of(values)));
    }
    /// The values must not be changed until the event is complete.
    template <lasting_range R>
        requires(!std::is_const_v<T> && std::same_as<std::ranges::range_value_t<R>, value_type>)
    event put_nb(R &&values) const {
        ompx_event_t handle = nullptr;
        detail::check(
            ompx_put_nb(rank_, address_, std::ranges::data(values), nbytes_of(values), &handle));
        return event(handle);
    }
    /// Puts the values, then updates the signal at the same rank (ompx_put_signal).
    template <transferable_range R>
        requires(!std::is_const_v<T> && std::same_as<std::ranges::range_value_t<R>, value_type>)
    void put_signal(const R &values, global_ptr<std::uint64_t> signal, std::uint64_t value,
                    ompx_signal_op_t how = OMPX_SIGNAL_SET) const {
        if (signal.rank() != rank_) {
            detail::fail(OMPX_ERR_RANK, "put_signal: data and signal belong to different ranks");
        }
        detail::check(ompx_put_signal(rank_, address_, std::ranges::data(values), nbytes_of(values),
                                      signal.address(), value, how));
    }

    /// put_signal(); the values must not be changed until the event is complete, which is when
    /// they and the signal have arrived.
    template <lasting_range R>
        requires(!std::is_const_v<T> && std::same_as<std::ranges::range_value_t<R>, value_type>)
    event put_signal_nb(R &&values, global_ptr<std::uint64_t> signal, std::uint64_t value,
                        ompx_signal_op_t how = OMPX_SIGNAL_SET) const {
        if (signal.rank() != rank_) {
            detail::fail(OMPX_ERR_RANK, "put_signal_nb: data and signal belong to different ranks");
        }
        ompx_event_t handle = nullptr;
        detail::check(ompx_put_signal_nb(rank_, address_, std::ranges::data(values),
                                         nbytes_of(values), signal.address(), value, how, &handle));
        return event(handle);
    }

    [[nodiscard]] value_type get() const {
        // As bytes, since a transferable type need not have a default constructor.
        // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): filled by the transfer
        alignas(T) std::array<std::byte, sizeof(T)> value;
        detail::check(ompx_get(value.data(), rank_, address_, sizeof(T)));
        return std::bit_cast<value_type>(value);
    }
    /// Fills the whole range.
    template <writable_range R>
        requires std::same_as<std::ranges::range_value_t<R>, value_type>
    void get(R &&into) const {
        detail::check(ompx_get(std::ranges::data(into), rank_, address_, nbytes_of(into)));
    }
    /// The range must not be used until the event is complete.
    template <lasting_writable_range R>
        requires std::same_as<std::ranges::range_value_t<R>, value_type>
    event get_nb(R &&into) const {
        ompx_event_t handle = nullptr;
        detail::check(
            ompx_get_nb(std::ranges::data(into), rank_, address_, nbytes_of(into), &handle));
        return event(handle);
    }

    [[nodiscard]] constexpr global_ref<T> operator*() const noexcept {
        return global_ref<T>(*this);
    }
    [[nodiscard]] constexpr global_ref<T> operator[](std::ptrdiff_t index) const noexcept {
        return *(*this + index);
    }

    constexpr global_ptr &operator+=(std::ptrdiff_t elements) noexcept {
        address_ += elements;
        return *this;
    }
    constexpr global_ptr &operator-=(std::ptrdiff_t elements) noexcept {
        address_ -= elements;
        return *this;
    }
    constexpr global_ptr &operator++() noexcept { return *this += 1; }
    constexpr global_ptr &operator--() noexcept { return *this -= 1; }
    constexpr global_ptr operator++(int) noexcept {
        const global_ptr before = *this;
        ++*this;
        return before;
    }
    constexpr global_ptr operator--(int) noexcept {
        const global_ptr before = *this;
        --*this;
        return before;
    }
    [[nodiscard]] friend constexpr global_ptr operator+(global_ptr p, std::ptrdiff_t n) noexcept {
        return p += n;
    }
    [[nodiscard]] friend constexpr global_ptr operator+(std::ptrdiff_t n, global_ptr p) noexcept {
        return p += n;
    }
    [[nodiscard]] friend constexpr global_ptr operator-(global_ptr p, std::ptrdiff_t n) noexcept {
        return p -= n;
    }
    /// Both must point into the same array of the same rank.
    [[nodiscard]] friend constexpr std::ptrdiff_t operator-(global_ptr a, global_ptr b) noexcept {
        return a.address_ - b.address_;
    }
    [[nodiscard]] friend constexpr bool operator==(global_ptr, global_ptr) noexcept = default;
    [[nodiscard]] friend constexpr std::strong_ordering operator<=>(global_ptr a,
                                                                    global_ptr b) noexcept {
        if (const auto by_rank = a.rank_ <=> b.rank_; by_rank != 0) {
            return by_rank;
        }
        return std::compare_three_way{}(a.address_, b.address_);
    }

private:
    template <typename R>
    static std::size_t nbytes_of(const R &range) {
        return static_cast<std::size_t>(std::ranges::size(range)) * sizeof(T);
    }

    T *address_ = nullptr;
    int rank_ = -1;
};

static_assert(std::is_trivially_copyable_v<global_ptr<int>> && sizeof(global_ptr<int>) == 16);

/// The type of `*p`: reading it is a get, assigning to it a put. `auto x = *p` copies the
/// reference, not the value; write `T x = *p`.
template <transferable T>
class global_ref {
public:
    using value_type = std::remove_cv_t<T>;

    constexpr explicit global_ref(global_ptr<T> where) noexcept : where_(where) {}
    constexpr global_ref(const global_ref &) noexcept = default;
    ~global_ref() = default;

    [[nodiscard]] operator value_type() const { return where_.get(); }
    // NOLINTBEGIN(misc-unconventional-assign-operator): a proxy is constant like a reference
    const global_ref &operator=(const value_type &value) const
        requires(!std::is_const_v<T>)
    {
        where_.put(value);
        return *this;
    }
    /// Assigns the value, like assignment through a reference.
    const global_ref &operator=(const global_ref &other) const
        requires(!std::is_const_v<T>)
    {
        where_.put(static_cast<value_type>(other));
        return *this;
    }
    // NOLINTEND(misc-unconventional-assign-operator)
    [[nodiscard]] constexpr global_ptr<T> operator&() const noexcept { return where_; }

private:
    global_ptr<T> where_;
};

/// The counterpart at `rank` of an address in the caller's symmetric or asymmetric memory.
template <transferable T>
[[nodiscard]] constexpr global_ptr<T> at(int rank, T *own) noexcept {
    return {rank, own};
}

} // namespace v1
} // namespace diomp

#endif // DIOMP_GLOBAL_PTR_HPP
