// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The sanitizer that the code is compiled for, and annotations for what it cannot see.
#pragma once

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

namespace diomp {

/// True also if only the program is compiled for ThreadSanitizer.
#if DIOMP_THREAD_SANITIZER
constexpr bool has_thread_sanitizer() { return true; }
#else
inline bool has_thread_sanitizer() { return &__tsan_acquire != nullptr; }
#endif

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
