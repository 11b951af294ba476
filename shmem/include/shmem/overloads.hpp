// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file shmem/overloads.hpp
/// The generic forms of C11 as overloads for C++. Part of shmem.h.
#pragma once

#include "atomics.h"
#include "collectives.h"
#include "library.h"
#include "transfers.h"
#include "types.h"
#include "waits.h"

// One function without, one with a context. `parameters` and `arguments` are in parentheses.
#define SHMEM_UNPACK_(...) __VA_ARGS__
#define SHMEM_OVERLOAD_(result, name, function, parameters, arguments)                             \
    inline result shmem_##function(SHMEM_UNPACK_ parameters) {                                     \
        return shmem_##name##_##function(SHMEM_UNPACK_ arguments);                                 \
    }
#define SHMEM_OVERLOADS_(result, name, function, parameters, arguments)                            \
    SHMEM_OVERLOAD_(result, name, function, parameters, arguments)                                 \
    inline result shmem_##function(shmem_ctx_t ctx, SHMEM_UNPACK_ parameters) {                    \
        return shmem_ctx_##name##_##function(ctx, SHMEM_UNPACK_ arguments);                        \
    }

// ---- Transfers ----

#define SHMEM_RMA_OVERLOADS_(name, type)                                                           \
    SHMEM_OVERLOADS_(void, name, put, (type * d, const type *s, size_t n, int pe), (d, s, n, pe))  \
    SHMEM_OVERLOADS_(void, name, get, (type * d, const type *s, size_t n, int pe), (d, s, n, pe))  \
    SHMEM_OVERLOADS_(void, name, put_nbi, (type * d, const type *s, size_t n, int pe),             \
                     (d, s, n, pe))                                                                \
    SHMEM_OVERLOADS_(void, name, get_nbi, (type * d, const type *s, size_t n, int pe),             \
                     (d, s, n, pe))                                                                \
    SHMEM_OVERLOADS_(void, name, p, (type * d, type value, int pe), (d, value, pe))                \
    SHMEM_OVERLOADS_(type, name, g, (const type *s, int pe), (s, pe))                              \
    SHMEM_OVERLOADS_(void, name, iput,                                                             \
                     (type * d, const type *s, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe),    \
                     (d, s, dst, sst, n, pe))                                                      \
    SHMEM_OVERLOADS_(void, name, iget,                                                             \
                     (type * d, const type *s, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe),    \
                     (d, s, dst, sst, n, pe))                                                      \
    SHMEM_OVERLOADS_(                                                                              \
        void, name, ibput,                                                                         \
        (type * d, const type *s, ptrdiff_t dst, ptrdiff_t sst, size_t size, size_t n, int pe),    \
        (d, s, dst, sst, size, n, pe))                                                             \
    SHMEM_OVERLOADS_(                                                                              \
        void, name, ibget,                                                                         \
        (type * d, const type *s, ptrdiff_t dst, ptrdiff_t sst, size_t size, size_t n, int pe),    \
        (d, s, dst, sst, size, n, pe))                                                             \
    SHMEM_OVERLOADS_(                                                                              \
        void, name, put_signal,                                                                    \
        (type * d, const type *s, size_t n, uint64_t *address, uint64_t signal, int op, int pe),   \
        (d, s, n, address, signal, op, pe))                                                        \
    SHMEM_OVERLOADS_(                                                                              \
        void, name, put_signal_nbi,                                                                \
        (type * d, const type *s, size_t n, uint64_t *address, uint64_t signal, int op, int pe),   \
        (d, s, n, address, signal, op, pe))
SHMEM_DISTINCT_TYPES_(SHMEM_RMA_OVERLOADS_)

// ---- Atomics ----

#define SHMEM_AMO_OVERLOADS_(result, name, operation, parameters, arguments)                       \
    inline result shmem_atomic_##operation(SHMEM_UNPACK_ parameters) {                             \
        return shmem_##name##_atomic_##operation(SHMEM_UNPACK_ arguments);                         \
    }                                                                                              \
    inline result shmem_atomic_##operation(shmem_ctx_t ctx, SHMEM_UNPACK_ parameters) {            \
        return shmem_ctx_##name##_atomic_##operation(ctx, SHMEM_UNPACK_ arguments);                \
    }
