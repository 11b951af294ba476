/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file shmem/generic.h
 * The generic forms of C11: one name for all types, with or without a context. Part of shmem.h.
 */
#ifndef SHMEM_GENERIC_H
#define SHMEM_GENERIC_H

#include "types.h"

/* Selections by the type of a pointer, which may be qualified. X(type, function) for each type. */
#define SHMEM_TO_(type, function)                                                                  \
    type * : function, const type * : function, volatile type * : function

/* What a call with a type that the function does not have finds: a call of it does not compile. */
typedef struct shmem_type_without_this_function_ {
    int none;
} shmem_type_without_this_function_;
#define SHMEM_NONE_ ((shmem_type_without_this_function_){0})

#define SHMEM_FIRST_(first, ...) first
#define SHMEM_SECOND_(first, second, ...) second

/* The first argument is a context, or it is the pointer. */
#define SHMEM_BY_FIRST_(types, name, ...)                                                          \
    _Generic(SHMEM_FIRST_(__VA_ARGS__, 0),                                                         \
        shmem_ctx_t: _Generic(SHMEM_SECOND_(__VA_ARGS__, 0),                                       \
            types(SHMEM_TO_, shmem_ctx_, name),                                                    \
            default: SHMEM_NONE_),                                                                 \
        types(SHMEM_TO_, shmem_, name),                                                            \
        default: SHMEM_NONE_)(__VA_ARGS__)
/* The pointer is the first, or the second argument. */
#define SHMEM_BY_POINTER_(types, name, ...)                                                        \
    _Generic(SHMEM_FIRST_(__VA_ARGS__, 0), types(SHMEM_TO_, shmem_, name), default: SHMEM_NONE_)(  \
        __VA_ARGS__)
#define SHMEM_BY_SECOND_(types, name, ...)                                                         \
    _Generic(SHMEM_SECOND_(__VA_ARGS__, 0), types(SHMEM_TO_, shmem_, name), default: SHMEM_NONE_)( \
        __VA_ARGS__)
