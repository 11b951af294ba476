// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An array of fixed size for tables with an entry per rank of which few are used: its memory is
// zero, and a page of it is committed when it is written.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

namespace diomp {

/// Zeroed memory that is committed page by page, as the process writes to it; throws bad_alloc.
[[nodiscard]] void *map_zeroed(std::size_t nbytes);
void unmap_zeroed(void *begin, std::size_t nbytes);

/// For types whose initial value is all zero bits. The elements never move and are not destroyed:
/// the owner clears those that own something.
template <typename T>
class lazy_array {
public:
    lazy_array() = default;
    explicit lazy_array(std::size_t size) : size_(size) {
        if (size == 0) {
            return;
        }
        data_ = static_cast<T *>(map_zeroed(size * sizeof(T)));
    }
    lazy_array(lazy_array &&other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    lazy_array &operator=(lazy_array &&other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~lazy_array() {
        if (data_ != nullptr) {
            unmap_zeroed(static_cast<void *>(data_), size_ * sizeof(T));
        }
    }

    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] T &operator[](std::size_t index) { return data_[index]; }
    [[nodiscard]] const T &operator[](std::size_t index) const { return data_[index]; }
    [[nodiscard]] T *data() { return data_; }
    [[nodiscard]] const T *data() const { return data_; }
    [[nodiscard]] std::span<T> first(std::size_t count) { return {data_, count}; }

private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace diomp
