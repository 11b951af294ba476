// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/cpu_features.h"

// The C library has asked the processor before any of our code runs. In a virtual machine each
// question (cpuid) takes some ten microseconds, and the compilers' own test asks several when the
// library is loaded.
#if !defined(__x86_64__)
#define DIOMP_HAS(builtin_name, field) false
#elif __has_include(<sys/platform/x86.h>) // glibc 2.33
#include <stdbool.h> // NOLINT(modernize-deprecated-headers): the next one uses _Bool
#include <sys/platform/x86.h>
#define DIOMP_HAS(builtin_name, field) (x86_cpu_active(x86_cpu_##field) != 0)
#define DIOMP_HAS_ERMS (x86_cpu_present(x86_cpu_ERMS) != 0)
#else
#include <cpuid.h>
#define DIOMP_HAS(builtin_name, field) (__builtin_cpu_supports(builtin_name) != 0)
#endif

namespace diomp {
namespace {

bool has_fast_string_copy() {
#if !defined(__x86_64__)
    return false;
#elif defined(DIOMP_HAS_ERMS)
    return DIOMP_HAS_ERMS;
#else
    constexpr unsigned leaf = 7;
    constexpr unsigned erms = 1U << 9;
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    return __get_cpuid_count(leaf, 0, &a, &b, &c, &d) != 0 && (b & erms) != 0;
#endif
}

} // namespace

bool has_cpu_feature(cpu_feature which) {
#if defined(__x86_64__) && !__has_include(<sys/platform/x86.h>)
    __builtin_cpu_init();
#endif
    switch (which) {
    case cpu_feature::avx2:
        return DIOMP_HAS("avx2", AVX2);
    case cpu_feature::avx512f:
        return DIOMP_HAS("avx512f", AVX512F);
    case cpu_feature::avx512vl:
        return DIOMP_HAS("avx512vl", AVX512VL);
    case cpu_feature::fast_string_copy:
        return has_fast_string_copy();
    }
    return false;
}

} // namespace diomp
