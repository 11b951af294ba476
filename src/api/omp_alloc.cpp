// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// OpenMP's allocation calls (5.2, 18.13) and the functions that clang calls for `#pragma omp
// allocate`. Calls with handles of DiOMP's allocators are served here; all others are forwarded to
// the program's OpenMP runtime, or to the C library if there is none.
#include "api/internal/omp_runtime.h"
#include "api/internal/state.h"
#include "channels/channel_registry.h"
#include "diomp/memory.h"
#include "diomp/sync.h"
#include "memory/memory.h"
#include "runtime/collective_allocator.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <optional>

using namespace diomp;

ompx_mem_kind_t diomp::api::kind_of_allocator(std::uintptr_t allocator) {
    switch (allocator) {
    case OMPX_SYMMETRIC_MEM_ALLOC_VALUE_:
        return OMPX_MEM_SYMMETRIC;
    case OMPX_ASYMMETRIC_MEM_ALLOC_VALUE_:
        return OMPX_MEM_ASYMMETRIC;
    case OMPX_LOCAL_MEM_ALLOC_VALUE_:
        return OMPX_MEM_LOCAL;
    default:
        return OMPX_MEM_NONE;
    }
}

namespace {

/// omp_allocator_handle_t: an enumeration of pointer size in libomp and libgomp alike.
using allocator_handle = std::uintptr_t;
constexpr allocator_handle null_allocator = 0;

const char *name_of(ompx_mem_kind_t kind) {
    switch (kind) {
    case OMPX_MEM_SYMMETRIC:
        return "symmetric";
    case OMPX_MEM_ASYMMETRIC:
        return "asymmetric";
    case OMPX_MEM_LOCAL:
        return "local";
    default:
        return "unknown";
    }
}

bool is_collective(ompx_mem_kind_t kind) {
    return kind == OMPX_MEM_SYMMETRIC || kind == OMPX_MEM_ASYMMETRIC;
}

/// Describes memory in a host segment; nullopt for other memory. Device memory in the arena is
/// freed by libomptarget.
std::optional<ompx_addr_info_t> find_global(const void *ptr) {
    api::runtime_access const here("omp_realloc");
    runtime::runtime *const running = here.running();
    if (running == nullptr || !running->space().in_host_segment(ptr)) {
        return std::nullopt;
    }
    return running->space().describe(ptr);
}

bool is_global(const void *ptr) {
    api::runtime_access const here("omp_free");
    runtime::runtime *const running = here.running();
    return running != nullptr && running->space().in_host_segment(ptr);
}

using contents = runtime::collective_allocator::contents;

void *allocate(const char *function, const void *site, ompx_mem_kind_t kind, std::size_t nbytes,
               std::size_t alignment, contents initial = contents::undefined) {
    void *made = nullptr;
    api::call(
        function, site,
        [&] {
            return fmt::format("nbytes={}, alignment={}, {}", nbytes, alignment, name_of(kind));
        },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(api::check_size(nbytes));
            running.channels().release_closed();
            auto allocated = running.allocator().allocate(kind, nbytes, alignment, initial);
            DIOMP_TRY(allocated);
            api::refresh_fast_view(running);
            stats = {name_of(kind), nbytes};
            made = allocated.value();
            return {};
        });
    return made;
}

int release(const char *function, const void *site, void *ptr) {
    return api::call(
        function, site, [&] { return fmt::format("ptr={}", ptr); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(running.allocator().free(ptr));
            api::refresh_fast_view(running);
            return {};
        });
}

/// count * size, or SIZE_MAX, which no allocator accepts.
std::size_t product(std::size_t count, std::size_t size) {
    std::size_t nbytes = 0;
    return __builtin_mul_overflow(count, size, &nbytes) ? SIZE_MAX : nbytes;
}

template <typename Function>
Function next(const char *name) {
    return reinterpret_cast<Function>(api::next_symbol(name));
}

/// The kind of memory that an allocation with this handle returns. omp_null_allocator stands for
/// the calling thread's default allocator, which may be one of DiOMP's.
ompx_mem_kind_t kind_to_make(allocator_handle allocator) {
    if (allocator != null_allocator) {
        return api::kind_of_allocator(allocator);
    }
    static auto *const ask = next<allocator_handle (*)()>("omp_get_default_allocator");
    return ask != nullptr ? api::kind_of_allocator(ask()) : OMPX_MEM_NONE;
}

void *forward_realloc(void *ptr, std::size_t nbytes, allocator_handle allocator,
                      allocator_handle free_allocator) {
    static auto *const forward =
        next<void *(*)(void *, size_t, allocator_handle, allocator_handle)>("omp_realloc");
    return forward != nullptr ? forward(ptr, nbytes, allocator, free_allocator)
                              : std::realloc(ptr, nbytes);
}

