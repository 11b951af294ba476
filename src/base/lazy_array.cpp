// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/lazy_array.h"

#include "base/sanitizer.h"

#include <new>
#include <sys/mman.h>

namespace diomp {

void *map_zeroed(std::size_t nbytes) {
    void *const mapped = ::mmap(nullptr, nbytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) {
        throw std::bad_alloc();
    }
    lsan_register_roots(mapped, nbytes);
    return mapped;
}

void unmap_zeroed(void *begin, std::size_t nbytes) {
    lsan_unregister_roots(begin, nbytes);
    ::munmap(begin, nbytes);
}

} // namespace diomp
