// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// DIOMP_STATS and DIOMP_TRACE of a client of device services, in the form that ranks have: a table
// of what it has done with each remote device when it ends, and a trace file. Programs that are
// ranks as well have the events in the rank's trace.
#pragma once

#include "base/settings.h"
#include "offload/remote/observer.h"
#include "runtime/runtime.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace diomp::api {

/// Names in it are never freed, since a trace that is written later may have them.
class remote_account final : public offload::remote::observer {
public:
    /// Null: the settings want neither.
    static std::unique_ptr<remote_account> make(const settings &values);

    void moved(std::size_t device, direction which, carrier by, std::size_t nbytes,
               time_point begin, time_point end) override;
    void sent(std::size_t device, std::size_t nbytes) override;
    void answered(std::size_t device, std::size_t nbytes, std::uint64_t kernel, time_point begin,
                  time_point end) override;
    void waited(std::size_t device, time_point begin, time_point end) override;
    void loaded(std::size_t device, std::size_t nbytes, time_point begin, time_point end) override;
    void found(std::size_t device, std::uint64_t address, const std::string &symbol) override;
    void ran(std::size_t device, std::span<const offload::remote::kernel_time> kernels) override;

    /// After the client's end: prints the table, and writes the trace unless a rank has taken it.
    /// `labels`: of each device.
    void finish(const std::vector<std::string> &labels);
    /// The rank of this process is about to write its trace: it takes what is there, and what comes
    /// later is left out.
    void hand_over(runtime::runtime &running);

private:
    explicit remote_account(const settings &values)
        : stats_(values.stats), trace_(values.trace_file), stats_file_(values.stats_file) {}
    void record(const char *what, std::size_t device, const char *by, std::size_t nbytes,
                time_point begin, time_point end, bool is_call);

    runtime::statistics stats_;
    runtime::trace trace_;
    std::string stats_file_;
    std::mutex mutex_; ///< leaf lock over the rest
    std::map<std::pair<std::size_t, std::uint64_t>, const char *> kernels_;
    bool is_handed_over_ = false;
};

/// "main:12" of "__omp_offloading_fd00_1234_main_l12"; functions of C++ in their source form.
[[nodiscard]] std::string kernel_title(const std::string &symbol);

} // namespace diomp::api
