/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/plan.h
 * Plans: target regions and updates that are recorded once and launched again. Part of diomp.h,
 * which holds the conventions; include diomp.h.
 */
#ifndef DIOMP_PLAN_H
#define DIOMP_PLAN_H

#include "types.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* ---- Plans ---- */

/**
 * Records the target regions and updates that the calling thread executes on `device` until
 * ompx_plan_end(). They are executed as usual meanwhile, so the recording is the first time step.
 * `device` is OpenMP's number of a device of any kind, also a remote one; it is started if
 * necessary. Not collective; does not block on other ranks.
 *
 * A plan keeps each region's launch: its arguments with their present values (scalars too), teams,
 * threads and trip count; and the addresses of each update. So between begin and end
 * - all data of the regions is mapped already, results of reductions too, and no construct
 *   allocates, frees, attaches pointers or copies except `target update`;
 * - only this thread uses the device, without `nowait`, and no other device;
 * - the thread makes no other call of DiOMP except ompx_rank_device() (regions may: they are
 *   recorded with their calls).
 * What breaks these rules is executed as usual, and ompx_plan_end() returns an error.
 *
 * OMPX_ERR_ARG if `device` is the host or does not exist; OMPX_ERR_STATE if this thread, or another
 * one on this device, records already; OMPX_ERR_UNSUPPORTED without DiOMP's libomptarget. DiOMP's
 * own; compare cudaStreamBeginCapture (which does not execute), and OpenMP 6.0, 14.3 (taskgraph).
 */
OMPX_API_ int ompx_plan_begin(int device) OMPX_NOEXCEPT_;
/**
 * Ends the calling thread's recording and stores the plan in *plan. *plan is OMPX_PLAN_NONE after
 * an error: OMPX_ERR_UNSUPPORTED if something was executed that cannot be recorded (see
 * ompx_plan_begin()); OMPX_ERR_STATE if the thread does not record, or no region or update was
 * executed on the device. Does not block.
 */
OMPX_API_ int ompx_plan_end(ompx_plan_t *plan) OMPX_NOEXCEPT_;
/**
 * Executes the plan's operations in their order, in one queue of the device, and blocks until the
 * device has finished, as a region without `nowait` does. Host memory of updates must still exist.
 * Any thread; threads may launch different plans, or one, at the same time. OMPX_ERR_ARG for a plan
 * that has been freed; OMPX_ERR_STATE if device memory that it uses has been freed or unmapped, or
 * this thread records; OMPX_ERR_PEER (remote devices) or OMPX_ERR_SYSTEM if an operation failed.
 * Tools see no OMPT events of target constructs.
 */
OMPX_API_ int ompx_plan_launch(ompx_plan_t plan) OMPX_NOEXCEPT_;
/**
 * Launches the plan without waiting for the device: ompx_event_wait() (as long as
 * ompx_plan_launch()) and ompx_event_test() on `*event` (NULL if the device has finished) do.
 * Memory of the plan and of its updates must exist until then; the plan may be freed before. Host
 * devices execute the plan in this call; updates from the device are waited for in it if updates to
 * the device follow. Errors are those of ompx_plan_launch(), of an operation that fails later from
 * the wait. Any thread.
 */
OMPX_API_ int ompx_plan_launch_nb(ompx_plan_t plan, ompx_event_t *event) OMPX_NOEXCEPT_;
/** Frees a plan and sets *plan to OMPX_PLAN_NONE. No thread may be launching it. Does not block.
 * Plans that are left are freed with the runtime. */
OMPX_API_ int ompx_plan_free(ompx_plan_t *plan) OMPX_NOEXCEPT_;

#if defined(__cplusplus)
} /* extern "C" */
#endif

#endif /* DIOMP_PLAN_H */
