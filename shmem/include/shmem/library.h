/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file shmem/library.h
 * Start and end, queries, memory, teams, contexts, ordering and locks. Part of shmem.h.
 */
#ifndef SHMEM_LIBRARY_H
#define SHMEM_LIBRARY_H

#include "types.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* ---- Start and end, queries (OpenSHMEM 1.6, 9.1 and 9.2) ---- */

/** Collective. Makes the static data of the executable symmetric: global and static variables of
 * the program itself, not those of shared libraries. */
SHMEM_API_ void shmem_init(void);
/** As shmem_init(); *provided is SHMEM_THREAD_MULTIPLE. */
SHMEM_API_ int shmem_init_thread(int requested, int *provided);
SHMEM_API_ void shmem_query_thread(int *provided);
SHMEM_API_ void shmem_query_initialized(int *initialized);
/** Collective. DiOMP's runtime goes on until the program ends. */
SHMEM_API_ void shmem_finalize(void);
SHMEM_API_ __attribute__((noreturn)) void shmem_global_exit(int status);

SHMEM_API_ int shmem_my_pe(void);
SHMEM_API_ int shmem_n_pes(void);
SHMEM_API_ int shmem_pe_accessible(int pe);
SHMEM_API_ int shmem_addr_accessible(const void *addr, int pe);
/** NULL for PEs of other nodes. */
SHMEM_API_ void *shmem_ptr(const void *dest, int pe);
SHMEM_API_ void *shmem_team_ptr(shmem_team_t team, const void *dest, int pe);
SHMEM_API_ void shmem_info_get_version(int *major, int *minor);
SHMEM_API_ void shmem_info_get_name(char *name);
/** Has no effect. */
SHMEM_API_ void shmem_pcontrol(int level, ...);

/* Deprecated. */
SHMEM_API_ void start_pes(int npes);
SHMEM_API_ int _my_pe(void);
SHMEM_API_ int _num_pes(void);

/* ---- Memory (9.3) ---- */

/** Collective. NULL on all PEs if the symmetric heap (DIOMP_SEGMENT_SIZE) is exhausted. */
SHMEM_API_ void *shmem_malloc(size_t size);
SHMEM_API_ void *shmem_malloc_with_hints(size_t size, long hints);
SHMEM_API_ void *shmem_calloc(size_t count, size_t size);
SHMEM_API_ void *shmem_align(size_t alignment, size_t size);
SHMEM_API_ void *shmem_realloc(void *ptr, size_t size);
SHMEM_API_ void shmem_free(void *ptr);

/* Deprecated. */
SHMEM_API_ void *shmalloc(size_t size);
SHMEM_API_ void *shmemalign(size_t alignment, size_t size);
SHMEM_API_ void *shrealloc(void *ptr, size_t size);
SHMEM_API_ void shfree(void *ptr);
/* Deprecated, without effect. */
SHMEM_API_ void shmem_clear_cache_inv(void);
SHMEM_API_ void shmem_set_cache_inv(void);
SHMEM_API_ void shmem_clear_cache_line_inv(void *dest);
SHMEM_API_ void shmem_set_cache_line_inv(void *dest);
SHMEM_API_ void shmem_udcflush(void);
SHMEM_API_ void shmem_udcflush_line(void *dest);

/* ---- Teams (9.4) ---- */

SHMEM_API_ int shmem_team_my_pe(shmem_team_t team);
SHMEM_API_ int shmem_team_n_pes(shmem_team_t team);
SHMEM_API_ int shmem_team_get_config(shmem_team_t team, long config_mask,
                                     shmem_team_config_t *config);
SHMEM_API_ int shmem_team_translate_pe(shmem_team_t src_team, int src_pe, shmem_team_t dest_team);
SHMEM_API_ int shmem_team_split_strided(shmem_team_t parent_team, int start, int stride, int size,
                                        const shmem_team_config_t *config, long config_mask,
                                        shmem_team_t *new_team);
SHMEM_API_ int shmem_team_split_2d(shmem_team_t parent_team, int xrange,
                                   const shmem_team_config_t *xaxis_config, long xaxis_mask,
                                   shmem_team_t *xaxis_team,
                                   const shmem_team_config_t *yaxis_config, long yaxis_mask,
                                   shmem_team_t *yaxis_team);
SHMEM_API_ void shmem_team_destroy(shmem_team_t team);

/* ---- Contexts (9.5) ---- */

/**
 * A context with SHMEM_CTX_PRIVATE or SHMEM_CTX_SERIALIZED completes its non-blocking puts and gets
 * apart from all others. Its other operations, and all of a context that several threads may use,
 * are completed together with those of the default context.
 */
SHMEM_API_ int shmem_ctx_create(long options, shmem_ctx_t *ctx);
SHMEM_API_ int shmem_team_create_ctx(shmem_team_t team, long options, shmem_ctx_t *ctx);
SHMEM_API_ void shmem_ctx_destroy(shmem_ctx_t ctx);
SHMEM_API_ int shmem_ctx_get_team(shmem_ctx_t ctx, shmem_team_t *team);
/** Sessions are hints, which have no effect here. */
SHMEM_API_ void shmem_ctx_session_start(shmem_ctx_t ctx, long options,
                                        const shmem_ctx_session_config_t *config, long config_mask);
SHMEM_API_ void shmem_ctx_session_stop(shmem_ctx_t ctx);

/* ---- Ordering (9.11) ---- */

SHMEM_API_ void shmem_fence(void);
SHMEM_API_ void shmem_ctx_fence(shmem_ctx_t ctx);
SHMEM_API_ void shmem_quiet(void);
SHMEM_API_ void shmem_ctx_quiet(shmem_ctx_t ctx);
SHMEM_API_ void shmem_pe_quiet(const int *target_pes, size_t npes);
SHMEM_API_ void shmem_ctx_pe_quiet(shmem_ctx_t ctx, const int *target_pes, size_t npes);

/* ---- Locks (9.12) ---- */

SHMEM_API_ void shmem_set_lock(long *lock);
SHMEM_API_ void shmem_clear_lock(long *lock);
SHMEM_API_ int shmem_test_lock(long *lock);

#if defined(__cplusplus)
} /* extern "C" */
#endif

#endif /* SHMEM_LIBRARY_H */