/// Reallocates global memory without changing its kind.
void *reallocate_in_kind(const char *function, const void *site, void *ptr, std::size_t nbytes) {
    void *made = nullptr;
    api::call(
        function, site, [&] { return fmt::format("ptr={}, nbytes={}", ptr, nbytes); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(api::check_size(nbytes));
            running.channels().release_closed();
            auto moved = running.allocator().reallocate(ptr, nbytes);
            DIOMP_TRY(moved);
            api::refresh_fast_view(running);
            stats.nbytes = nbytes;
            made = moved.value();
            return {};
        });
    return made;
}

/// Bytes to copy when a block moves to nbytes of another kind of memory. The size of OpenMP's own
/// blocks is unknown here, so OpenMP's realloc first makes them nbytes long.
std::optional<std::size_t> bytes_to_keep(void *&ptr, std::size_t nbytes,
                                         allocator_handle free_allocator) {
    if (auto const info = find_global(ptr)) {
        return std::min(nbytes, info->nbytes);
    }
    void *grown = forward_realloc(ptr, nbytes, free_allocator, free_allocator);
    if (grown == nullptr) {
        return std::nullopt;
    }
    ptr = grown;
    return nbytes;
}

} // namespace

void *diomp::api::next_symbol(const char *name) noexcept { return ::dlsym(RTLD_NEXT, name); }

namespace {

using fulfill_function = void (*)(std::uintptr_t);

fulfill_function find_fulfill() {
    static auto *const found =
        reinterpret_cast<fulfill_function>(::dlsym(RTLD_DEFAULT, "omp_fulfill_event"));
    return found;
}

} // namespace

diomp::status diomp::api::can_fulfill() {
    if (find_fulfill() == nullptr) {
        return error(OMPX_ERR_UNSUPPORTED, "the program's OpenMP has no omp_fulfill_event",
                     "use _nb and an event");
    }
    return {};
}

void diomp::api::fulfill_event(std::uintptr_t event) noexcept { find_fulfill()(event); }

