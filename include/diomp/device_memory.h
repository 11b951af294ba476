/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/device_memory.h
 * Loads, stores, atomics, fences and the clock of a GPU, for memory that other processors and GPUs
 * access meanwhile. Not an interface for programs.
 *
 * NVIDIA: inline PTX with system scope. Clang 19 has no correct translation of C11's orders there
 * (its backend fails on acquire and release, and atomics get the scope of the GPU). AMD: C11's
 * atomics, whose default scope is the system. The same code serves processors, for the tests.
 */
#ifndef DIOMP_DEVICE_MEMORY_H
#define DIOMP_DEVICE_MEMORY_H

#include <stdint.h>
#if !defined(__NVPTX__) && !defined(__AMDGCN__)
#include <sched.h>
#include <time.h>
#endif

/* C that the runtime's kernels include as C++, with names that users must not take. */
/* NOLINTBEGIN(*-identifier-naming,*-macro-parentheses,*-init-variables) */
#define DIOMP_ON_DEVICE_ static inline __attribute__((always_inline, unused))

typedef uint64_t diomp_u64_ __attribute__((may_alias));
typedef uint32_t diomp_u32_ __attribute__((may_alias));
typedef uint16_t diomp_u16_ __attribute__((may_alias));
typedef uint8_t diomp_u8_ __attribute__((may_alias));

#if defined(__NVPTX__)

DIOMP_ON_DEVICE_ uint64_t diomp_acquire_64(const void *from) {
    uint64_t value;
    __asm__ volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
    return value;
}
DIOMP_ON_DEVICE_ uint32_t diomp_acquire_32(const void *from) {
    uint32_t value;
    __asm__ volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
}
DIOMP_ON_DEVICE_ void diomp_release_64(void *to, uint64_t value) {
    __asm__ volatile("st.release.sys.u64 [%0], %1;" : : "l"(to), "l"(value) : "memory");
}
/** Of memory that only this device writes. */
DIOMP_ON_DEVICE_ uint64_t diomp_relaxed_64(const void *from) {
    uint64_t value;
    __asm__ volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
    return value;
}
DIOMP_ON_DEVICE_ void diomp_set_relaxed_64(void *to, uint64_t value) {
    __asm__ volatile("st.relaxed.gpu.u64 [%0], %1;" : : "l"(to), "l"(value) : "memory");
}
/** Two words, aligned to 16 bytes, that the host reads: each is whole, their order is not given. */
DIOMP_ON_DEVICE_ void diomp_publish_128(void *to, uint64_t first, uint64_t second) {
    __asm__ volatile("st.relaxed.sys.v2.u64 [%0], {%1, %2};"
                     :
                     : "l"(to), "l"(first), "l"(second)
                     : "memory");
}
/** Adds in memory that only this device writes; returns the old value. */
DIOMP_ON_DEVICE_ uint64_t diomp_reserve_64(void *at, uint64_t count) {
    uint64_t old;
    __asm__ volatile("atom.relaxed.gpu.add.u64 %0, [%1], %2;"
                     : "=l"(old)
                     : "l"(at), "l"(count)
                     : "memory");
    return old;
}
/** Lets other threads of a processor run. */
DIOMP_ON_DEVICE_ void diomp_yield(void) {}
/** The number of the thread's team among those of the region; on processors, of the thread. */
DIOMP_ON_DEVICE_ uint32_t diomp_team_number(void) {
    return (uint32_t)__nvvm_read_ptx_sreg_ctaid_x();
}
/** Orders all earlier accesses of this thread before all later ones, for the whole system. */
DIOMP_ON_DEVICE_ void diomp_fence_system(void) { __asm__ volatile("fence.sc.sys;" : : : "memory"); }
DIOMP_ON_DEVICE_ uint64_t diomp_clock_ns(void) {
    uint64_t now;
    __asm__ volatile("mov.u64 %0, %%globaltimer;" : "=l"(now) : : "memory");
    return now;
}
/** Compare and swap in memory that only this device writes; returns the old value. */
DIOMP_ON_DEVICE_ uint64_t diomp_claim_64(void *at, uint64_t expected, uint64_t desired) {
    uint64_t old;
    __asm__ volatile("atom.relaxed.gpu.cas.b64 %0, [%1], %2, %3;"
                     : "=l"(old)
                     : "l"(at), "l"(expected), "l"(desired)
                     : "memory");
    return old;
}

