// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A set of operations of one thread that are completed apart from all others.
#ifndef DIOMP_CONTEXT_HPP
#define DIOMP_CONTEXT_HPP

#include "diomp.h"
#include "diomp/error.hpp"
#include "diomp/global_ptr.hpp"
#include "diomp/types.hpp"

#include <concepts>
#include <cstdint>
#include <ranges>
#include <type_traits>
#include <utility>

namespace diomp {
inline namespace v1 {

/// Owns an ompx_context_t. The destructor completes its operations. One thread at a time.
class context {
public:
    context() { detail::check(ompx_context_create(&handle_)); }
    context(context &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    context &operator=(context &&other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    context(const context &) = delete;
    context &operator=(const context &) = delete;
    ~context() {
        if (handle_ != nullptr && ompx_is_initialized() == 1) {
            ompx_context_free(&handle_);
        }
    }

    /// The values must not be changed until fence() returns.
    template <transferable T, lasting_range R>
        requires(!std::is_const_v<T> && std::same_as<std::ranges::range_value_t<R>, T>)
    void put_nb(global_ptr<T> to, R &&values) {
        detail::check(ompx_context_put_nb(handle_, to.rank(), to.address(),
                                          std::ranges::data(values),
                                          std::ranges::size(values) * sizeof(T)));
    }
    /// Fills the range, which must not be used until fence() returns.
    template <transferable T, lasting_writable_range R>
        requires std::same_as<std::ranges::range_value_t<R>, std::remove_cv_t<T>>
    void get_nb(R &&into, global_ptr<T> from) {
        detail::check(ompx_context_get_nb(handle_, std::ranges::data(into), from.rank(),
                                          from.address(), std::ranges::size(into) * sizeof(T)));
    }
    /// Puts the values, then updates the signal at the same rank. The values must not be changed
    /// until fence() returns.
    template <transferable T, lasting_range R>
        requires(!std::is_const_v<T> && std::same_as<std::ranges::range_value_t<R>, T>)
    void put_signal_nb(global_ptr<T> to, R &&values, global_ptr<std::uint64_t> signal,
                       std::uint64_t value, ompx_signal_op_t how = OMPX_SIGNAL_SET) {
        if (signal.rank() != to.rank()) {
            detail::fail(OMPX_ERR_RANK, "put_signal_nb: data and signal belong to different ranks");
        }
        detail::check(ompx_context_put_signal_nb(
            handle_, to.rank(), to.address(), std::ranges::data(values),
            std::ranges::size(values) * sizeof(T), signal.address(), value, how));
    }
    /// `before` receives the old value and must not be used until fence() returns.
    template <atomic_type T>
    void fetch_nb(global_ptr<T> where, std::type_identity_t<T> value, ompx_op_t what, T &before) {
        detail::check(ompx_context_atomic_fetch_nb(handle_, where.rank(), where.address(), &value,
                                                   &before, type_v<T>, what));
    }
    template <atomic_type T>
    void update_nb(global_ptr<T> where, std::type_identity_t<T> value, ompx_op_t what) {
        detail::check(ompx_context_atomic_fetch_nb(handle_, where.rank(), where.address(), &value,
                                                   nullptr, type_v<T>, what));
    }
    /// `before` receives the old value: the exchange has taken place if it is equal to `expected`.
    template <atomic_type T>
    void compare_exchange_nb(global_ptr<T> where, std::type_identity_t<T> expected,
                             std::type_identity_t<T> desired, T &before) {
        detail::check(ompx_context_atomic_compare_swap_nb(handle_, where.rank(), where.address(),
                                                          &expected, &desired, &before, type_v<T>));
    }
    /// Blocks until the context's operations are complete.
    void fence() { detail::check(ompx_context_fence(handle_)); }
    [[nodiscard]] ompx_context_t handle() const noexcept { return handle_; }

private:
    ompx_context_t handle_ = nullptr;
};

} // namespace v1
} // namespace diomp

#endif // DIOMP_CONTEXT_HPP
