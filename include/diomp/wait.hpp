// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Waits for and tests of local integers that puts, signals and atomics of any rank change.
#ifndef DIOMP_WAIT_HPP
#define DIOMP_WAIT_HPP

#include "diomp.h"
#include "diomp/error.hpp"
#include "diomp/types.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <span>
#include <type_traits>
#include <vector>

namespace diomp {
inline namespace v1 {

/// Integers of 8, 16, 32 and 64 bits.
template <typename T>
concept waitable = std::integral<T> && !std::same_as<std::remove_cv_t<T>, bool> && sizeof(T) <= 8;

/// A vector, array or span of integers in the caller's memory.
template <typename R>
concept waitable_range = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
                         waitable<std::ranges::range_value_t<R>>;

/// Elements that a call on several words leaves out: those with skip[i] != 0. Empty: none; else as
/// long as the range of words.
using skipped = std::span<const int>;

/// Handles messages of other ranks and continues this rank's operations; does not block.
inline void progress() { detail::check(ompx_progress()); }

/// Blocks until the comparison with the local *variable holds; returns the value that ended the
/// wait.
template <waitable T>
T wait_until(const T *variable, ompx_cmp_t compare, std::type_identity_t<T> value) {
    T found;
    detail::check(ompx_wait_until_fetch(variable, type_v<T>, compare, &value, &found));
    return found;
}
/// wait_until() for a signal of put_signal.
inline std::uint64_t signal_wait(const std::uint64_t *signal, ompx_cmp_t compare,
                                 std::uint64_t value) {
    std::uint64_t found = 0;
    detail::check(ompx_signal_wait_fetch(signal, compare, value, &found));
    return found;
}
/// Whether the comparison holds now; makes progress, does not block.
template <waitable T>
[[nodiscard]] bool test_until(const T *variable, ompx_cmp_t compare,
                              std::type_identity_t<T> value) {
    return detail::check(ompx_test_until(variable, type_v<T>, compare, &value)) == 1;
}
[[nodiscard]] inline bool signal_test(const std::uint64_t *signal, ompx_cmp_t compare,
                                      std::uint64_t value) {
    return detail::check(ompx_signal_test(signal, compare, value)) == 1;
}

namespace detail {

template <typename R>
const int *skip_list(const R &words, skipped skip) {
    if (skip.empty()) {
        return nullptr;
    }
    if (skip.size() != std::ranges::size(words)) {
        fail(OMPX_ERR_ARG, "skip: not as long as the range of words");
    }
    return skip.data();
}

inline std::optional<std::size_t> index_or_none(std::size_t index) {
    return index == OMPX_NO_INDEX ? std::nullopt : std::optional(index);
}

} // namespace detail

/// Blocks until an element fulfils the comparison; its index, or nullopt if all are skipped.
template <waitable_range R>
std::optional<std::size_t> wait_until_any(const R &words, ompx_cmp_t compare,
                                          std::ranges::range_value_t<R> value, skipped skip = {}) {
    std::size_t index = OMPX_NO_INDEX;
    detail::check(ompx_wait_until_any(
        std::ranges::data(words), type_v<std::ranges::range_value_t<R>>, std::ranges::size(words),
        detail::skip_list(words, skip), compare, &value, 1, &index));
    return detail::index_or_none(index);
}
/// Blocks until at least one element fulfils the comparison; the indices of all that do.
template <waitable_range R>
std::vector<std::size_t> wait_until_some(const R &words, ompx_cmp_t compare,
                                         std::ranges::range_value_t<R> value, skipped skip = {}) {
    std::vector<std::size_t> found(std::ranges::size(words));
    std::size_t num_found = 0;
    detail::check(ompx_wait_until_some(
        std::ranges::data(words), type_v<std::ranges::range_value_t<R>>, found.size(),
        detail::skip_list(words, skip), compare, &value, 1, found.data(), &num_found));
    found.resize(num_found);
    return found;
}
/// Blocks until each element has fulfilled the comparison.
template <waitable_range R>
void wait_until_all(const R &words, ompx_cmp_t compare, std::ranges::range_value_t<R> value,
                    skipped skip = {}) {
    detail::check(ompx_wait_until_all(
        std::ranges::data(words), type_v<std::ranges::range_value_t<R>>, std::ranges::size(words),
        detail::skip_list(words, skip), compare, &value, 1));
}
/// The tests make progress and do not block: an index or nullopt, indices, whether all fulfil it.
template <waitable_range R>
[[nodiscard]] std::optional<std::size_t> test_until_any(const R &words, ompx_cmp_t compare,
                                                        std::ranges::range_value_t<R> value,
                                                        skipped skip = {}) {
    std::size_t index = OMPX_NO_INDEX;
    detail::check(ompx_test_until_any(
        std::ranges::data(words), type_v<std::ranges::range_value_t<R>>, std::ranges::size(words),
        detail::skip_list(words, skip), compare, &value, 1, &index));
    return detail::index_or_none(index);
}
template <waitable_range R>
[[nodiscard]] std::vector<std::size_t> test_until_some(const R &words, ompx_cmp_t compare,
                                                       std::ranges::range_value_t<R> value,
                                                       skipped skip = {}) {
    std::vector<std::size_t> found(std::ranges::size(words));
    std::size_t num_found = 0;
    detail::check(ompx_test_until_some(
        std::ranges::data(words), type_v<std::ranges::range_value_t<R>>, found.size(),
        detail::skip_list(words, skip), compare, &value, 1, found.data(), &num_found));
    found.resize(num_found);
    return found;
}
template <waitable_range R>
[[nodiscard]] bool test_until_all(const R &words, ompx_cmp_t compare,
                                  std::ranges::range_value_t<R> value, skipped skip = {}) {
    return detail::check(ompx_test_until_all(
               std::ranges::data(words), type_v<std::ranges::range_value_t<R>>,
               std::ranges::size(words), detail::skip_list(words, skip), compare, &value, 1)) == 1;
}

} // namespace v1
} // namespace diomp

#endif // DIOMP_WAIT_HPP
