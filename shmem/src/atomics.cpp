// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shmem/atomics.h"

#include "library.h"

using namespace diomp_shmem;

namespace {

/// *dest = *dest op operand, without a result.
template <typename T>
void update(const char *function, shmem_ctx_t ctx, T *dest, T operand, ompx_op_t op, int pe) {
    check(function, ompx_atomic_fetch(default_target(function, ctx, pe), dest, &operand, nullptr,
                                      type_of<T>(), op));
}

template <typename T>
T fetch(const char *function, shmem_ctx_t ctx, T *dest, T operand, ompx_op_t op, int pe) {
    T result{};
    check(function, ompx_atomic_fetch(default_target(function, ctx, pe), dest, &operand, &result,
                                      type_of<T>(), op));
    return result;
}

template <typename T>
void fetch_nbi(const char *function, shmem_ctx_t ctx, T *result, T *dest, T operand, ompx_op_t op,
               int pe) {
    check(function, ompx_atomic_fetch_nb(default_target(function, ctx, pe), dest, &operand, result,
                                         type_of<T>(), op, nullptr));
}

template <typename T>
T compare_swap(const char *function, shmem_ctx_t ctx, T *dest, T cond, T value, int pe) {
    T result{};
    check(function, ompx_atomic_compare_swap(default_target(function, ctx, pe), dest, &cond, &value,
                                             &result, type_of<T>()));
    return result;
}

template <typename T>
void compare_swap_nbi(const char *function, shmem_ctx_t ctx, T *result, T *dest, T cond, T value,
                      int pe) {
    check(function, ompx_atomic_compare_swap_nb(default_target(function, ctx, pe), dest, &cond,
                                                &value, result, type_of<T>(), nullptr));
}

/// An atomic fetch does not change what it reads.
template <typename T>
T *writable(const T *source) {
    return const_cast<T *>(source);
}

} // namespace

// The first parameter of the forms with a context, in parentheses since it has a comma.
#define CONTEXT_ (shmem_ctx_t ctx, )
#define UNPACK_(...) __VA_ARGS__

#define DEFINE_EXTENDED_(before, name, type, context, ctx)                                         \
    type before##name##_atomic_fetch(UNPACK_ context const type *source, int pe) {                 \
        return fetch<type>(__func__, ctx, writable(source), 0, OMPX_NO_OP, pe);                    \
    }                                                                                              \
    void before##name##_atomic_fetch_nbi(UNPACK_ context type *result, const type *source,         \
                                         int pe) {                                                 \
        fetch_nbi<type>(__func__, ctx, result, writable(source), 0, OMPX_NO_OP, pe);               \
    }                                                                                              \
    void before##name##_atomic_set(UNPACK_ context type *dest, type value, int pe) {               \
        update<type>(__func__, ctx, dest, value, OMPX_REPLACE, pe);                                \
    }                                                                                              \
    type before##name##_atomic_swap(UNPACK_ context type *dest, type value, int pe) {              \
        return fetch<type>(__func__, ctx, dest, value, OMPX_REPLACE, pe);                          \
    }                                                                                              \
    void before##name##_atomic_swap_nbi(UNPACK_ context type *result, type *dest, type value,      \
                                        int pe) {                                                  \
        fetch_nbi<type>(__func__, ctx, result, dest, value, OMPX_REPLACE, pe);                     \
    }

// An operation with an operand, and its fetching forms.
#define DEFINE_OPERATION_(before, name, type, context, ctx, operation, op)                         \
    void before##name##_atomic_##operation(UNPACK_ context type *dest, type value, int pe) {       \
        update<type>(__func__, ctx, dest, value, op, pe);                                          \
    }                                                                                              \
    type before##name##_atomic_fetch_##operation(UNPACK_ context type *dest, type value, int pe) { \
        return fetch<type>(__func__, ctx, dest, value, op, pe);                                    \
    }                                                                                              \
    void before##name##_atomic_fetch_##operation##_nbi(UNPACK_ context type *result, type *dest,   \
                                                       type value, int pe) {                       \
        fetch_nbi<type>(__func__, ctx, result, dest, value, op, pe);                               \
    }

