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
