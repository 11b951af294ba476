// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The object that owns all modules: start-up in order, shutdown in reverse order, and the
// collective calls that need several modules (allocation).
//
// Threads: "diomp-progress" (messaging/engine) handles messages while the program computes;
// "diomp-coll" (collective), one per group with non-blocking collectives.
#pragma once

#include "coll/collective.h"
#include "config/settings.h"
#include "device_coll/device_collectives.h"
#include "group/registry.h"
#include "launch/launch.h"
#include "memory/memory.h"
#include "messaging/call.h"
#include "offload/offload.h"
#include "rma/rma.h"
#include "runtime/internal/statistics.h"
#include "runtime/internal/trace.h"
#include "stacks/stacks.h"
#include "sync/lock.h"

#include <memory>
#include <string>

namespace diomp::runtime {

/// Any thread, except start, finish and the destructor.
class runtime {
public:
    /// Starts all modules. Collective over the job; blocks. Returns the runtime once all run.
    static result<std::unique_ptr<runtime>> start(const settings &values,
                                                  std::unique_ptr<launch::launcher> launcher);
    ~runtime();
    runtime(const runtime &) = delete;
    runtime &operator=(const runtime &) = delete;

    /// Completes this rank's transfers and waits until all ranks have called. Collective. Other
    /// threads may still make calls meanwhile.
    status synchronize_at_end();
    /// Stops the progress thread, closes the conduit and signs off at the launcher. Collective;
    /// call after synchronize_at_end(), when no thread makes calls any more.
    status close();
    /// Replaces the destructor if the process ends while threads are still in calls: see
    /// conduit::freeze().
    void freeze() { conduit_->freeze(); }
    /// Hands the arena over, so that it stays mapped after the runtime has ended: inline puts and
    /// gets are not tracked and may still be copying. Call before the destructor.
    [[nodiscard]] std::unique_ptr<transport::arena> keep_arena() { return std::move(arena_); }

    [[nodiscard]] const settings &values() const { return settings_; }
    [[nodiscard]] const launch::job_info &job() const { return launcher_->info(); }
    [[nodiscard]] launch::launcher &launcher() { return *launcher_; }
    [[nodiscard]] transport::arena &arena() { return *arena_; }
    [[nodiscard]] transport::conduit &transport() { return *conduit_; }
    [[nodiscard]] messaging::engine &engine() { return *engine_; }
    [[nodiscard]] memory::segment &segment() { return *segment_; }
    [[nodiscard]] memory::directory &directory() { return *directory_; }
    [[nodiscard]] memory::address_space &space() { return *space_; }
    [[nodiscard]] rma::transfers &transfers() { return *transfers_; }
    [[nodiscard]] offload::devices &devices() { return *devices_; }
    [[nodiscard]] sync::locks &locks() { return *locks_; }
    [[nodiscard]] group::group_registry &groups() { return *groups_; }
    [[nodiscard]] coll::collectives &collectives() { return *collectives_; }
    [[nodiscard]] device_coll::device_collectives &collectives_on_devices() {
        return *device_collectives_;
    }
    [[nodiscard]] statistics &stats() { return statistics_; }
    [[nodiscard]] trace &tracer() { return trace_; }
    /// Whether calls are timed, for statistics or a trace.
    [[nodiscard]] bool observes() const { return statistics_.enabled() || trace_.enabled(); }

    /// Allocates global memory. Symmetric and asymmetric allocations are collective over the world:
    /// every rank allocates, then all compare size, alignment and outcome, so that all fail
    /// together. Never returns nullptr. Zeroed memory is zero on every rank before any rank
    /// returns, so a put may follow at once. Errors: OMPX_ERR_ARG, OMPX_ERR_NOMEM,
    /// OMPX_ERR_MISMATCH.
    enum class contents { undefined, zero };
    result<void *> allocate(ompx_mem_kind_t kind, std::size_t nbytes, std::size_t alignment,
                            contents initial = contents::undefined);
    /// Frees an allocation. Collective for symmetric and asymmetric memory: frees after all ranks
    /// have called. Null is allowed. Errors: OMPX_ERR_ADDRESS unless `ptr` starts an allocation.
    status free(void *ptr);
    /// Allocates or frees memory of a device; collective as on the host. Errors: in addition
    /// OMPX_ERR_UNSUPPORTED if the device's memory is not in the global address space.
    result<void *> allocate_on_device(int device, ompx_mem_kind_t kind, std::size_t nbytes);
    status free_on_device(int device, void *ptr);
    /// Allocates anew, copies and frees: symmetric (collective) and local memory.
    result<void *> reallocate(void *ptr, std::size_t nbytes);

    /// Ends the job because of `failure`, described by `message`; after a timeout or the loss of a
    /// peer with the stacks of all ranks. The caller exits afterwards.
    void give_up(int failure, int code, std::string_view message) noexcept;

private:
    explicit runtime(const settings &values)
        : settings_(values), statistics_(values.runtime.stats), trace_(values.runtime.trace_file) {}
    status build();
    [[nodiscard]] rma::transfer_observer transfer_observer();
    /// Reports a dead peer: ends the job or fails all waits. Any thread.
    void on_peer_lost(world_rank peer, std::string why);
    result<memory::allocation> find_start(const void *ptr) const;
    result<std::uint64_t> allocate_in_segment(ompx_mem_kind_t kind, std::size_t nbytes,
                                              std::size_t alignment);
    /// Compares call and outcome on all ranks, after each has tried to allocate `nbytes`.
    status agree_on_allocation(const sync::call_signature &call, std::size_t nbytes,
                               const result<std::uint64_t> &taken, const char *remedy);

    // Constructed in this order, destroyed in reverse.
    settings settings_;
    statistics statistics_;
    trace trace_;
    std::unique_ptr<launch::launcher> launcher_;
    std::unique_ptr<stacks::stack_reporter> stacks_;
    std::unique_ptr<transport::arena> arena_;
    std::unique_ptr<offload::preregistered_segments> preregistered_; ///< the conduit may use some
    std::unique_ptr<transport::conduit> conduit_;
    std::unique_ptr<messaging::engine> engine_;
    std::unique_ptr<messaging::call_service> calls_;
    std::unique_ptr<memory::segment> segment_;
    std::unique_ptr<memory::directory> directory_;
    std::unique_ptr<memory::address_space> space_;
    std::unique_ptr<rma::transfers> transfers_;
    std::unique_ptr<offload::devices> devices_;
    std::uint64_t num_asymmetric_on_devices_ = 0; ///< collective calls: one thread at a time
    std::unique_ptr<sync::locks> locks_;
    std::unique_ptr<group::segment_workspace> workspace_;
    std::unique_ptr<coll::collectives> collectives_; ///< used by queued calls of groups
    std::unique_ptr<device_coll::device_collectives>
        device_collectives_; ///< used by queued calls of groups
    std::unique_ptr<group::group_registry> groups_;
};

} // namespace diomp::runtime