/* An atomic with system scope; returns the old value. Without a use of it the assembler makes a
 * reduction, which does not wait. */
#define DIOMP_DEVICE_ATOMIC_(name, type, operation, constraint)                                    \
    DIOMP_ON_DEVICE_ type diomp_fetch_##name(void *at, type operand) {                             \
        type old;                                                                                  \
        __asm__ volatile("atom.relaxed.sys." operation " %0, [%1], %2;"                            \
                         : "=" constraint(old)                                                     \
                         : "l"(at), constraint(operand)                                            \
                         : "memory");                                                              \
        return old;                                                                                \
    }
DIOMP_DEVICE_ATOMIC_(add_u32, uint32_t, "add.u32", "r")
DIOMP_DEVICE_ATOMIC_(add_u64, uint64_t, "add.u64", "l")
DIOMP_DEVICE_ATOMIC_(add_f32, float, "add.f32", "f")
DIOMP_DEVICE_ATOMIC_(add_f64, double, "add.f64", "d")
DIOMP_DEVICE_ATOMIC_(min_s32, int32_t, "min.s32", "r")
DIOMP_DEVICE_ATOMIC_(min_u32, uint32_t, "min.u32", "r")
DIOMP_DEVICE_ATOMIC_(min_s64, int64_t, "min.s64", "l")
DIOMP_DEVICE_ATOMIC_(min_u64, uint64_t, "min.u64", "l")
DIOMP_DEVICE_ATOMIC_(max_s32, int32_t, "max.s32", "r")
DIOMP_DEVICE_ATOMIC_(max_u32, uint32_t, "max.u32", "r")
DIOMP_DEVICE_ATOMIC_(max_s64, int64_t, "max.s64", "l")
DIOMP_DEVICE_ATOMIC_(max_u64, uint64_t, "max.u64", "l")
DIOMP_DEVICE_ATOMIC_(and_u32, uint32_t, "and.b32", "r")
DIOMP_DEVICE_ATOMIC_(and_u64, uint64_t, "and.b64", "l")
DIOMP_DEVICE_ATOMIC_(or_u32, uint32_t, "or.b32", "r")
DIOMP_DEVICE_ATOMIC_(or_u64, uint64_t, "or.b64", "l")
DIOMP_DEVICE_ATOMIC_(xor_u32, uint32_t, "xor.b32", "r")
DIOMP_DEVICE_ATOMIC_(xor_u64, uint64_t, "xor.b64", "l")
DIOMP_DEVICE_ATOMIC_(swap_u32, uint32_t, "exch.b32", "r")
DIOMP_DEVICE_ATOMIC_(swap_u64, uint64_t, "exch.b64", "l")
#undef DIOMP_DEVICE_ATOMIC_

#define DIOMP_DEVICE_CAS_(name, type, width, constraint)                                           \
    DIOMP_ON_DEVICE_ type diomp_cas_##name(void *at, type expected, type desired) {                \
        type old;                                                                                  \
        __asm__ volatile("atom.relaxed.sys.cas." width " %0, [%1], %2, %3;"                        \
                         : "=" constraint(old)                                                     \
                         : "l"(at), constraint(expected), constraint(desired)                      \
                         : "memory");                                                              \
        return old;                                                                                \
    }
DIOMP_DEVICE_CAS_(u32, uint32_t, "b32", "r")
DIOMP_DEVICE_CAS_(u64, uint64_t, "b64", "l")
#undef DIOMP_DEVICE_CAS_

#else /* AMD's GPUs and processors */

