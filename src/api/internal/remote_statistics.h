// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// DIOMP_STATS and DIOMP_TRACE for a client of device services, in the format of ranks: a table of
// its operations on each remote device, printed when it ends, and a trace file. In a process that
// is also a rank, the events are in the rank's trace.
#pragma once

#include "config/settings.h"
#include "offload/remote/observer.h"
#include "runtime/runtime.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace diomp::api {

/// Any thread. Names are never freed, since a trace that is written later may refer to them.
class remote_statistics final : public offload::remote::client_observer {
public:
    /// Null if neither statistics nor a trace is enabled.
    static std::unique_ptr<remote_statistics> make(const settings &values);

    void moved(std::size_t device, direction which, carrier by, std::size_t nbytes,
               time_point begin, time_point end) override;
    void sent(std::size_t device, std::size_t nbytes) override;
    void replied(std::size_t device, std::size_t nbytes, std::uint64_t kernel, time_point begin,
                 time_point end) override;
    void waited(std::size_t device, time_point begin, time_point end) override;
    void loaded(std::size_t device, std::size_t nbytes, time_point begin, time_point end) override;
    void found(std::size_t device, std::uint64_t address, const std::string &symbol) override;
    void ran(std::size_t device, std::span<const offload::remote::kernel_time> kernels) override;

    /// Call after the client has ended. Prints the table, and writes the trace unless a rank has
    /// taken its events. `labels` [device].
    void finish(const std::vector<std::string> &labels);
    /// Moves the events into the trace of this process's rank, which is about to be written. Later
    /// events are dropped.
    void hand_over(runtime::runtime &running);

private:
    explicit remote_statistics(const settings &values)
        : stats_(values.runtime.stats), trace_(values.runtime.trace_file),
          stats_file_(values.runtime.stats_file) {}
    void record(const char *what, std::size_t device, const char *by, std::size_t nbytes,
                time_point begin, time_point end, bool is_call);

    runtime::statistics stats_;
    runtime::trace trace_;
    std::string stats_file_;
    std::mutex mutex_; ///< leaf lock; guards the members below
    std::map<std::pair<std::size_t, std::uint64_t>, const char *> kernels_;
    bool is_handed_over_ = false;
};

/// Function and line of a target region: "__omp_offloading_fd00_1234_main_l12" gives "main:12"; C++
/// names are demangled.
[[nodiscard]] std::string kernel_title(const std::string &symbol);

} // namespace diomp::api
