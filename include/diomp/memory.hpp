// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Allocators for containers, and single objects and arrays, in the global address space.
#ifndef DIOMP_MEMORY_HPP
#define DIOMP_MEMORY_HPP

#include "diomp.h"
#include "diomp/error.hpp"
#include "diomp/types.hpp"

#include <cstddef>
#include <memory>
#include <memory_resource>
#include <type_traits>
#include <utility>

namespace diomp {
inline namespace v1 {

namespace detail {

/// Never null: failure is an error.
inline void *allocate_bytes(std::size_t nbytes, std::size_t alignment, ompx_mem_kind_t kind) {
    void *const memory = ompx_alloc(nbytes, alignment, kind);
    if (memory == nullptr) {
        fail_last();
    }
    return memory;
}

template <typename T>
T *allocate_array(std::size_t count, ompx_mem_kind_t kind) {
    return static_cast<T *>(allocate_bytes(bytes_of<T>("allocation", count), alignof(T), kind));
}

/// No operation after the runtime has ended: objects of static storage duration may be destroyed
/// then, and the memory has been released already.
inline void free_bytes(void *memory) noexcept {
    if (memory != nullptr && ompx_is_initialized() == 1) {
        ompx_free(memory);
    }
}

} // namespace detail

/// Allocator for std::vector and other containers. With symmetric and asymmetric memory all
/// allocations and deallocations are collective: all ranks must construct, grow, copy and destroy
/// such containers in the same order, and symmetric ones with equal capacities.
template <typename T, ompx_mem_kind_t Kind>
class allocator {
public:
    using value_type = T;
    using is_always_equal = std::true_type;
    template <typename U>
    struct rebind {
        using other = allocator<U, Kind>;
    };
    static constexpr ompx_mem_kind_t kind = Kind;

    constexpr allocator() noexcept = default;
    template <typename U>
    constexpr allocator(const allocator<U, Kind> & /*other*/) noexcept {}

    [[nodiscard]] T *allocate(std::size_t count) { return detail::allocate_array<T>(count, Kind); }
    void deallocate(T *memory, std::size_t /*count*/) noexcept { detail::free_bytes(memory); }

    [[nodiscard]] friend constexpr bool operator==(allocator, allocator) noexcept { return true; }
};

template <typename T>
using symmetric_allocator = allocator<T, OMPX_MEM_SYMMETRIC>;
template <typename T>
using asymmetric_allocator = allocator<T, OMPX_MEM_ASYMMETRIC>;
template <typename T>
using local_allocator = allocator<T, OMPX_MEM_LOCAL>;

/// Memory resource for the containers of std::pmr, with the rules of `allocator`.
template <ompx_mem_kind_t Kind>
class memory_resource final : public std::pmr::memory_resource {
    void *do_allocate(std::size_t nbytes, std::size_t alignment) override {
        return detail::allocate_bytes(nbytes, alignment, Kind);
    }
    void do_deallocate(void *memory, std::size_t /*nbytes*/, std::size_t /*alignment*/) override {
        detail::free_bytes(memory);
    }
    [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
#if defined(__cpp_rtti)
        return dynamic_cast<const memory_resource *>(&other) != nullptr;
#else
        return this == &other;
#endif
    }
};

/// The program's resource for each kind. Any thread.
[[nodiscard]] inline std::pmr::memory_resource *symmetric_resource() noexcept {
    static memory_resource<OMPX_MEM_SYMMETRIC> resource;
    return &resource;
}
[[nodiscard]] inline std::pmr::memory_resource *local_resource() noexcept {
    static memory_resource<OMPX_MEM_LOCAL> resource;
    return &resource;
}

/// Destroys and frees objects of make_symmetric, make_asymmetric and make_local; collective for the
/// first two.
template <typename T>
struct deleter {
    void operator()(T *object) const noexcept {
        if (object != nullptr) {
            std::destroy_at(object);
            detail::free_bytes(object);
        }
    }
};
template <typename T>
struct deleter<T[]> {
    // The elements are trivially destructible (see make), so their number is not stored.
    void operator()(T *elements) const noexcept { detail::free_bytes(elements); }
};

template <typename T>
using owner = std::unique_ptr<T, deleter<T>>;

namespace detail {

struct free_raw {
    void operator()(void *memory) const noexcept { free_bytes(memory); }
};

template <typename T, typename... Args>
    requires(!std::is_array_v<T>)
owner<T> make(ompx_mem_kind_t kind, Args &&...args) {
    std::unique_ptr<void, free_raw> memory(allocate_bytes(sizeof(T), alignof(T), kind));
    T *const object =
        std::construct_at(static_cast<T *>(memory.get()), std::forward<Args>(args)...);
    static_cast<void>(memory.release());
    return owner<T>(object);
}

template <typename T>
    requires std::is_unbounded_array_v<T>
owner<T> make(ompx_mem_kind_t kind, std::size_t count) {
    using element = std::remove_extent_t<T>;
    static_assert(transferable<element> && std::is_default_constructible_v<element>,
                  "elements of arrays in global memory must be transferable");
    auto *const elements = allocate_array<element>(count, kind);
    std::uninitialized_value_construct_n(elements, count);
    return owner<T>(elements);
}

} // namespace detail

/// Creates an object or array in symmetric memory: `make_symmetric<T>(constructor arguments)` or
/// `make_symmetric<T[]>(count)` (zeroed). Collective, like the destruction of its owner; a
/// constructor that throws must throw on all ranks. Ends with a barrier, so that puts may follow at
/// once.
template <typename T, typename... Args>
    requires(!std::is_array_v<T>)
[[nodiscard]] owner<T> make_symmetric(Args &&...args) {
    auto made = detail::make<T>(OMPX_MEM_SYMMETRIC, std::forward<Args>(args)...);
    detail::check(ompx_barrier());
    return made;
}
template <typename T>
    requires std::is_unbounded_array_v<T>
[[nodiscard]] owner<T> make_symmetric(std::size_t count) {
    auto made = detail::make<T>(OMPX_MEM_SYMMETRIC, count);
    detail::check(ompx_barrier());
    return made;
}
/// Creates an array in asymmetric memory (zeroed); the count may differ between ranks. Collective,
/// ends with a barrier. at(rank, p.get()).portable() gives another rank's block.
template <typename T>
    requires std::is_unbounded_array_v<T>
[[nodiscard]] owner<T> make_asymmetric(std::size_t count) {
    auto made = detail::make<T>(OMPX_MEM_ASYMMETRIC, count);
    detail::check(ompx_barrier());
    return made;
}
/// Changes the number of elements of an array of the functions here (ompx_realloc): the first ones
/// keep their values, new ones are undefined. Collective unless the memory is local; a put may
/// follow at once. After an error the array is as it was. `count` is at least 1 on every rank.
template <typename T>
    requires std::is_unbounded_array_v<T> && transferable<std::remove_extent_t<T>> &&
             (alignof(std::remove_extent_t<T>) <= 64)
void reallocate(owner<T> &array, std::size_t count) {
    using element = std::remove_extent_t<T>;
    if (array == nullptr || count == 0) {
        detail::fail(OMPX_ERR_ARG, "reallocate: no array, or no elements");
    }
    void *const moved = ompx_realloc(array.get(), detail::bytes_of<element>("reallocate", count));
    if (moved == nullptr) {
        detail::fail_last();
    }
    static_cast<void>(array.release());
    array.reset(static_cast<element *>(moved));
}
/// Creates an object or array in local memory. Not collective.
template <typename T, typename... Args>
    requires(!std::is_array_v<T>)
[[nodiscard]] owner<T> make_local(Args &&...args) {
    return detail::make<T>(OMPX_MEM_LOCAL, std::forward<Args>(args)...);
}
template <typename T>
    requires std::is_unbounded_array_v<T>
[[nodiscard]] owner<T> make_local(std::size_t count) {
    return detail::make<T>(OMPX_MEM_LOCAL, count);
}

} // namespace v1
} // namespace diomp

#endif // DIOMP_MEMORY_HPP
