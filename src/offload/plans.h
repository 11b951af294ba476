// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plans: recorded target regions and updates. libomptarget records and launches (plan_table.h);
// this class checks handles and words the errors.
#pragma once

#include "base/handle_table.h"
#include "base/ids.h"
#include "base/result.h"
#include "diomp/types.h"
#include "offload/openmp.h"

#include <cstddef>

namespace diomp::offload {

/// Thread-safe.
class plans {
public:
    /// `self`: this rank.
    plans(const openmp_devices &openmp, world_rank self);
    ~plans();
    plans(const plans &) = delete;
    plans &operator=(const plans &) = delete;

    /// Starts the calling thread's recording on a device. Calls `abandoned` if the thread ends
    /// before end(). Errors: OMPX_ERR_ARG, OMPX_ERR_STATE, OMPX_ERR_UNSUPPORTED.
    status begin(int device, void (*abandoned)());
    /// Ends it. Errors: OMPX_ERR_STATE, OMPX_ERR_UNSUPPORTED (what was executed cannot be
    /// recorded), OMPX_ERR_NOMEM.
    result<ompx_plan_t> end();
    /// Blocks until the device has finished. Errors, also of start(): OMPX_ERR_ARG, OMPX_ERR_STATE
    /// (its memory has been freed), OMPX_ERR_PEER or OMPX_ERR_SYSTEM (an operation failed).
    status launch(ompx_plan_t handle) const;
    /// Issues the plan's operations without waiting; *event is null if the device has finished.
    status start(ompx_plan_t handle, ompx_event_t *event) const;
    status free(ompx_plan_t handle);
    /// Call before memory that libomptarget has not allocated is freed: plans that use it are not
    /// launched again.
    void forget_memory(int device, const void *begin, std::size_t nbytes) const;

    /// Whether the calling thread records.
    [[nodiscard]] static bool is_recording();
    /// The calling thread makes a call of DiOMP, which a recording would miss unless it only asks
    /// for the rank's devices; `function` is a literal.
    void note_call(const char *function) const;

private:
    struct plan;
    result<plan *> find_to_launch(ompx_plan_t handle) const;
    [[nodiscard]] status outcome(int device, int outcome) const;

    const openmp_devices &openmp_;
    world_rank const self_;
    handle_table<plan, ompx_plan_t, 0xd10f> table_;
};

} // namespace diomp::offload
