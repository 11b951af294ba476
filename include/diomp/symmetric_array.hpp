// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An array with one block of equal size on every rank.
#ifndef DIOMP_SYMMETRIC_ARRAY_HPP
#define DIOMP_SYMMETRIC_ARRAY_HPP

#include "diomp.h"
#include "diomp/error.hpp"
#include "diomp/event.hpp"
#include "diomp/global_ptr.hpp"
#include "diomp/memory.hpp"
#include "diomp/types.hpp"

#include <concepts>
#include <cstddef>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <utility>

namespace diomp {
inline namespace v1 {

/// Owns symmetric memory. Constructors (except default and move) and the destructor are collective.
/// A contiguous range of this rank's own block; blocks of other ranks are accessed by rank and
/// index, which each call checks (OMPX_ERR_RANGE). A constant array is read-only on all ranks.
template <transferable T>
    requires std::is_default_constructible_v<T>
class symmetric_array {
public:
    using value_type = T;
    using size_type = std::size_t;

    symmetric_array() noexcept = default;
    /// Value-initialised. Returns when all ranks' blocks are initialised, so puts may follow at
    /// once.
    explicit symmetric_array(std::size_t count) : symmetric_array(count, T{}) {}
    symmetric_array(std::size_t count, const T &value)
        : part_(detail::allocate_array<T>(count, OMPX_MEM_SYMMETRIC)), size_(count) {
        std::uninitialized_fill_n(part_.get(), count, value);
        detail::check(ompx_barrier());
    }
    symmetric_array(symmetric_array &&other) noexcept
        : part_(std::move(other.part_)), size_(std::exchange(other.size_, 0)) {}
    symmetric_array &operator=(symmetric_array &&other) noexcept {
        part_ = std::move(other.part_);
        size_ = std::exchange(other.size_, 0);
        return *this;
    }
    symmetric_array(const symmetric_array &) = delete;
    symmetric_array &operator=(const symmetric_array &) = delete;
    ~symmetric_array() = default;

    // This rank's own block.
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] T *data() noexcept { return part_.get(); }
    [[nodiscard]] const T *data() const noexcept { return part_.get(); }
    [[nodiscard]] T *begin() noexcept { return data(); }
    [[nodiscard]] T *end() noexcept { return data() + size_; }
    [[nodiscard]] const T *begin() const noexcept { return data(); }
    [[nodiscard]] const T *end() const noexcept { return data() + size_; }
    [[nodiscard]] T &operator[](std::size_t index) noexcept { return data()[index]; }
    [[nodiscard]] const T &operator[](std::size_t index) const noexcept { return data()[index]; }
    [[nodiscard]] std::span<T> local() noexcept { return {data(), size_}; }
    [[nodiscard]] std::span<const T> local() const noexcept { return {data(), size_}; }

    // Any rank's block. Transfers behave like those of global_ptr.
    [[nodiscard]] global_ptr<T> at(int rank, std::size_t index = 0) {
        check_range(index, 0);
        return {rank, data() + index};
    }
    [[nodiscard]] global_ptr<const T> at(int rank, std::size_t index = 0) const {
        check_range(index, 0);
        return {rank, data() + index};
    }
    /// The block of `rank` for loads and stores; empty if it is not directly accessible.
    [[nodiscard]] std::span<T> direct(int rank) {
        auto *const part = static_cast<T *>(ompx_remote_ptr(data(), rank));
        return part == nullptr ? std::span<T>() : std::span<T>(part, size_);
    }
    [[nodiscard]] std::span<const T> direct(int rank) const {
        const auto *const part = static_cast<const T *>(ompx_remote_ptr(data(), rank));
        return part == nullptr ? std::span<const T>() : std::span<const T>(part, size_);
    }

    void put(int rank, std::size_t index, const T &value) {
        check_range(index, 1);
        at(rank, index).put(value);
    }
    template <transferable_range R>
        requires std::same_as<std::ranges::range_value_t<R>, T>
    void put(int rank, std::size_t index, const R &values) {
        check_range(index, std::ranges::size(values));
        at(rank, index).put(values);
    }
    template <lasting_range R>
        requires std::same_as<std::ranges::range_value_t<R>, T>
    event put_nb(int rank, std::size_t index, R &&values) {
        check_range(index, std::ranges::size(values));
        return at(rank, index).put_nb(values);
    }
    [[nodiscard]] T get(int rank, std::size_t index) const {
        check_range(index, 1);
        return at(rank, index).get();
    }
    template <writable_range R>
        requires std::same_as<std::ranges::range_value_t<R>, T>
    void get(int rank, std::size_t index, R &&into) const {
        check_range(index, std::ranges::size(into));
        at(rank, index).get(into);
    }
    template <lasting_writable_range R>
        requires std::same_as<std::ranges::range_value_t<R>, T>
    event get_nb(int rank, std::size_t index, R &&into) const {
        check_range(index, std::ranges::size(into));
        return at(rank, index).get_nb(into);
    }

private:
    void check_range(std::size_t index, std::size_t count) const {
        if (index > size_ || count > size_ - index) [[unlikely]] {
            detail::fail(OMPX_ERR_RANGE, "symmetric_array: elements " + std::to_string(index) +
                                             " to " + std::to_string(index) + " + " +
                                             std::to_string(count) + " of an array of " +
                                             std::to_string(size_));
        }
    }

    owner<T[]> part_;
    std::size_t size_ = 0;
};

} // namespace v1
} // namespace diomp

#endif // DIOMP_SYMMETRIC_ARRAY_HPP
