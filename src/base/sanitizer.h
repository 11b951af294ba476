// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which sanitizer this is compiled for, and what it cannot see by itself.
#pragma once

// gcc says it with a macro, clang with a feature test that gcc 12 does not know.
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

/// Also where only the program is compiled for it.
#if DIOMP_THREAD_SANITIZER
constexpr bool has_thread_sanitizer() { return true; }
#else
inline bool has_thread_sanitizer() { return &__tsan_acquire != nullptr; }
#endif

// The thread sanitizer knows one process. If a thread writes, meets another rank, and that rank's
// message makes a second thread of this process read, the order went through the other process.
// Whatever leads out of the process releases, whatever comes in acquires. Nothing in other builds.
#if DIOMP_THREAD_SANITIZER
inline char outside_world;
inline void order_going_out() { __tsan_release(&outside_world); }
inline void order_coming_in() { __tsan_acquire(&outside_world); }
#else
inline void order_going_out() {}
inline void order_coming_in() {}
#endif

} // namespace diomp
