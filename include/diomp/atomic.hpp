// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Atomic operations on a value in the memory of any rank, with the interface of std::atomic_ref.
#ifndef DIOMP_ATOMIC_HPP
#define DIOMP_ATOMIC_HPP

#include "diomp.h"
#include "diomp/error.hpp"
#include "diomp/event.hpp"
#include "diomp/global_ptr.hpp"
#include "diomp/types.hpp"

#include <concepts>
#include <cstring>
#include <type_traits>

namespace diomp {
inline namespace v1 {

/// Each member function is one ompx_atomic_fetch or ompx_atomic_compare_swap: atomic with respect
/// to all other such calls from any thread of any rank, but not to plain loads and stores.
/// Functions without a result (store, add, ...) do not wait; a fence completes them. Any thread.
template <atomic_type T>
class atomic_ref {
public:
    using value_type = T;

    constexpr explicit atomic_ref(global_ptr<T> where) noexcept : where_(where) {}

    [[nodiscard]] T load() const { return fetch(T{}, OMPX_NO_OP); }
    void store(T value) const { update(value, OMPX_REPLACE); }
    [[nodiscard]] T exchange(T value) const { return fetch(value, OMPX_REPLACE); }
    /// Compares bitwise. If the values differ, `expected` receives the current value.
    bool compare_exchange_strong(T &expected, T desired) const {
        T found;
        detail::check(ompx_atomic_compare_swap(where_.rank(), where_.address(), &expected, &desired,
                                               &found, type_v<T>));
        if (std::memcmp(&found, &expected, sizeof(T)) == 0) {
            return true;
        }
        expected = found;
        return false;
    }

    T fetch_add(T value) const { return fetch(value, OMPX_SUM); }
    T fetch_sub(T value) const { return fetch(negated(value), OMPX_SUM); }
    T fetch_min(T value) const { return fetch(value, OMPX_MIN); }
    T fetch_max(T value) const { return fetch(value, OMPX_MAX); }
    T fetch_and(T value) const
        requires std::integral<T>
    {
        return fetch(value, OMPX_BAND);
    }
    T fetch_or(T value) const
        requires std::integral<T>
    {
        return fetch(value, OMPX_BOR);
    }
    T fetch_xor(T value) const
        requires std::integral<T>
    {
        return fetch(value, OMPX_BXOR);
    }

    /// Non-blocking: `before` receives the old value and must not be used until the event is
    /// complete.
    event fetch_nb(T value, ompx_op_t what, T &before) const {
        ompx_event_t handle = nullptr;
        detail::check(ompx_atomic_fetch_nb(where_.rank(), where_.address(), &value, &before,
                                           type_v<T>, what, &handle));
        return event(handle);
    }

    /// Non-blocking: `before` receives the old value and must not be used until the event is
    /// complete. The exchange has taken place if it is equal to `expected`.
    event compare_exchange_nb(T expected, T desired, T &before) const {
        ompx_event_t handle = nullptr;
        detail::check(ompx_atomic_compare_swap_nb(where_.rank(), where_.address(), &expected,
                                                  &desired, &before, type_v<T>, &handle));
        return event(handle);
    }

    void add(T value) const { update(value, OMPX_SUM); }
    void sub(T value) const { update(negated(value), OMPX_SUM); }

    [[nodiscard]] constexpr global_ptr<T> where() const noexcept { return where_; }

private:
    // In the unsigned type: the negative of the smallest integer would overflow.
    static constexpr T negated(T value) {
        if constexpr (std::integral<T>) {
            using bits = std::make_unsigned_t<T>;
            return static_cast<T>(bits{0} - static_cast<bits>(value));
        } else {
            return -value;
        }
    }
    [[nodiscard]] T fetch(T operand, ompx_op_t what) const {
        T before;
        detail::check(
            ompx_atomic_fetch(where_.rank(), where_.address(), &operand, &before, type_v<T>, what));
        return before;
    }
    void update(T operand, ompx_op_t what) const {
        detail::check(
            ompx_atomic_fetch(where_.rank(), where_.address(), &operand, nullptr, type_v<T>, what));
    }

    global_ptr<T> where_;
};

template <atomic_type T>
T fetch_add(global_ptr<T> where, std::type_identity_t<T> value) {
    return atomic_ref<T>(where).fetch_add(value);
}
template <atomic_type T>
[[nodiscard]] T atomic_load(global_ptr<T> where) {
    return atomic_ref<T>(where).load();
}
template <atomic_type T>
void atomic_store(global_ptr<T> where, std::type_identity_t<T> value) {
    atomic_ref<T>(where).store(value);
}
template <atomic_type T>
[[nodiscard]] T exchange(global_ptr<T> where, std::type_identity_t<T> value) {
    return atomic_ref<T>(where).exchange(value);
}
template <atomic_type T>
bool compare_exchange(global_ptr<T> where, T &expected, std::type_identity_t<T> desired) {
    return atomic_ref<T>(where).compare_exchange_strong(expected, desired);
}

} // namespace v1
} // namespace diomp

#endif // DIOMP_ATOMIC_HPP
