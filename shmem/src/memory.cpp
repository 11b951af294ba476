// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The symmetric heap.
#include "library.h"
#include "shmem/library.h"

#include <cstring>

using namespace diomp_shmem;

namespace {

void barrier(const char *function) { check(function, ompx_barrier_group(ompx_group_world)); }

/// Collective. NULL for a size of 0.
void *allocate(const char *function, std::size_t alignment, std::size_t nbytes, bool is_zero) {
    require_ready(function);
    if (nbytes == 0) {
        return nullptr;
    }
    void *block = nullptr;
    {
        returned_errors const errors;
        block = ompx_alloc(nbytes, alignment, OMPX_MEM_SYMMETRIC);
    }
    if (block != nullptr && is_zero) {
        std::memset(block, 0, nbytes);
    }
    barrier(function);
    return block;
}

void release(const char *function, void *block) {
    require_ready(function);
    if (block != nullptr) {
        barrier(function);
        check(function, ompx_free(block));
    }
}

bool is_power_of_two(std::size_t value) { return value != 0 && (value & (value - 1)) == 0; }

} // namespace

extern "C" {

void *shmem_malloc(size_t size) { return allocate(__func__, 0, size, false); }

void *shmem_malloc_with_hints(size_t size, long) { return allocate(__func__, 0, size, false); }

void *shmem_calloc(size_t count, size_t size) {
    size_t nbytes = 0;
    return __builtin_mul_overflow(count, size, &nbytes) ? nullptr
                                                        : allocate(__func__, 0, nbytes, true);
}

void *shmem_align(size_t alignment, size_t size) {
    if (!is_power_of_two(alignment)) {
        return nullptr;
    }
    return allocate(__func__, alignment, size, false);
}

void *shmem_realloc(void *ptr, size_t size) {
    if (ptr == nullptr) {
        return allocate(__func__, 0, size, false);
    }
    if (size == 0) {
        release(__func__, ptr);
        return nullptr;
    }
    require_ready(__func__);
    barrier(__func__);
    void *block = nullptr;
    {
        returned_errors const errors;
        block = ompx_realloc(ptr, size);
    }
    barrier(__func__);
    return block;
}

void shmem_free(void *ptr) { release(__func__, ptr); }

void *shmalloc(size_t size) { return shmem_malloc(size); }
void *shmemalign(size_t alignment, size_t size) { return shmem_align(alignment, size); }
void *shrealloc(void *ptr, size_t size) { return shmem_realloc(ptr, size); }
void shfree(void *ptr) { shmem_free(ptr); }

void shmem_clear_cache_inv(void) {}
void shmem_set_cache_inv(void) {}
void shmem_clear_cache_line_inv(void *) {}
void shmem_set_cache_line_inv(void *) {}
void shmem_udcflush(void) {}
void shmem_udcflush_line(void *) {}

} // extern "C"
