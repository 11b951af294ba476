// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The one object that owns all rooms: start-up in order, shutdown in reverse order, and the
// collective calls that need more than one room (allocation).
//
// Threads: "diomp-progress" (conduit/engine) serves messages while the program computes;
// "diomp-coll" (collective) one per group that uses non-blocking collectives.
#pragma once

#include "base/settings.h"
#include "collective/collective.h"
#include "conduit/call.h"
#include "group/registry.h"
#include "launch/launch.h"
#include "memory/memory.h"
#include "offload/offload.h"
#include "rma/rma.h"
#include "runtime/device_collectives.h"
#include "runtime/statistics.h"
#include "runtime/trace.h"
#include "stacks/stacks.h"
#include "sync/lock.h"

#include <memory>
#include <string>

namespace diomp::runtime {

/// Any thread, except start, finish and the destructor.
class runtime {
public:
    /// Collective over the job. Publishes nothing before everything stands.
    static result<std::unique_ptr<runtime>> start(const settings &values,
                                                  std::unique_ptr<launch::launcher> launcher);
    ~runtime();
    runtime(const runtime &) = delete;
    runtime &operator=(const runtime &) = delete;

    /// Collective: waits until all ranks have come to their end. Calls of other threads go on.
    status meet_at_end();
    /// Collective, after that, when no thread starts anything any more: stops the progress thread
    /// and signs off at the launcher.
    status close();
    /// In place of the destructor, where the process ends while threads are still in calls: as
    /// conduit::freeze.
    void freeze() { conduit_->freeze(); }
    /// The window stays mapped when the runtime ends: what a call does in line cannot be seen from
    /// outside, and may still copy. Before the destructor.
    [[nodiscard]] std::unique_ptr<conduit::window> keep_window() { return std::move(window_); }

    [[nodiscard]] const settings &values() const { return settings_; }
    [[nodiscard]] const launch::job_info &job() const { return launcher_->info(); }
    [[nodiscard]] launch::launcher &launcher() { return *launcher_; }
    [[nodiscard]] conduit::window &window() { return *window_; }
    [[nodiscard]] conduit::conduit &transport() { return *conduit_; }
    [[nodiscard]] conduit::engine &engine() { return *engine_; }
    [[nodiscard]] memory::segment &segment() { return *segment_; }
    [[nodiscard]] memory::directory &directory() { return *directory_; }
    [[nodiscard]] memory::address_space &space() { return *space_; }
    [[nodiscard]] rma::transfers &transfers() { return *transfers_; }
    [[nodiscard]] offload::devices &devices() { return *devices_; }
    [[nodiscard]] sync::locks &locks() { return *locks_; }
    [[nodiscard]] group::group_registry &groups() { return *groups_; }
    [[nodiscard]] collective::collectives &collectives() { return *collectives_; }
    [[nodiscard]] device_collectives &collectives_on_devices() { return *device_collectives_; }
    [[nodiscard]] statistics &stats() { return statistics_; }
    [[nodiscard]] trace &tracer() { return trace_; }
    /// Whether calls are to be timed.
    [[nodiscard]] bool observes() const { return statistics_.enabled() || trace_.enabled(); }

    /// Symmetric and asymmetric are collective over the world: every rank takes its part, then all
    /// compare size, alignment and outcome, so that all fail together. nullptr is never returned.
    /// Zeroed memory is zero on every rank before any rank returns, so a put may follow at once.
    enum class contents { undefined, zero };
    result<void *> allocate(ompx_mem_kind_t kind, std::size_t nbytes, std::size_t alignment,
                            contents initial = contents::undefined);
    /// Collective for symmetric and asymmetric memory: nothing is freed before all ranks have come.
    status free(void *ptr);
    /// The same on a device. OMPX_ERR_UNSUPPORTED where its memory is not in the address space.
    result<void *> allocate_on_device(int device, ompx_mem_kind_t kind, std::size_t nbytes);
    status free_on_device(int device, void *ptr);
    /// Symmetric (collective) and local memory.
    result<void *> reallocate(void *ptr, std::size_t nbytes);

    /// Ends the job because of `failure`, which `message` tells; if it comes of a wait, with the
    /// stacks of all ranks. The caller exits afterwards.
    void give_up(int failure, int code, std::string_view message) noexcept;

private:
    explicit runtime(const settings &values)
        : settings_(values), statistics_(values.stats), trace_(values.trace_file) {}
    status build();
    [[nodiscard]] rma::flight_observer flight_observer();
    /// Any thread.
    void lose_peer(world_rank peer, std::string why);
    result<memory::allocation> find_start(const void *ptr) const;
    result<std::uint64_t> take(ompx_mem_kind_t kind, std::size_t nbytes, std::size_t alignment);
    /// After every rank took its part of `nbytes`, or could not.
    status agree_on_allocation(const sync::call_signature &call, std::size_t nbytes,
                               const result<std::uint64_t> &taken, const char *remedy);

    // In the order of construction; destroyed in reverse.
    settings settings_;
    statistics statistics_;
    trace trace_;
    std::unique_ptr<launch::launcher> launcher_;
    std::unique_ptr<stacks::watch> stacks_;
    std::unique_ptr<conduit::window> window_;
    std::unique_ptr<offload::early_segments> early_; ///< the conduit may know some
    std::unique_ptr<conduit::conduit> conduit_;
    std::unique_ptr<conduit::engine> engine_;
    std::unique_ptr<conduit::call_service> calls_;
    std::unique_ptr<memory::segment> segment_;
    std::unique_ptr<memory::directory> directory_;
    std::unique_ptr<memory::address_space> space_;
    std::unique_ptr<rma::transfers> transfers_;
    std::unique_ptr<offload::devices> devices_;
    std::uint64_t num_asymmetric_on_devices_ = 0; ///< collective calls: one thread at a time
    std::unique_ptr<sync::locks> locks_;
    std::unique_ptr<group::segment_workspace> workspace_;
    std::unique_ptr<collective::collectives> collectives_;   ///< queued calls of groups use it
    std::unique_ptr<device_collectives> device_collectives_; ///< the same
    std::unique_ptr<group::group_registry> groups_;
};

} // namespace diomp::runtime
