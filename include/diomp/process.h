/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/process.h
 * Texts of errors, start and end of the runtime, ranks. Part of diomp.h, which holds the
 * conventions.
 */
#ifndef DIOMP_PROCESS_H
#define DIOMP_PROCESS_H

#include "types.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* ---- Texts of errors ---- */

/** Text of a status code; never NULL. Also valid without a runtime. */
OMPX_API_ const char *ompx_status_string(int status) OMPX_NOEXCEPT_;
/** Text of the calling thread's last error, "" if none; valid until the thread's next error. */
OMPX_API_ const char *ompx_last_error(void) OMPX_NOEXCEPT_;
/** Status of the calling thread's last error, OMPX_SUCCESS if none: the cause where a function that
 * returns a pointer has returned NULL. Calls that succeed do not change it. */
OMPX_API_ int ompx_last_error_status(void) OMPX_NOEXCEPT_;

/**
 * Chooses by call what DIOMP_ERRORS chooses for the job: whether an error ends the job or is
 * returned. OMPX_SCOPE_THREAD: for errors of the calling thread's calls, until it chooses
 * OMPX_ERRORS_INHERIT. OMPX_SCOPE_LIBRARY: for all threads of this rank without a mode of their
 * own, and for the loss of another rank. Returns the previous mode of the scope, to be passed back
 * later, or OMPX_ERR_ARG. Ranks may differ: a collective that fails on several ranks ends the job
 * if one of them does not return errors. Errors of operations whose call has returned and that have
 * no event (detached transfers, regions of devices) end the job in both modes. Not collective, does
 * not block; also valid without a runtime, whose start sets the library's mode to DIOMP_ERRORS.
 * Compare MPI_Comm_set_errhandler (MPI 4.0, 9.3).
 */
OMPX_API_ int ompx_set_errors(ompx_errors_t mode, ompx_scope_t scope) OMPX_NOEXCEPT_;
/** The mode in effect for calls of the calling thread: OMPX_ERRORS_ABORT or OMPX_ERRORS_RETURN.
 * Never an error. */
OMPX_API_ int ompx_errors_mode(void) OMPX_NOEXCEPT_;

/* ---- Ranks ---- */

/** Starts the runtime. Optional: a program linked with DiOMP starts it before main. The first call
 * is collective; later calls return at once. */
OMPX_API_ int ompx_init(void) OMPX_NOEXCEPT_;
/**
 * Ends the runtime. Optional: done at normal exit. Collective; waits for all ranks, so that the
 * memory of a rank stays valid while other ranks use it. Later calls return OMPX_ERR_STATE.
 *
 * Returns OMPX_ERR_STATE without any effect if another thread of this rank is in a call; the
 * function may be called again after that call. Calls that other threads make meanwhile return
 * OMPX_ERR_STATE. At exit() neither is an error: calls of other threads work until all ranks have
 * reached their end, and do not return afterwards.
 */
OMPX_API_ int ompx_finalize(void) OMPX_NOEXCEPT_;
/** 1 between start-up and finalize, otherwise 0. Never an error. */
OMPX_API_ int ompx_is_initialized(void) OMPX_NOEXCEPT_;
/** This rank (0-based), or a negative status. */
OMPX_API_ int ompx_rank_num(void) OMPX_NOEXCEPT_;
/** Number of ranks, or a negative status. */
OMPX_API_ int ompx_num_ranks(void) OMPX_NOEXCEPT_;
/** This rank among the ranks of its node (0-based), and their number. */
OMPX_API_ int ompx_local_rank_num(void) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_num_local_ranks(void) OMPX_NOEXCEPT_;
/** Earlier names of the four functions above; `get` is the word for RMA. They stay. */
OMPX_API_ int ompx_get_rank_num(void) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_get_num_ranks(void) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_get_local_rank_num(void) OMPX_NOEXCEPT_;
OMPX_API_ int ompx_get_num_local_ranks(void) OMPX_NOEXCEPT_;
/**
 * Writes the path of transfers to `rank` into `text`: "shm", "ucx (tcp, active messages): ...", and
 * those to its remote devices; at most nbytes including the final 0, a longer text is truncated.
 * The first transfer chooses a network's path; before that, the text says so. Does not block.
 */
OMPX_API_ int ompx_path_info(int rank, char *text, size_t nbytes) OMPX_NOEXCEPT_;
/**
 * Ends the whole job at once with exit status `code & 255`; 0 ends it successfully and prints
 * nothing. Not collective; terminates all other ranks. Does not return. diomp-run passes the status
 * on; some other launchers replace it (docs/launch.md).
 */
OMPX_API_ __attribute__((noreturn)) void ompx_abort(int code) OMPX_NOEXCEPT_;

#if defined(__cplusplus)
} /* extern "C" */
#endif

#endif /* DIOMP_PROCESS_H */