/* Types of transfers, collectives, minimum and maximum. */
#define SHMEM_ALL_(X, before, after)                                                               \
    X(float, before##float##after), X(double, before##double##after),                              \
        X(long double, before##longdouble##after), X(char, before##char##after),                   \
        X(signed char, before##schar##after), X(short, before##short##after),                      \
        X(int, before##int##after), X(long, before##long##after),                                  \
        X(long long, before##longlong##after), X(unsigned char, before##uchar##after),             \
        X(unsigned short, before##ushort##after), X(unsigned int, before##uint##after),            \
        X(unsigned long, before##ulong##after), X(unsigned long long, before##ulonglong##after)
/* Types of atomics: standard, extended, bitwise. */
#define SHMEM_AMOS_(X, before, after)                                                              \
    X(int, before##int##after), X(long, before##long##after),                                      \
        X(long long, before##longlong##after), X(unsigned int, before##uint##after),               \
        X(unsigned long, before##ulong##after), X(unsigned long long, before##ulonglong##after)
#define SHMEM_EXTENDED_(X, before, after)                                                          \
    X(int, before##int##after), X(long, before##long##after),                                      \
        X(long long, before##longlong##after), X(unsigned int, before##uint##after),               \
        X(unsigned long, before##ulong##after), X(unsigned long long, before##ulonglong##after),   \
        X(float, before##float##after), X(double, before##double##after)
#define SHMEM_BITWISE_(X, before, after)                                                           \
    X(unsigned int, before##uint##after), X(unsigned long, before##ulong##after),                  \
        X(unsigned long long, before##ulonglong##after), X(int32_t, before##int32##after),         \
        X(int64_t, before##int64##after)
/* Types of waits. */
#define SHMEM_WAITS_(X, before, after)                                                             \
    X(short, before##short##after), X(unsigned short, before##ushort##after),                      \
        X(int, before##int##after), X(long, before##long##after),                                  \
        X(long long, before##longlong##after), X(unsigned int, before##uint##after),               \
        X(unsigned long, before##ulong##after), X(unsigned long long, before##ulonglong##after)
/* Types of reductions: bitwise, sum and product. */
#define SHMEM_BITS_(X, before, after)                                                              \
    X(unsigned char, before##uchar##after), X(unsigned short, before##ushort##after),              \
        X(unsigned int, before##uint##after), X(unsigned long, before##ulong##after),              \
        X(unsigned long long, before##ulonglong##after), X(int8_t, before##int8##after),           \
        X(int16_t, before##int16##after), X(int32_t, before##int32##after),                        \
        X(int64_t, before##int64##after)
#define SHMEM_SUMS_(X, before, after)                                                              \
    X(float, before##float##after), X(double, before##double##after),                              \
        X(long double, before##longdouble##after), X(char, before##char##after),                   \
        X(signed char, before##schar##after), X(short, before##short##after),                      \
        X(int, before##int##after), X(long, before##long##after),                                  \
        X(long long, before##longlong##after), X(unsigned char, before##uchar##after),             \
        X(unsigned short, before##ushort##after), X(unsigned int, before##uint##after),            \
        X(unsigned long, before##ulong##after), X(unsigned long long, before##ulonglong##after),   \
        X(float _Complex, before##complexf##after), X(double _Complex, before##complexd##after)
/* Types of deprecated functions. */
#define SHMEM_OLD_AMOS_(X, before, after)                                                          \
    X(int, before##int##after), X(long, before##long##after), X(long long, before##longlong##after)
#define SHMEM_OLD_EXTENDED_(X, before, after)                                                      \
    X(int, before##int##after), X(long, before##long##after),                                      \
        X(long long, before##longlong##after), X(float, before##float##after),                     \
        X(double, before##double##after)
#define SHMEM_OLD_WAITS_(X, before, after)                                                         \
    X(short, before##short##after), X(int, before##int##after), X(long, before##long##after),      \
        X(long long, before##longlong##after)

/* ---- Transfers ---- */

#define shmem_put(...) SHMEM_BY_FIRST_(SHMEM_ALL_, _put, __VA_ARGS__)
#define shmem_get(...) SHMEM_BY_FIRST_(SHMEM_ALL_, _get, __VA_ARGS__)
#define shmem_put_nbi(...) SHMEM_BY_FIRST_(SHMEM_ALL_, _put_nbi, __VA_ARGS__)
#define shmem_get_nbi(...) SHMEM_BY_FIRST_(SHMEM_ALL_, _get_nbi, __VA_ARGS__)
#define shmem_iput(...) SHMEM_BY_FIRST_(SHMEM_ALL_, _iput, __VA_ARGS__)
#define shmem_iget(...) SHMEM_BY_FIRST_(SHMEM_ALL_, _iget, __VA_ARGS__)
#define shmem_ibput(...) SHMEM_BY_FIRST_(SHMEM_ALL_, _ibput, __VA_ARGS__)
#define shmem_ibget(...) SHMEM_BY_FIRST_(SHMEM_ALL_, _ibget, __VA_ARGS__)
#define shmem_put_signal(...) SHMEM_BY_FIRST_(SHMEM_ALL_, _put_signal, __VA_ARGS__)
#define shmem_put_signal_nbi(...) SHMEM_BY_FIRST_(SHMEM_ALL_, _put_signal_nbi, __VA_ARGS__)
#define shmem_p(...) SHMEM_BY_FIRST_(SHMEM_ALL_, _p, __VA_ARGS__)
#define shmem_g(...) SHMEM_BY_FIRST_(SHMEM_ALL_, _g, __VA_ARGS__)

/* ---- Atomics ---- */

#define shmem_atomic_fetch(...) SHMEM_BY_FIRST_(SHMEM_EXTENDED_, _atomic_fetch, __VA_ARGS__)
#define shmem_atomic_set(...) SHMEM_BY_FIRST_(SHMEM_EXTENDED_, _atomic_set, __VA_ARGS__)
#define shmem_atomic_swap(...) SHMEM_BY_FIRST_(SHMEM_EXTENDED_, _atomic_swap, __VA_ARGS__)
#define shmem_atomic_fetch_nbi(...) SHMEM_BY_FIRST_(SHMEM_EXTENDED_, _atomic_fetch_nbi, __VA_ARGS__)
#define shmem_atomic_swap_nbi(...) SHMEM_BY_FIRST_(SHMEM_EXTENDED_, _atomic_swap_nbi, __VA_ARGS__)
#define shmem_atomic_compare_swap(...)                                                             \
    SHMEM_BY_FIRST_(SHMEM_AMOS_, _atomic_compare_swap, __VA_ARGS__)
#define shmem_atomic_fetch_inc(...) SHMEM_BY_FIRST_(SHMEM_AMOS_, _atomic_fetch_inc, __VA_ARGS__)
#define shmem_atomic_inc(...) SHMEM_BY_FIRST_(SHMEM_AMOS_, _atomic_inc, __VA_ARGS__)
#define shmem_atomic_fetch_add(...) SHMEM_BY_FIRST_(SHMEM_AMOS_, _atomic_fetch_add, __VA_ARGS__)
#define shmem_atomic_add(...) SHMEM_BY_FIRST_(SHMEM_AMOS_, _atomic_add, __VA_ARGS__)
#define shmem_atomic_compare_swap_nbi(...)                                                         \
    SHMEM_BY_FIRST_(SHMEM_AMOS_, _atomic_compare_swap_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_inc_nbi(...)                                                            \
    SHMEM_BY_FIRST_(SHMEM_AMOS_, _atomic_fetch_inc_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_add_nbi(...)                                                            \
    SHMEM_BY_FIRST_(SHMEM_AMOS_, _atomic_fetch_add_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_and(...) SHMEM_BY_FIRST_(SHMEM_BITWISE_, _atomic_fetch_and, __VA_ARGS__)
#define shmem_atomic_and(...) SHMEM_BY_FIRST_(SHMEM_BITWISE_, _atomic_and, __VA_ARGS__)
#define shmem_atomic_fetch_or(...) SHMEM_BY_FIRST_(SHMEM_BITWISE_, _atomic_fetch_or, __VA_ARGS__)
#define shmem_atomic_or(...) SHMEM_BY_FIRST_(SHMEM_BITWISE_, _atomic_or, __VA_ARGS__)
#define shmem_atomic_fetch_xor(...) SHMEM_BY_FIRST_(SHMEM_BITWISE_, _atomic_fetch_xor, __VA_ARGS__)
#define shmem_atomic_xor(...) SHMEM_BY_FIRST_(SHMEM_BITWISE_, _atomic_xor, __VA_ARGS__)
#define shmem_atomic_fetch_and_nbi(...)                                                            \
    SHMEM_BY_FIRST_(SHMEM_BITWISE_, _atomic_fetch_and_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_or_nbi(...)                                                             \
    SHMEM_BY_FIRST_(SHMEM_BITWISE_, _atomic_fetch_or_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_xor_nbi(...)                                                            \
    SHMEM_BY_FIRST_(SHMEM_BITWISE_, _atomic_fetch_xor_nbi, __VA_ARGS__)
/* Deprecated. */
#define shmem_fetch(...) SHMEM_BY_POINTER_(SHMEM_OLD_EXTENDED_, _fetch, __VA_ARGS__)
#define shmem_set(...) SHMEM_BY_POINTER_(SHMEM_OLD_EXTENDED_, _set, __VA_ARGS__)
#define shmem_swap(...) SHMEM_BY_POINTER_(SHMEM_OLD_EXTENDED_, _swap, __VA_ARGS__)
#define shmem_cswap(...) SHMEM_BY_POINTER_(SHMEM_OLD_AMOS_, _cswap, __VA_ARGS__)
#define shmem_finc(...) SHMEM_BY_POINTER_(SHMEM_OLD_AMOS_, _finc, __VA_ARGS__)
#define shmem_inc(...) SHMEM_BY_POINTER_(SHMEM_OLD_AMOS_, _inc, __VA_ARGS__)
#define shmem_fadd(...) SHMEM_BY_POINTER_(SHMEM_OLD_AMOS_, _fadd, __VA_ARGS__)
#define shmem_add(...) SHMEM_BY_POINTER_(SHMEM_OLD_AMOS_, _add, __VA_ARGS__)

/* ---- Waits ---- */

#define shmem_wait_until(...) SHMEM_BY_POINTER_(SHMEM_WAITS_, _wait_until, __VA_ARGS__)
#define shmem_test(...) SHMEM_BY_POINTER_(SHMEM_WAITS_, _test, __VA_ARGS__)
#define shmem_wait_until_all(...) SHMEM_BY_POINTER_(SHMEM_WAITS_, _wait_until_all, __VA_ARGS__)
#define shmem_wait_until_any(...) SHMEM_BY_POINTER_(SHMEM_WAITS_, _wait_until_any, __VA_ARGS__)
#define shmem_wait_until_some(...) SHMEM_BY_POINTER_(SHMEM_WAITS_, _wait_until_some, __VA_ARGS__)
#define shmem_test_all(...) SHMEM_BY_POINTER_(SHMEM_WAITS_, _test_all, __VA_ARGS__)
#define shmem_test_any(...) SHMEM_BY_POINTER_(SHMEM_WAITS_, _test_any, __VA_ARGS__)
#define shmem_test_some(...) SHMEM_BY_POINTER_(SHMEM_WAITS_, _test_some, __VA_ARGS__)
#define shmem_wait_until_all_vector(...)                                                           \
    SHMEM_BY_POINTER_(SHMEM_WAITS_, _wait_until_all_vector, __VA_ARGS__)
#define shmem_wait_until_any_vector(...)                                                           \
    SHMEM_BY_POINTER_(SHMEM_WAITS_, _wait_until_any_vector, __VA_ARGS__)
#define shmem_wait_until_some_vector(...)                                                          \
    SHMEM_BY_POINTER_(SHMEM_WAITS_, _wait_until_some_vector, __VA_ARGS__)
#define shmem_test_all_vector(...) SHMEM_BY_POINTER_(SHMEM_WAITS_, _test_all_vector, __VA_ARGS__)
#define shmem_test_any_vector(...) SHMEM_BY_POINTER_(SHMEM_WAITS_, _test_any_vector, __VA_ARGS__)
#define shmem_test_some_vector(...) SHMEM_BY_POINTER_(SHMEM_WAITS_, _test_some_vector, __VA_ARGS__)
/* Deprecated. */
#define shmem_wait(...) SHMEM_BY_POINTER_(SHMEM_OLD_WAITS_, _wait, __VA_ARGS__)

/* ---- Collectives ---- */

#define shmem_sync(...)                                                                            \
    _Generic(SHMEM_FIRST_(__VA_ARGS__, 0),                                                         \
        shmem_team_t: shmem_team_sync,                                                             \
        default: shmem_sync_set_)(__VA_ARGS__)
#define shmem_broadcast(...) SHMEM_BY_SECOND_(SHMEM_ALL_, _broadcast, __VA_ARGS__)
#define shmem_collect(...) SHMEM_BY_SECOND_(SHMEM_ALL_, _collect, __VA_ARGS__)
#define shmem_fcollect(...) SHMEM_BY_SECOND_(SHMEM_ALL_, _fcollect, __VA_ARGS__)
#define shmem_alltoall(...) SHMEM_BY_SECOND_(SHMEM_ALL_, _alltoall, __VA_ARGS__)
#define shmem_alltoalls(...) SHMEM_BY_SECOND_(SHMEM_ALL_, _alltoalls, __VA_ARGS__)
#define shmem_and_reduce(...) SHMEM_BY_SECOND_(SHMEM_BITS_, _and_reduce, __VA_ARGS__)
#define shmem_or_reduce(...) SHMEM_BY_SECOND_(SHMEM_BITS_, _or_reduce, __VA_ARGS__)
#define shmem_xor_reduce(...) SHMEM_BY_SECOND_(SHMEM_BITS_, _xor_reduce, __VA_ARGS__)
#define shmem_min_reduce(...) SHMEM_BY_SECOND_(SHMEM_ALL_, _min_reduce, __VA_ARGS__)
#define shmem_max_reduce(...) SHMEM_BY_SECOND_(SHMEM_ALL_, _max_reduce, __VA_ARGS__)
#define shmem_sum_reduce(...) SHMEM_BY_SECOND_(SHMEM_SUMS_, _sum_reduce, __VA_ARGS__)
#define shmem_prod_reduce(...) SHMEM_BY_SECOND_(SHMEM_SUMS_, _prod_reduce, __VA_ARGS__)
#define shmem_sum_inscan(...) SHMEM_BY_SECOND_(SHMEM_SUMS_, _sum_inscan, __VA_ARGS__)
#define shmem_sum_exscan(...) SHMEM_BY_SECOND_(SHMEM_SUMS_, _sum_exscan, __VA_ARGS__)

#endif /* SHMEM_GENERIC_H */
