/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file shmem/transfers.h
 * Remote memory access and signals (OpenSHMEM 1.6, 9.6 and 9.8). Part of shmem.h. Buffers are in
 * elements of the type, or of the number of bits in the name; those of the forms with `mem` in
 * bytes.
 */
#ifndef SHMEM_TRANSFERS_H
#define SHMEM_TRANSFERS_H

#include "types.h"

#if defined(__cplusplus)
extern "C" {
#endif

#define SHMEM_BLOCK_FORM_(before, name, type, context)                                             \
    SHMEM_API_ void before##put##name(context type *dest, const type *source, size_t nelems,       \
                                      int pe);                                                     \
    SHMEM_API_ void before##get##name(context type *dest, const type *source, size_t nelems,       \
                                      int pe);
#define SHMEM_STRIDED_FORM_(before, name, type, context)                                           \
    SHMEM_API_ void before##iput##name(context type *dest, const type *source, ptrdiff_t dst,      \
                                       ptrdiff_t sst, size_t nelems, int pe);                      \
    SHMEM_API_ void before##iget##name(context type *dest, const type *source, ptrdiff_t dst,      \
                                       ptrdiff_t sst, size_t nelems, int pe);                      \
    SHMEM_API_ void before##ibput##name(context type *dest, const type *source, ptrdiff_t dst,     \
                                        ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);      \
    SHMEM_API_ void before##ibget##name(context type *dest, const type *source, ptrdiff_t dst,     \
                                        ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
#define SHMEM_SIGNAL_FORM_(before, type, context, after)                                           \
    SHMEM_API_ void before##_signal##after(context type *dest, const type *source, size_t nelems,  \
                                           uint64_t *sig_addr, uint64_t signal, int sig_op,        \
                                           int pe);
#define SHMEM_CTX_ARG_ shmem_ctx_t ctx,

#define SHMEM_DECLARE_RMA_(name, type)                                                             \
    SHMEM_BLOCK_FORM_(shmem_##name##_, , type, )                                                   \
    SHMEM_BLOCK_FORM_(shmem_##name##_, _nbi, type, )                                               \
    SHMEM_BLOCK_FORM_(shmem_ctx_##name##_, , type, SHMEM_CTX_ARG_)                                 \
    SHMEM_BLOCK_FORM_(shmem_ctx_##name##_, _nbi, type, SHMEM_CTX_ARG_)                             \
    SHMEM_STRIDED_FORM_(shmem_##name##_, , type, )                                                 \
    SHMEM_STRIDED_FORM_(shmem_ctx_##name##_, , type, SHMEM_CTX_ARG_)                               \
    SHMEM_SIGNAL_FORM_(shmem_##name##_put, type, , )                                               \
    SHMEM_SIGNAL_FORM_(shmem_##name##_put, type, , _nbi)                                           \
    SHMEM_SIGNAL_FORM_(shmem_ctx_##name##_put, type, SHMEM_CTX_ARG_, )                             \
    SHMEM_SIGNAL_FORM_(shmem_ctx_##name##_put, type, SHMEM_CTX_ARG_, _nbi)                         \
    SHMEM_API_ void shmem_##name##_p(type *dest, type value, int pe);                              \
    SHMEM_API_ void shmem_ctx_##name##_p(shmem_ctx_t ctx, type *dest, type value, int pe);         \
    SHMEM_API_ type shmem_##name##_g(const type *source, int pe);                                  \
    SHMEM_API_ type shmem_ctx_##name##_g(shmem_ctx_t ctx, const type *source, int pe);
SHMEM_RMA_TYPES_(SHMEM_DECLARE_RMA_)

#define SHMEM_DECLARE_BYTES_(name)                                                                 \
    SHMEM_BLOCK_FORM_(shmem_, name, void, )                                                        \
    SHMEM_BLOCK_FORM_(shmem_, name##_nbi, void, )                                                  \
    SHMEM_BLOCK_FORM_(shmem_ctx_, name, void, SHMEM_CTX_ARG_)                                      \
    SHMEM_BLOCK_FORM_(shmem_ctx_, name##_nbi, void, SHMEM_CTX_ARG_)                                \
    SHMEM_SIGNAL_FORM_(shmem_put##name, void, , )                                                  \
    SHMEM_SIGNAL_FORM_(shmem_put##name, void, , _nbi)                                              \
    SHMEM_SIGNAL_FORM_(shmem_ctx_put##name, void, SHMEM_CTX_ARG_, )                                \
    SHMEM_SIGNAL_FORM_(shmem_ctx_put##name, void, SHMEM_CTX_ARG_, _nbi)
#define SHMEM_DECLARE_SIZE_(bits, nbytes)                                                          \
    SHMEM_DECLARE_BYTES_(bits)                                                                     \
    SHMEM_STRIDED_FORM_(shmem_, bits, void, )                                                      \
    SHMEM_STRIDED_FORM_(shmem_ctx_, bits, void, SHMEM_CTX_ARG_)
SHMEM_SIZES_(SHMEM_DECLARE_SIZE_)
SHMEM_DECLARE_BYTES_(mem)

/* ---- Signals ---- */

SHMEM_API_ uint64_t shmem_signal_fetch(const uint64_t *sig_addr);
SHMEM_API_ void shmem_signal_add(uint64_t *sig_addr, uint64_t signal, int pe);
SHMEM_API_ void shmem_ctx_signal_add(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe);
SHMEM_API_ void shmem_signal_set(uint64_t *sig_addr, uint64_t signal, int pe);
SHMEM_API_ void shmem_ctx_signal_set(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe);

#if defined(__cplusplus)
} /* extern "C" */
#endif

#endif /* SHMEM_TRANSFERS_H */