// An operation with an operand, and its fetching forms.
#define SHMEM_FETCH_OVERLOADS_(name, type, operation)                                              \
    SHMEM_AMO_OVERLOADS_(void, name, operation, (type * d, type value, int pe), (d, value, pe))    \
    SHMEM_AMO_OVERLOADS_(type, name, fetch_##operation, (type * d, type value, int pe),            \
                         (d, value, pe))                                                           \
    SHMEM_AMO_OVERLOADS_(void, name, fetch_##operation##_nbi,                                      \
                         (type * fetch, type * d, type value, int pe), (fetch, d, value, pe))

#define SHMEM_EXTENDED_OVERLOADS_(name, type)                                                      \
    SHMEM_AMO_OVERLOADS_(type, name, fetch, (const type *s, int pe), (s, pe))                      \
    SHMEM_AMO_OVERLOADS_(void, name, fetch_nbi, (type * fetch, const type *s, int pe),             \
                         (fetch, s, pe))                                                           \
    SHMEM_AMO_OVERLOADS_(void, name, set, (type * d, type value, int pe), (d, value, pe))          \
    SHMEM_AMO_OVERLOADS_(type, name, swap, (type * d, type value, int pe), (d, value, pe))         \
    SHMEM_AMO_OVERLOADS_(void, name, swap_nbi, (type * fetch, type * d, type value, int pe),       \
                         (fetch, d, value, pe))
SHMEM_DISTINCT_AMO_TYPES_(SHMEM_EXTENDED_OVERLOADS_)
SHMEM_FLOAT_AMO_TYPES_(SHMEM_EXTENDED_OVERLOADS_)

#define SHMEM_STANDARD_OVERLOADS_(name, type)                                                      \
    SHMEM_FETCH_OVERLOADS_(name, type, add)                                                        \
    SHMEM_AMO_OVERLOADS_(void, name, inc, (type * d, int pe), (d, pe))                             \
    SHMEM_AMO_OVERLOADS_(type, name, fetch_inc, (type * d, int pe), (d, pe))                       \
    SHMEM_AMO_OVERLOADS_(void, name, fetch_inc_nbi, (type * fetch, type * d, int pe),              \
                         (fetch, d, pe))                                                           \
    SHMEM_AMO_OVERLOADS_(type, name, compare_swap, (type * d, type cond, type value, int pe),      \
                         (d, cond, value, pe))                                                     \
    SHMEM_AMO_OVERLOADS_(void, name, compare_swap_nbi,                                             \
                         (type * fetch, type * d, type cond, type value, int pe),                  \
                         (fetch, d, cond, value, pe))
SHMEM_DISTINCT_AMO_TYPES_(SHMEM_STANDARD_OVERLOADS_)

#define SHMEM_BITWISE_OVERLOADS_(name, type)                                                       \
    SHMEM_FETCH_OVERLOADS_(name, type, and)                                                        \
    SHMEM_FETCH_OVERLOADS_(name, type, or)                                                         \
    SHMEM_FETCH_OVERLOADS_(name, type, xor)
SHMEM_DISTINCT_BITWISE_TYPES_(SHMEM_BITWISE_OVERLOADS_)

// ---- Waits ----