DIOMP_ON_DEVICE_ uint64_t diomp_acquire_64(const void *from) {
    return __atomic_load_n((const diomp_u64_ *)from, __ATOMIC_ACQUIRE);
}
DIOMP_ON_DEVICE_ uint32_t diomp_acquire_32(const void *from) {
    return __atomic_load_n((const diomp_u32_ *)from, __ATOMIC_ACQUIRE);
}
DIOMP_ON_DEVICE_ void diomp_release_64(void *to, uint64_t value) {
    __atomic_store_n((diomp_u64_ *)to, value, __ATOMIC_RELEASE);
}
/** Of memory that only this device writes. */
DIOMP_ON_DEVICE_ uint64_t diomp_relaxed_64(const void *from) {
    return __atomic_load_n((const diomp_u64_ *)from, __ATOMIC_RELAXED);
}
DIOMP_ON_DEVICE_ void diomp_set_relaxed_64(void *to, uint64_t value) {
    __atomic_store_n((diomp_u64_ *)to, value, __ATOMIC_RELAXED);
}
/** Two words, aligned to 16 bytes, that the host reads: each is whole, their order is not given. */
DIOMP_ON_DEVICE_ void diomp_publish_128(void *to, uint64_t first, uint64_t second) {
    /* Released, which costs nothing on x86, so that sanitizers see the order too. */
    __atomic_store_n((diomp_u64_ *)to, first, __ATOMIC_RELEASE);
    __atomic_store_n((diomp_u64_ *)to + 1, second, __ATOMIC_RELEASE);
}
/** Adds in memory that only this device writes; returns the old value. */
DIOMP_ON_DEVICE_ uint64_t diomp_reserve_64(void *at, uint64_t count) {
    return __atomic_fetch_add((diomp_u64_ *)at, count, __ATOMIC_RELAXED);
}
/** Lets other threads of a processor run. */
DIOMP_ON_DEVICE_ void diomp_yield(void) {
#if !defined(__AMDGCN__)
    sched_yield();
#endif
}
/** The number of the thread's team among those of the region; on processors, of the thread. */
DIOMP_ON_DEVICE_ uint32_t diomp_team_number(void) {
#if defined(__AMDGCN__)
    return (uint32_t)__builtin_amdgcn_workgroup_id_x();
#else
    /* Control blocks of threads lie some pages apart. */
    return (uint32_t)((uintptr_t)__builtin_thread_pointer() >> 12);
#endif
}
/** Orders all earlier accesses of this thread before all later ones, for the whole system. */
DIOMP_ON_DEVICE_ void diomp_fence_system(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
DIOMP_ON_DEVICE_ uint64_t diomp_clock_ns(void) {
#if defined(__AMDGCN__)
    return __builtin_amdgcn_s_memrealtime() * 10; /* 100 MHz */
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

#define DIOMP_DEVICE_CAS_(name, type, cell)                                                        \
    DIOMP_ON_DEVICE_ type diomp_cas_##name(void *at, type expected, type desired) {                \
        __atomic_compare_exchange_n((cell *)at, &expected, desired, 0, __ATOMIC_RELAXED,           \
                                    __ATOMIC_RELAXED);                                             \
        return expected;                                                                           \
    }
DIOMP_DEVICE_CAS_(u32, uint32_t, diomp_u32_)
DIOMP_DEVICE_CAS_(u64, uint64_t, diomp_u64_)
#undef DIOMP_DEVICE_CAS_
/** Compare and swap in memory that only this device writes; returns the old value. */
DIOMP_ON_DEVICE_ uint64_t diomp_claim_64(void *at, uint64_t expected, uint64_t desired) {
    return diomp_cas_u64(at, expected, desired);
}

/* An atomic with system scope; returns the old value. */
#define DIOMP_DEVICE_ATOMIC_(name, type, cell, function)                                           \
    DIOMP_ON_DEVICE_ type diomp_fetch_##name(void *at, type operand) {                             \
        return function((cell *)at, operand, __ATOMIC_RELAXED);                                    \
    }
DIOMP_DEVICE_ATOMIC_(add_u32, uint32_t, diomp_u32_, __atomic_fetch_add)
DIOMP_DEVICE_ATOMIC_(add_u64, uint64_t, diomp_u64_, __atomic_fetch_add)
DIOMP_DEVICE_ATOMIC_(and_u32, uint32_t, diomp_u32_, __atomic_fetch_and)
DIOMP_DEVICE_ATOMIC_(and_u64, uint64_t, diomp_u64_, __atomic_fetch_and)
DIOMP_DEVICE_ATOMIC_(or_u32, uint32_t, diomp_u32_, __atomic_fetch_or)
DIOMP_DEVICE_ATOMIC_(or_u64, uint64_t, diomp_u64_, __atomic_fetch_or)
DIOMP_DEVICE_ATOMIC_(xor_u32, uint32_t, diomp_u32_, __atomic_fetch_xor)
DIOMP_DEVICE_ATOMIC_(xor_u64, uint64_t, diomp_u64_, __atomic_fetch_xor)
DIOMP_DEVICE_ATOMIC_(swap_u32, uint32_t, diomp_u32_, __atomic_exchange_n)
DIOMP_DEVICE_ATOMIC_(swap_u64, uint64_t, diomp_u64_, __atomic_exchange_n)
#undef DIOMP_DEVICE_ATOMIC_

