// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The sanitizer that the code is compiled for, and annotations for what it cannot see.
#pragma once

#include <cstddef>
#include <cstdint>

// gcc has a macro, clang a feature test that gcc 12 does not support.
#if defined(__SANITIZE_THREAD__)
#define DIOMP_THREAD_SANITIZER 1
#elif defined(__SANITIZE_ADDRESS__)
#define DIOMP_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define DIOMP_THREAD_SANITIZER 1
#elif __has_feature(address_sanitizer)
#define DIOMP_ADDRESS_SANITIZER 1
#endif
#endif
#ifndef DIOMP_THREAD_SANITIZER
#define DIOMP_THREAD_SANITIZER 0
#endif
#ifndef DIOMP_ADDRESS_SANITIZER
#define DIOMP_ADDRESS_SANITIZER 0
#endif

#if DIOMP_THREAD_SANITIZER
extern "C" void __tsan_acquire(void *address);
extern "C" void __tsan_release(void *address);
#else
// NOLINTNEXTLINE(readability-identifier-naming): the name is theirs
extern "C" void __tsan_acquire(void *address) __attribute__((weak));
#endif

// Defined in programs that are compiled with -fsanitize=address, also if the library is not.
// NOLINTBEGIN(readability-identifier-naming): the names are theirs
extern "C" {
void __asan_poison_memory_region(const volatile void *begin, std::size_t nbytes)
    __attribute__((weak));
void __asan_unpoison_memory_region(const volatile void *begin, std::size_t nbytes)
    __attribute__((weak));
void __asan_loadN(std::uintptr_t begin, std::uintptr_t nbytes) __attribute__((weak));
void __asan_storeN(std::uintptr_t begin, std::uintptr_t nbytes) __attribute__((weak));
void __lsan_register_root_region(const void *begin, std::size_t nbytes) __attribute__((weak));
void __lsan_unregister_root_region(const void *begin, std::size_t nbytes) __attribute__((weak));
}
// NOLINTEND(readability-identifier-naming)

namespace diomp {

/// True also if only the program is compiled for ThreadSanitizer.
#if DIOMP_THREAD_SANITIZER
constexpr bool has_thread_sanitizer() { return true; }
#else
inline bool has_thread_sanitizer() { return &__tsan_acquire != nullptr; }
#endif

/// True if the program is compiled for AddressSanitizer and this library is not. The library's own
/// copies may pass from one block of a segment to another, which would be reported.
inline bool has_address_sanitizer() {
    return !DIOMP_ADDRESS_SANITIZER && &__asan_poison_memory_region != nullptr &&
           &__asan_unpoison_memory_region != nullptr;
}

/// Reports, as an access of the program would, if a byte that the library reads for it (a source)
/// or writes for it (a destination) is not addressable. The library's own copies are not checked.
inline void asan_check_load(const void *begin, std::size_t nbytes) {
    if (!DIOMP_ADDRESS_SANITIZER && &__asan_loadN != nullptr && begin != nullptr && nbytes != 0) {
        __asan_loadN(reinterpret_cast<std::uintptr_t>(begin), nbytes);
    }
}
inline void asan_check_store(const void *begin, std::size_t nbytes) {
    if (!DIOMP_ADDRESS_SANITIZER && &__asan_storeN != nullptr && begin != nullptr && nbytes != 0) {
        __asan_storeN(reinterpret_cast<std::uintptr_t>(begin), nbytes);
    }
}

/// LeakSanitizer does not look for pointers in mapped memory by itself.
inline void lsan_register_roots(const void *begin, std::size_t nbytes) {
    if (&__lsan_register_root_region != nullptr) {
        __lsan_register_root_region(begin, nbytes);
    }
}
inline void lsan_unregister_roots(const void *begin, std::size_t nbytes) {
    if (&__lsan_unregister_root_region != nullptr) {
        __lsan_unregister_root_region(begin, nbytes);
    }
}

// ThreadSanitizer sees one process only. If a thread writes, synchronises with another rank, and a
// message of that rank makes a second thread of this process read, the order went through the other
// process. Each operation that leaves the process releases, each that enters it acquires. No effect
// in other builds.
#if DIOMP_THREAD_SANITIZER
inline char external_sync;
inline void tsan_release_external() { __tsan_release(&external_sync); }
inline void tsan_acquire_external() { __tsan_acquire(&external_sync); }
#else
inline void tsan_release_external() {}
inline void tsan_acquire_external() {}
#endif

} // namespace diomp
