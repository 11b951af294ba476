// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// C++ types that can be transferred, and the C constants of types and operators.
#ifndef DIOMP_TYPES_HPP
#define DIOMP_TYPES_HPP

#include "diomp.h"
#include "diomp/error.hpp"

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <memory>
#include <ranges>
#include <type_traits>
#include <utility>

namespace diomp {
inline namespace v1 {

/// Types that can be copied bytewise into another process.
template <typename T>
concept transferable = std::is_trivially_copyable_v<T> && !std::is_reference_v<T>;

namespace detail {

/// 0 if there is no such C type.
template <typename T>
consteval ompx_type_t type_of() {
    if constexpr (std::same_as<T, bool>) {
        return OMPX_BOOL;
    } else if constexpr (std::integral<T> && sizeof(T) <= 8) {
        // By size and sign, so that long, long long and character types are included.
        constexpr ompx_type_t of_size = sizeof(T) == 1   ? OMPX_INT8
                                        : sizeof(T) == 2 ? OMPX_INT16
                                        : sizeof(T) == 4 ? OMPX_INT32
                                                         : OMPX_INT64;
        return std::is_signed_v<T> ? of_size : of_size + 1;
    } else if constexpr (std::same_as<T, float>) {
        return OMPX_FLOAT;
    } else if constexpr (std::same_as<T, double>) {
        return OMPX_DOUBLE;
    } else if constexpr (std::same_as<T, long double>) {
        return OMPX_LONG_DOUBLE;
    } else if constexpr (std::same_as<T, std::complex<float>>) {
        return OMPX_FLOAT_COMPLEX;
    } else if constexpr (std::same_as<T, std::complex<double>>) {
        return OMPX_DOUBLE_COMPLEX;
#if defined(__FLT16_MAX__)
    } else if constexpr (std::same_as<T, _Float16>) {
        return OMPX_FLOAT16;
#endif
    } else if constexpr (std::same_as<T, ompx_float_int_t>) {
        return OMPX_FLOAT_INT;
    } else if constexpr (std::same_as<T, ompx_double_int_t>) {
        return OMPX_DOUBLE_INT;
    } else if constexpr (std::same_as<T, ompx_long_int_t>) {
        return OMPX_LONG_INT;
    } else if constexpr (std::same_as<T, ompx_2int_t>) {
        return OMPX_2INT;
    } else if constexpr (std::same_as<T, ompx_short_int_t>) {
        return OMPX_SHORT_INT;
    } else if constexpr (std::same_as<T, ompx_long_double_int_t>) {
        return OMPX_LONG_DOUBLE_INT;
    } else if constexpr (std::same_as<T, ompx_2int64_t>) {
        return OMPX_2INT64;
    } else if constexpr (std::same_as<T, ompx_double_int64_t>) {
        return OMPX_DOUBLE_INT64;
    } else {
        return 0;
    }
}

} // namespace detail

/// Element types of reductions with the operators below.
template <typename T>
concept reducible = detail::type_of<std::remove_cv_t<T>>() != 0;

template <reducible T>
inline constexpr ompx_type_t type_v = detail::type_of<std::remove_cv_t<T>>();

/// Element types of remote atomics.
template <typename T>
concept atomic_type = reducible<T> && !std::is_const_v<T> && !std::same_as<T, bool> &&
                      ((std::integral<T> && (sizeof(T) == 4 || sizeof(T) == 8)) ||
                       std::same_as<T, float> || std::same_as<T, double>);

/// A vector, array or span with transferable elements.
template <typename R>
concept transferable_range = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
                             transferable<std::ranges::range_value_t<R>>;
/// A transferable range whose elements can be written.
template <typename R>
concept writable_range =
    transferable_range<R> &&
    !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;
/// Ranges for calls that do not block: no container that ends with the call, as a temporary one
/// does.
template <typename R>
concept lasting_range = transferable_range<R> && std::ranges::borrowed_range<R>;
template <typename R>
concept lasting_writable_range = writable_range<R> && std::ranges::borrowed_range<R>;

enum class op : ompx_op_t {
    sum = OMPX_SUM,
    prod = OMPX_PROD,
    min = OMPX_MIN,
    max = OMPX_MAX,
    band = OMPX_BAND,
    bor = OMPX_BOR,
    bxor = OMPX_BXOR,
    land = OMPX_LAND,
    lor = OMPX_LOR,
    avg = OMPX_AVG,       ///< not for scans
    minloc = OMPX_MINLOC, ///< of pairs: ompx_double_int_t and its siblings
    maxloc = OMPX_MAXLOC
};

/// A user-defined reduction operator: `T function(const T &left, const T &right)`, associative. Not
/// collective. Must outlive the collectives that use it. The function may run on any thread and
/// must not call DiOMP. Owns an ompx_op_t.
template <transferable T>
class user_op {
    static_assert(sizeof(T) <= 65535, "OMPX_TYPE_OF_SIZE ends there");

public:
    template <typename F>
        requires std::is_invocable_r_v<T, const F &, const T &, const T &>
    explicit user_op(F function, bool commutative = false) {
        auto owned = std::make_unique<holder<F>>(std::move(function));
        detail::check(ompx_op_create(&handle_, &apply<F>, &owned->function, commutative ? 1 : 0));
        function_ = std::move(owned);
    }
    user_op(const user_op &) = delete;
    user_op &operator=(const user_op &) = delete;
    ~user_op() {
        if (ompx_is_initialized() == 1) {
            ompx_op_free(&handle_);
        }
    }

    [[nodiscard]] ompx_op_t handle() const noexcept { return handle_; }
    /// The C type of the elements, which has only a size.
    static constexpr ompx_type_t type = OMPX_TYPE_OF_SIZE(sizeof(T));

private:
    struct any_function {
        any_function() = default;
        any_function(const any_function &) = delete;
        any_function &operator=(const any_function &) = delete;
        virtual ~any_function() = default;
    };
    template <typename F>
    struct holder final : any_function {
        explicit holder(F given) : function(std::move(given)) {}
        F function;
    };

    // The buffers belong to the runtime and need not be aligned for T.
    template <typename F>
    static void apply(void *inout, const void *in, std::size_t count, ompx_type_t /*type*/,
                      void *context) {
        const F &function = *static_cast<const F *>(context);
        for (std::size_t i = 0; i < count; ++i) {
            auto *const left_bytes = static_cast<std::byte *>(inout) + i * sizeof(T);
            alignas(T) std::byte left[sizeof(T)];
            alignas(T) std::byte right[sizeof(T)];
            std::memcpy(left, left_bytes, sizeof(T));
            std::memcpy(right, static_cast<const std::byte *>(in) + i * sizeof(T), sizeof(T));
            const T combined =
                function(*reinterpret_cast<const T *>(left), *reinterpret_cast<const T *>(right));
            std::memcpy(left_bytes, std::addressof(combined), sizeof(T));
        }
    }

    ompx_op_t handle_ = 0;
    std::unique_ptr<any_function> function_;
};

} // namespace v1
} // namespace diomp

#endif // DIOMP_TYPES_HPP