#define DEFINE_STANDARD_(before, name, type, context, ctx)                                         \
    DEFINE_OPERATION_(before, name, type, context, ctx, add, OMPX_SUM)                             \
    void before##name##_atomic_inc(UNPACK_ context type *dest, int pe) {                           \
        update<type>(__func__, ctx, dest, 1, OMPX_SUM, pe);                                        \
    }                                                                                              \
    type before##name##_atomic_fetch_inc(UNPACK_ context type *dest, int pe) {                     \
        return fetch<type>(__func__, ctx, dest, 1, OMPX_SUM, pe);                                  \
    }                                                                                              \
    void before##name##_atomic_fetch_inc_nbi(UNPACK_ context type *result, type *dest, int pe) {   \
        fetch_nbi<type>(__func__, ctx, result, dest, 1, OMPX_SUM, pe);                             \
    }                                                                                              \
    type before##name##_atomic_compare_swap(UNPACK_ context type *dest, type cond, type value,     \
                                            int pe) {                                              \
        return compare_swap<type>(__func__, ctx, dest, cond, value, pe);                           \
    }                                                                                              \
    void before##name##_atomic_compare_swap_nbi(UNPACK_ context type *result, type *dest,          \
                                                type cond, type value, int pe) {                   \
        compare_swap_nbi<type>(__func__, ctx, result, dest, cond, value, pe);                      \
    }

#define DEFINE_BITWISE_(before, name, type, context, ctx)                                          \
    DEFINE_OPERATION_(before, name, type, context, ctx, and, OMPX_BAND)                            \
    DEFINE_OPERATION_(before, name, type, context, ctx, or, OMPX_BOR)                              \
    DEFINE_OPERATION_(before, name, type, context, ctx, xor, OMPX_BXOR)

#define DEFINE_EXTENDED_FORMS_(name, type)                                                         \
    DEFINE_EXTENDED_(shmem_, name, type, (), SHMEM_CTX_DEFAULT)                                    \
    DEFINE_EXTENDED_(shmem_ctx_, name, type, CONTEXT_, ctx)
#define DEFINE_STANDARD_FORMS_(name, type)                                                         \
    DEFINE_STANDARD_(shmem_, name, type, (), SHMEM_CTX_DEFAULT)                                    \
    DEFINE_STANDARD_(shmem_ctx_, name, type, CONTEXT_, ctx)
#define DEFINE_BITWISE_FORMS_(name, type)                                                          \
    DEFINE_BITWISE_(shmem_, name, type, (), SHMEM_CTX_DEFAULT)                                     \
    DEFINE_BITWISE_(shmem_ctx_, name, type, CONTEXT_, ctx)

#define DEFINE_OLD_EXTENDED_(name, type)                                                           \
    type shmem_##name##_fetch(const type *source, int pe) {                                        \
        return shmem_##name##_atomic_fetch(source, pe);                                            \
    }                                                                                              \
    void shmem_##name##_set(type *dest, type value, int pe) {                                      \
        shmem_##name##_atomic_set(dest, value, pe);                                                \
    }                                                                                              \
    type shmem_##name##_swap(type *dest, type value, int pe) {                                     \
        return shmem_##name##_atomic_swap(dest, value, pe);                                        \
    }
#define DEFINE_OLD_(name, type)                                                                    \
    type shmem_##name##_cswap(type *dest, type cond, type value, int pe) {                         \
        return shmem_##name##_atomic_compare_swap(dest, cond, value, pe);                          \
    }                                                                                              \
    type shmem_##name##_finc(type *dest, int pe) {                                                 \
        return shmem_##name##_atomic_fetch_inc(dest, pe);                                          \
    }                                                                                              \
    void shmem_##name##_inc(type *dest, int pe) { shmem_##name##_atomic_inc(dest, pe); }           \
    type shmem_##name##_fadd(type *dest, type value, int pe) {                                     \
        return shmem_##name##_atomic_fetch_add(dest, value, pe);                                   \
    }                                                                                              \
    void shmem_##name##_add(type *dest, type value, int pe) {                                      \
        shmem_##name##_atomic_add(dest, value, pe);                                                \
    }

extern "C" {

SHMEM_EXTENDED_AMO_TYPES_(DEFINE_EXTENDED_FORMS_)
SHMEM_AMO_TYPES_(DEFINE_STANDARD_FORMS_)
SHMEM_BITWISE_TYPES_(DEFINE_BITWISE_FORMS_)
SHMEM_OLD_EXTENDED_TYPES_(DEFINE_OLD_EXTENDED_)
SHMEM_OLD_AMO_TYPES_(DEFINE_OLD_)

} // extern "C"
