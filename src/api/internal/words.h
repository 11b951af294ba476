// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Local integers that a call waits for or tests.
#pragma once

#include "api/internal/state.h"
#include "base/constant_names.h"
#include "messaging/engine.h"
#include "rma/rma.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

namespace diomp::api {

/// A comparison with a value, as membership in a range or the opposite: no branch depends on which
/// comparison it is, so that a search of many words has one per word.
template <typename T>
class comparison {
public:
    [[gnu::always_inline]] comparison(ompx_cmp_t cmp, T value)
        : is_inside_(cmp == OMPX_CMP_EQ || cmp == OMPX_CMP_GE || cmp == OMPX_CMP_LE) {
        bool const is_equality = cmp == OMPX_CMP_EQ || cmp == OMPX_CMP_NE;
        bool const is_from_value = is_equality || cmp == OMPX_CMP_GE || cmp == OMPX_CMP_LT;
        bool const is_to_value = is_equality || cmp == OMPX_CMP_LE || cmp == OMPX_CMP_GT;
        low_ = static_cast<bits>(is_from_value ? value : std::numeric_limits<T>::min());
        auto const high = static_cast<bits>(is_to_value ? value : std::numeric_limits<T>::max());
        span_ = static_cast<bits>(high - low_);
    }
    [[gnu::always_inline]] [[nodiscard]] bool holds(T current) const {
        auto const distance = static_cast<bits>(static_cast<bits>(current) - low_);
        return (distance <= span_) == is_inside_;
    }

private:
    using bits = std::make_unsigned_t<T>;
    bits low_;
    bits span_;
    bool is_inside_;
};

inline bool is_comparison(ompx_cmp_t cmp) { return cmp >= OMPX_CMP_EQ && cmp <= OMPX_CMP_LE; }

inline const char *sign_of(ompx_cmp_t cmp) {
    constexpr const char *signs[] = {"==", "!=", ">", ">=", "<", "<="};
    return signs[cmp];
}

/// Calls body with a value of the C++ type of an integer type, and returns its result; `otherwise`
/// for other types.
template <typename Result, typename Body>
[[gnu::always_inline]] inline Result with_integer(ompx_type_t type, Result otherwise, Body &&body) {
    switch (type) {
    case OMPX_INT8:
        return body(std::int8_t{});
    case OMPX_UINT8:
        return body(std::uint8_t{});
    case OMPX_INT16:
        return body(std::int16_t{});
    case OMPX_UINT16:
        return body(std::uint16_t{});
    case OMPX_INT32:
        return body(std::int32_t{});
    case OMPX_UINT32:
        return body(std::uint32_t{});
    case OMPX_INT64:
        return body(std::int64_t{});
    case OMPX_UINT64:
        return body(std::uint64_t{});
    default:
        return otherwise;
    }
}

/// Size of an integer type, 0 for other types.
inline std::size_t integer_bytes(ompx_type_t type) {
    return with_integer(type, std::size_t{0}, [](auto of) { return sizeof(of); });
}

inline bool is_aligned(const void *variable, std::size_t size) {
    return reinterpret_cast<std::uintptr_t>(variable) % size == 0;
}

inline status check_word(const void *variable, ompx_type_t type, ompx_cmp_t cmp) {
    std::size_t const size = integer_bytes(type);
    if (size == 0) {
        return error(OMPX_ERR_ARG, fmt::format("type {} cannot be waited for", type),
                     "use an integer type, OMPX_INT8 to OMPX_UINT64");
    }
    if (!is_comparison(cmp)) {
        return error(OMPX_ERR_ARG, fmt::format("{} is not a comparison", static_cast<int>(cmp)),
                     "pass one of OMPX_CMP_EQ .. LE");
    }
    if (!is_aligned(variable, size)) {
        return error(OMPX_ERR_ARG, fmt::format("the variable is not aligned to its {} bytes", size),
                     "declare it with its type, or align the allocation");
    }
    return {};
}

/// Waits by the engine's function that suits the job: remote ranks signal by message, ranks of this
/// node by a store.
template <typename Ready, typename Describe>
status wait_for_words(runtime::runtime &running, Ready &&ready, Describe &&describe) {
    auto &engine = running.connection().engine();
    return running.transfers().all_direct() ? engine.wait(ready, describe)
                                            : engine.wait_for_message(ready, describe);
}

inline std::string describe_word(const void *variable, ompx_type_t type, ompx_cmp_t cmp) {
    return fmt::format("variable={}, type={}, cmp={}", variable, type_name(type),
                       comparison_name(cmp));
}

/// The elements of one call, as the caller passed them. Loads acquire: after a value, the thread
/// sees the data that was put before it.
template <typename T>
struct word_list {
    const T *cells;
    std::size_t count;
    const int *skip; ///< null: no element is left out
    ompx_cmp_t cmp;
    const T *values;
    bool has_value_per_cell;

    [[nodiscard]] bool is_skipped(std::size_t i) const { return skip != nullptr && skip[i] != 0; }
    [[nodiscard]] T value_of(std::size_t i) const {
        T value;
        std::memcpy(&value, &values[has_value_per_cell ? i : 0], sizeof(T)); // need not be aligned
        return value;
    }
    /// The first element from `begin` on for which the comparison holds, or does not; count if
    /// there is none.
    [[nodiscard]] std::size_t find(std::size_t begin, bool holds = true) const {
        if (begin >= count) {
            return count; // there may be no value
        }
        comparison<T> const with_first(cmp, value_of(0));
        std::size_t i = begin;
        if (skip == nullptr && !has_value_per_cell) {
            return find_all_alike(with_first, i, holds);
        }
        while (i < count &&
               (is_skipped(i) || comparison<T>(cmp, value_of(i)).holds(load(i)) != holds)) {
            ++i;
        }
        return i;
    }
    [[nodiscard]] bool is_empty() const {
        std::size_t i = 0;
        while (i < count && is_skipped(i)) {
            ++i;
        }
        return i == count;
    }

private:
    /// find() without values and skips of their own. The copies stay in registers: a load that
    /// acquires makes the compiler read again what it cannot prove to be private.
    [[nodiscard]] std::size_t find_all_alike(comparison<T> const with, std::size_t i,
                                             bool const holds) const {
        const T *const at = cells;
        std::size_t const end = count;
        while (i < end && with.holds(__atomic_load_n(&at[i], __ATOMIC_ACQUIRE)) != holds) {
            ++i;
        }
        return i;
    }
    [[nodiscard]] T load(std::size_t i) const {
        return __atomic_load_n(&cells[i], __ATOMIC_ACQUIRE);
    }
};

} // namespace diomp::api
