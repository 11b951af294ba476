// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether a sanitizer watches, which makes everything several times slower.
#pragma once

#if defined(__has_feature)
#define DIOMP_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DIOMP_SANITIZED 1
#else
#define DIOMP_SANITIZED 0
#endif

// Functions between these two are not instrumented: those that compute, element by element and in
// memory of their own, what a test sends and expects.
#if defined(__clang__)
// clang-format off: the operand is one literal
#define DIOMP_NOT_INSTRUMENTED_BEGIN \
    _Pragma("clang attribute push(__attribute__((no_sanitize(\"thread\", \"address\"))), apply_to = function)")
// clang-format on
#define DIOMP_NOT_INSTRUMENTED_END _Pragma("clang attribute pop")
#else
#define DIOMP_NOT_INSTRUMENTED_BEGIN
#define DIOMP_NOT_INSTRUMENTED_END
#endif