#define SHMEM_WAIT_SET_OVERLOADS_(name, type, after, value)                                        \
    SHMEM_OVERLOAD_(void, name, wait_until_all##after,                                             \
                    (type * v, size_t n, const int *status, int cmp, value x),                     \
                    (v, n, status, cmp, x))                                                        \
    SHMEM_OVERLOAD_(size_t, name, wait_until_any##after,                                           \
                    (type * v, size_t n, const int *status, int cmp, value x),                     \
                    (v, n, status, cmp, x))                                                        \
    SHMEM_OVERLOAD_(size_t, name, wait_until_some##after,                                          \
                    (type * v, size_t n, size_t *found, const int *status, int cmp, value x),      \
                    (v, n, found, status, cmp, x))                                                 \
    SHMEM_OVERLOAD_(int, name, test_all##after,                                                    \
                    (type * v, size_t n, const int *status, int cmp, value x),                     \
                    (v, n, status, cmp, x))                                                        \
    SHMEM_OVERLOAD_(size_t, name, test_any##after,                                                 \
                    (type * v, size_t n, const int *status, int cmp, value x),                     \
                    (v, n, status, cmp, x))                                                        \
    SHMEM_OVERLOAD_(size_t, name, test_some##after,                                                \
                    (type * v, size_t n, size_t *found, const int *status, int cmp, value x),      \
                    (v, n, found, status, cmp, x))
#define SHMEM_WAIT_OVERLOADS_(name, type)                                                          \
    SHMEM_OVERLOAD_(void, name, wait_until, (type * v, int cmp, type value), (v, cmp, value))      \
    SHMEM_OVERLOAD_(int, name, test, (type * v, int cmp, type value), (v, cmp, value))             \
    SHMEM_WAIT_SET_OVERLOADS_(name, type, , type)                                                  \
    SHMEM_WAIT_SET_OVERLOADS_(name, type, _vector, const type *)
SHMEM_DISTINCT_WAIT_TYPES_(SHMEM_WAIT_OVERLOADS_)

// ---- Collectives ----

inline int shmem_sync(shmem_team_t team) { return shmem_team_sync(team); }
inline void shmem_sync(int start, int log_stride, int size, long *sync) {
    shmem_sync_set_(start, log_stride, size, sync);
}

#define SHMEM_TEAM_OVERLOAD_(name, type, function)                                                 \
    SHMEM_OVERLOAD_(int, name, function, (shmem_team_t team, type * d, const type *s, size_t n),   \
                    (team, d, s, n))
#define SHMEM_COLLECTIVE_OVERLOADS_(name, type)                                                    \
    SHMEM_OVERLOAD_(int, name, broadcast,                                                          \
                    (shmem_team_t team, type * d, const type *s, size_t n, int root),              \
                    (team, d, s, n, root))                                                         \
    SHMEM_OVERLOAD_(                                                                               \
        int, name, alltoalls,                                                                      \
        (shmem_team_t team, type * d, const type *s, ptrdiff_t dst, ptrdiff_t sst, size_t n),      \
        (team, d, s, dst, sst, n))                                                                 \
    SHMEM_TEAM_OVERLOAD_(name, type, collect)                                                      \
    SHMEM_TEAM_OVERLOAD_(name, type, fcollect)                                                     \
    SHMEM_TEAM_OVERLOAD_(name, type, alltoall)                                                     \
    SHMEM_TEAM_OVERLOAD_(name, type, min_reduce)                                                   \
    SHMEM_TEAM_OVERLOAD_(name, type, max_reduce)
#define SHMEM_SUM_OVERLOADS_(name, type)                                                           \
    SHMEM_TEAM_OVERLOAD_(name, type, sum_reduce)                                                   \
    SHMEM_TEAM_OVERLOAD_(name, type, prod_reduce)                                                  \
    SHMEM_TEAM_OVERLOAD_(name, type, sum_inscan)                                                   \
    SHMEM_TEAM_OVERLOAD_(name, type, sum_exscan)
#define SHMEM_BITS_OVERLOADS_(name, type)                                                          \
    SHMEM_TEAM_OVERLOAD_(name, type, and_reduce)                                                   \
    SHMEM_TEAM_OVERLOAD_(name, type, or_reduce)                                                    \
    SHMEM_TEAM_OVERLOAD_(name, type, xor_reduce)
SHMEM_DISTINCT_TYPES_(SHMEM_COLLECTIVE_OVERLOADS_)
SHMEM_DISTINCT_TYPES_(SHMEM_SUM_OVERLOADS_)
SHMEM_COMPLEX_TYPES_(SHMEM_SUM_OVERLOADS_)
SHMEM_DISTINCT_REDUCE_BITS_TYPES_(SHMEM_BITS_OVERLOADS_)