/* By compare and swap: hardware that adds floating-point numbers may do nothing on some memory. */
#define DIOMP_DEVICE_LOOP_(name, type, bits, width, expression)                                    \
    DIOMP_ON_DEVICE_ type diomp_fetch_##name(void *at, type operand) {                             \
        for (;;) {                                                                                 \
            bits const before = __atomic_load_n((const diomp_##width##_ *)at, __ATOMIC_RELAXED);   \
            type old;                                                                              \
            type made;                                                                             \
            bits after;                                                                            \
            __builtin_memcpy(&old, &before, sizeof(old));                                          \
            made = (expression);                                                                   \
            __builtin_memcpy(&after, &made, sizeof(after));                                        \
            if (diomp_cas_##width(at, before, after) == before) {                                  \
                return old;                                                                        \
            }                                                                                      \
        }                                                                                          \
    }
DIOMP_DEVICE_LOOP_(add_f32, float, uint32_t, u32, old + operand)
DIOMP_DEVICE_LOOP_(add_f64, double, uint64_t, u64, old + operand)
DIOMP_DEVICE_LOOP_(min_s32, int32_t, uint32_t, u32, operand < old ? operand : old)
DIOMP_DEVICE_LOOP_(min_u32, uint32_t, uint32_t, u32, operand < old ? operand : old)
DIOMP_DEVICE_LOOP_(min_s64, int64_t, uint64_t, u64, operand < old ? operand : old)
DIOMP_DEVICE_LOOP_(min_u64, uint64_t, uint64_t, u64, operand < old ? operand : old)
DIOMP_DEVICE_LOOP_(max_s32, int32_t, uint32_t, u32, operand > old ? operand : old)
DIOMP_DEVICE_LOOP_(max_u32, uint32_t, uint32_t, u32, operand > old ? operand : old)
DIOMP_DEVICE_LOOP_(max_s64, int64_t, uint64_t, u64, operand > old ? operand : old)
DIOMP_DEVICE_LOOP_(max_u64, uint64_t, uint64_t, u64, operand > old ? operand : old)
#undef DIOMP_DEVICE_LOOP_

#endif

/*
 * Minimum and maximum of IEEE 754-2019, 9.6, as the host's atomics have them: the quiet NaN if an
 * operand is a NaN, and -0 less than 0. By compare and swap.
 */
#define DIOMP_DEVICE_EXTREME_(name, type, bits, width, quiet_nan, keeps_old)                       \
    DIOMP_ON_DEVICE_ type diomp_fetch_##name(void *at, type operand) {                             \
        bits before = diomp_cas_##width(at, 0, 0);                                                 \
        for (;;) {                                                                                 \
            type old;                                                                              \
            bits new_bits;                                                                         \
            bits after;                                                                            \
            bits seen;                                                                             \
            __builtin_memcpy(&old, &before, sizeof(old));                                          \
            __builtin_memcpy(&new_bits, &operand, sizeof(new_bits));                               \
            after = old != old || operand != operand ? (quiet_nan)                                 \
                    : (keeps_old)                    ? before                                      \
                                                     : new_bits;                                                      \
            seen = diomp_cas_##width(at, before, after);                                           \
            if (seen == before) {                                                                  \
                return old;                                                                        \
            }                                                                                      \
            before = seen;                                                                         \
        }                                                                                          \
    }
DIOMP_DEVICE_EXTREME_(min_f32, float, uint32_t, u32, 0x7fc00000u,
                      old < operand || (old == operand && before > new_bits))
DIOMP_DEVICE_EXTREME_(max_f32, float, uint32_t, u32, 0x7fc00000u,
                      old > operand || (old == operand && before < new_bits))
DIOMP_DEVICE_EXTREME_(min_f64, double, uint64_t, u64, 0x7ff8000000000000u,
                      old < operand || (old == operand && before > new_bits))
DIOMP_DEVICE_EXTREME_(max_f64, double, uint64_t, u64, 0x7ff8000000000000u,
                      old > operand || (old == operand && before < new_bits))