extern "C" {

void *ompx_alloc(size_t nbytes, size_t alignment, ompx_mem_kind_t kind) noexcept {
    return allocate("ompx_alloc", DIOMP_SITE, kind, nbytes, alignment);
}

int ompx_free(void *ptr) noexcept { return release("ompx_free", DIOMP_SITE, ptr); }

void *ompx_realloc(void *ptr, size_t nbytes) noexcept {
    if (ptr == nullptr) {
        return allocate("ompx_realloc", DIOMP_SITE, OMPX_MEM_SYMMETRIC, nbytes, 0);
    }
    return reallocate_in_kind("ompx_realloc", DIOMP_SITE, ptr, nbytes);
}

OMPX_API_ void *omp_alloc(size_t nbytes, allocator_handle allocator) {
    if (ompx_mem_kind_t const kind = kind_to_make(allocator); kind != OMPX_MEM_NONE) {
        return allocate("omp_alloc", DIOMP_SITE, kind, nbytes, 0);
    }
    static auto *const forward = next<void *(*)(size_t, allocator_handle)>("omp_alloc");
    return forward != nullptr ? forward(nbytes, allocator) : std::malloc(nbytes);
}

OMPX_API_ void *omp_aligned_alloc(size_t alignment, size_t nbytes, allocator_handle allocator) {
    if (ompx_mem_kind_t const kind = kind_to_make(allocator); kind != OMPX_MEM_NONE) {
        return allocate("omp_aligned_alloc", DIOMP_SITE, kind, nbytes, alignment);
    }
    static auto *const forward =
        next<void *(*)(size_t, size_t, allocator_handle)>("omp_aligned_alloc");
    return forward != nullptr ? forward(alignment, nbytes, allocator)
                              : std::aligned_alloc(alignment, nbytes);
}

OMPX_API_ void *omp_calloc(size_t count, size_t size, allocator_handle allocator) {
    if (ompx_mem_kind_t const kind = kind_to_make(allocator); kind != OMPX_MEM_NONE) {
        return allocate("omp_calloc", DIOMP_SITE, kind, product(count, size), 0, contents::zero);
    }
    static auto *const forward = next<void *(*)(size_t, size_t, allocator_handle)>("omp_calloc");
    return forward != nullptr ? forward(count, size, allocator) : std::calloc(count, size);
}

OMPX_API_ void *omp_aligned_calloc(size_t alignment, size_t count, size_t size,
                                   allocator_handle allocator) {
    if (ompx_mem_kind_t const kind = kind_to_make(allocator); kind != OMPX_MEM_NONE) {
        return allocate("omp_aligned_calloc", DIOMP_SITE, kind, product(count, size), alignment,
                        contents::zero);
    }
    static auto *const forward =
        next<void *(*)(size_t, size_t, size_t, allocator_handle)>("omp_aligned_calloc");
    if (forward != nullptr) {
        return forward(alignment, count, size, allocator);
    }
    void *made = std::aligned_alloc(alignment, product(count, size));
    return made == nullptr ? nullptr : std::memset(made, 0, product(count, size));
}

OMPX_API_ void omp_free(void *ptr, allocator_handle allocator) {
    if (is_global(ptr) || (ptr != nullptr && api::kind_of_allocator(allocator) != OMPX_MEM_NONE)) {
        release("omp_free", DIOMP_SITE, ptr);
        return;
    }
    static auto *const forward = next<void (*)(void *, allocator_handle)>("omp_free");
    if (forward != nullptr) {
        forward(ptr, allocator);
    } else {
        std::free(ptr);
    }
}

OMPX_API_ void *omp_realloc(void *ptr, size_t nbytes, allocator_handle allocator,
                            allocator_handle free_allocator) {
    ompx_mem_kind_t const kind =
        ptr == nullptr ? kind_to_make(allocator) : api::kind_of_allocator(allocator);
    if (ptr == nullptr && kind != OMPX_MEM_NONE) {
        return allocate("omp_realloc", DIOMP_SITE, kind, nbytes, 0);
    }
    auto const info = find_global(ptr);
    bool freed_by_all = false; // a collective free ends after every rank has copied
    if (!info && kind == OMPX_MEM_NONE) {
        return forward_realloc(ptr, nbytes, allocator, free_allocator);
    }
    // reallocate_in_kind() also reports an address that does not start an allocation.
    if (info && (allocator == null_allocator || info->kind == kind || info->base != ptr)) {
        return reallocate_in_kind("omp_realloc", DIOMP_SITE, ptr, nbytes);
    }
    if (nbytes == 0) {
        omp_free(ptr, free_allocator);
        return nullptr;
    }
    if (info) {
        freed_by_all = is_collective(info->kind);
    }
    void *made = omp_alloc(nbytes, allocator);
    if (made == nullptr) {
        return nullptr;
    }
    auto const kept = bytes_to_keep(ptr, nbytes, free_allocator);
    if (!kept) {
        omp_free(made, allocator);
        return nullptr;
    }
    std::memcpy(made, ptr, *kept);
    if (is_collective(kind) && !freed_by_all && ompx_barrier() != OMPX_SUCCESS) {
        return nullptr;
    }
    omp_free(ptr, free_allocator);
    return made;
}

// Calls that clang emits for `#pragma omp allocate` on variables; the first argument is libomp's
// thread number.

OMPX_API_ void *__kmpc_alloc(int thread, size_t nbytes, allocator_handle allocator) {
    if (ompx_mem_kind_t const kind = kind_to_make(allocator); kind != OMPX_MEM_NONE) {
        return allocate("#pragma omp allocate", DIOMP_SITE, kind, nbytes, 0);
    }
    static auto *const forward = next<void *(*)(int, size_t, allocator_handle)>("__kmpc_alloc");
    return forward != nullptr ? forward(thread, nbytes, allocator) : std::malloc(nbytes);
}

OMPX_API_ void *__kmpc_aligned_alloc(int thread, size_t alignment, size_t nbytes,
                                     allocator_handle allocator) {
    if (ompx_mem_kind_t const kind = kind_to_make(allocator); kind != OMPX_MEM_NONE) {
        return allocate("#pragma omp allocate", DIOMP_SITE, kind, nbytes, alignment);
    }
    static auto *const forward =
        next<void *(*)(int, size_t, size_t, allocator_handle)>("__kmpc_aligned_alloc");
    return forward != nullptr ? forward(thread, alignment, nbytes, allocator)
                              : std::aligned_alloc(alignment, nbytes);
}

OMPX_API_ void __kmpc_free(int thread, void *ptr, allocator_handle allocator) {
    if (is_global(ptr)) {
        release("#pragma omp allocate (end of scope)", DIOMP_SITE, ptr);
        return;
    }
    static auto *const forward = next<void (*)(int, void *, allocator_handle)>("__kmpc_free");
    if (forward != nullptr) {
        forward(thread, ptr, allocator);
    } else {
        std::free(ptr);
    }
}

} // extern "C"
