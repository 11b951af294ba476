// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The object that owns all modules: start-up in order, shutdown in reverse order.
//
// Threads: "diomp-progress" (messaging/engine) handles messages while the program computes;
// "diomp-coll" (collective), one per group with non-blocking collectives.
#pragma once

#include "config/settings.h"
#include "runtime/collective_layer.h"
#include "runtime/internal/statistics.h"
#include "runtime/internal/trace.h"
#include "runtime/job_connection.h"
#include "runtime/pairwise_layer.h"

#include <memory>

namespace diomp::runtime {

class collective_allocator;

/// Any thread, except start, finish and the destructor.
class runtime {
public:
    /// Starts all modules. Collective over the job; blocks. Returns the runtime once all run.
    static result<std::unique_ptr<runtime>> start(const settings &values,
                                                  std::unique_ptr<launch::launcher> launcher);
    ~runtime();

    /// Completes this rank's transfers and waits until all ranks have called. Collective. Other
    /// threads may still make calls meanwhile. Then close the connection, when no thread makes
    /// calls any more.
    status synchronize_at_end();

    [[nodiscard]] const settings &values() const { return settings_; }
    [[nodiscard]] const launch::job_info &job() const { return connection_.job(); }
    [[nodiscard]] job_connection &connection() { return connection_; }
    [[nodiscard]] memory::segment &segment() { return *segment_; }
    [[nodiscard]] memory::directory &directory() { return *directory_; }
    [[nodiscard]] memory::address_space &space() { return *space_; }
    [[nodiscard]] rma::transfers &transfers() { return *transfers_; }
    [[nodiscard]] offload::devices &devices() { return *devices_; }
    [[nodiscard]] sync::locks &locks() { return pairwise_.locks(); }
    [[nodiscard]] channels::channel_registry &channels() { return pairwise_.channels(); }
    [[nodiscard]] cart::cart_registry &carts() { return pairwise_.carts(); }
    [[nodiscard]] collective_layer &collectives() { return collectives_; }
    [[nodiscard]] collective_allocator &allocator() { return *allocator_; }
    [[nodiscard]] statistics &stats() { return statistics_; }
    [[nodiscard]] trace &tracer() { return trace_; }
    /// Whether calls are timed, for statistics or a trace.
    [[nodiscard]] bool observes() const { return statistics_.enabled() || trace_.enabled(); }

private:
    runtime(const settings &values, std::unique_ptr<launch::launcher> launcher);
    status build();

    // Constructed in this order, destroyed in reverse.
    settings settings_;
    statistics statistics_;
    trace trace_;
    job_connection connection_;
    std::unique_ptr<memory::segment> segment_;
    std::unique_ptr<memory::directory> directory_;
    std::unique_ptr<memory::address_space> space_;
    std::unique_ptr<rma::transfers> transfers_;
    std::unique_ptr<offload::devices> devices_;
    pairwise_layer pairwise_;
    collective_layer collectives_;
    std::unique_ptr<collective_allocator> allocator_;
};

} // namespace diomp::runtime