#undef DIOMP_DEVICE_EXTREME_

/* ---- Copies ---- */

typedef uint64_t diomp_u128_ __attribute__((vector_size(16), may_alias));

/* Element by element, thread `index` of `count`; four loads before the first store. */
#define DIOMP_DEVICE_COPY_(name, type)                                                             \
    DIOMP_ON_DEVICE_ void diomp_copy_##name(type *to, const type *from, uint64_t num,              \
                                            uint64_t index, uint64_t count) {                      \
        uint64_t i = index;                                                                        \
        for (; i + 3 * count < num; i += 4 * count) {                                              \
            type const a = from[i];                                                                \
            type const b = from[i + count];                                                        \
            type const c = from[i + 2 * count];                                                    \
            type const d = from[i + 3 * count];                                                    \
            to[i] = a;                                                                             \
            to[i + count] = b;                                                                     \
            to[i + 2 * count] = c;                                                                 \
            to[i + 3 * count] = d;                                                                 \
        }                                                                                          \
        for (; i < num; i += count) {                                                              \
            to[i] = from[i];                                                                       \
        }                                                                                          \
    }
DIOMP_DEVICE_COPY_(u8, diomp_u8_)
DIOMP_DEVICE_COPY_(u32, diomp_u32_)
DIOMP_DEVICE_COPY_(u64, diomp_u64_)
DIOMP_DEVICE_COPY_(u128, diomp_u128_)
#undef DIOMP_DEVICE_COPY_

/** One access if nbytes is 1, 2, 4 or 8 and both sides are aligned to it; otherwise 0. */
DIOMP_ON_DEVICE_ int diomp_copy_word(void *to, const void *from, uint64_t nbytes) {
    if (nbytes > 8 || (((uintptr_t)to | (uintptr_t)from) & (nbytes - 1)) != 0) {
        return 0;
    }
    switch (nbytes) {
    case 1:
        *(volatile diomp_u8_ *)to = *(const volatile diomp_u8_ *)from;
        return 1;
    case 2:
        *(volatile diomp_u16_ *)to = *(const volatile diomp_u16_ *)from;
        return 1;
    case 4:
        *(volatile diomp_u32_ *)to = *(const volatile diomp_u32_ *)from;
        return 1;
    case 8:
        *(volatile diomp_u64_ *)to = *(const volatile diomp_u64_ *)from;
        return 1;
    default:
        return 0;
    }
}

/** Copies the part of thread `index` of `count` threads; the ranges do not overlap. Units as wide
 * as the alignment of both sides against each other allows. */
static __attribute__((unused, noinline)) void
diomp_copy(void *to, const void *from, uint64_t nbytes, uint64_t index, uint64_t count) {
    uint64_t const skew = (uintptr_t)to - (uintptr_t)from;
    uint64_t const unit = (skew & 15) == 0 ? 16 : (skew & 7) == 0 ? 8 : (skew & 3) == 0 ? 4 : 1;
    uint64_t head = (0 - (uint64_t)(uintptr_t)to) & (unit - 1);
    uint64_t middle;
    char *const target = (char *)to;
    const char *const source = (const char *)from;
    head = head < nbytes ? head : nbytes;
    middle = (nbytes - head) / unit;
    diomp_copy_u8((diomp_u8_ *)target, (const diomp_u8_ *)source, head, index, count);
    switch (unit) {
    case 16:
        diomp_copy_u128((diomp_u128_ *)(target + head), (const diomp_u128_ *)(source + head),
                        middle, index, count);
        break;
    case 8:
        diomp_copy_u64((diomp_u64_ *)(target + head), (const diomp_u64_ *)(source + head), middle,
                       index, count);
        break;
    case 4:
        diomp_copy_u32((diomp_u32_ *)(target + head), (const diomp_u32_ *)(source + head), middle,
                       index, count);
        break;
    default:
        diomp_copy_u8((diomp_u8_ *)(target + head), (const diomp_u8_ *)(source + head), middle,
                      index, count);
    }
    head += middle * unit;
    diomp_copy_u8((diomp_u8_ *)(target + head), (const diomp_u8_ *)(source + head), nbytes - head,
                  index, count);
}

/* NOLINTEND(*-identifier-naming,*-macro-parentheses,*-init-variables) */

#endif /* DIOMP_DEVICE_MEMORY_H */
