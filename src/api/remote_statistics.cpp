// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "api/internal/remote_statistics.h"

#include "api/internal/state.h"
#include "base/log.h"
#include "launch/host.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cxxabi.h>
#include <set>
#include <string_view>
#include <unistd.h>

namespace diomp::api {
namespace {

namespace remote = offload::remote;

/// A permanent copy of the text: statistics and traces keep the pointer.
const char *intern(const std::string &text) {
    static std::mutex mutex;
    static auto *const known = new std::set<std::string>; // never destroyed
    std::lock_guard const guard(mutex);
    return known->insert(text).first->c_str();
}

const char *verb(remote::client_observer::direction which) {
    switch (which) {
    case remote::client_observer::direction::to_device:
        return "to";
    case remote::client_observer::direction::from_device:
        return "from";
    default:
        return "between devices, from";
    }
}

const char *name(remote::client_observer::carrier by) {
    switch (by) {
    case remote::client_observer::carrier::message:
        return "message";
    case remote::client_observer::carrier::network:
        return "network";
    case remote::client_observer::carrier::memory:
        return "memory";
    default:
        return "session";
    }
}

int number_in_environment(const char *variable, int otherwise) {
    char const *const text = std::getenv(variable);
    int value = otherwise;
    if (text != nullptr) {
        std::from_chars(text, text + std::string_view(text).size(), value);
    }
    return value;
}

/// Job data of a process that is not a rank, from diomp-run's environment variables if they are
/// set.
launch::job_info job_of_process() {
    launch::job_info job;
    job.host = launch::host_name();
    // g_job remains when the runtime has ended.
    job.size = std::max(g_job.size, number_in_environment("DIOMP_LAUNCH_SIZE", 1));
    job.rank = world_rank(g_job.size > 1 ? g_job.rank : number_in_environment("DIOMP_RANK", 0));
    return job;
}

launch::job_info current_job() {
    runtime::runtime *const running = g_runtime.load(std::memory_order_acquire);
    return running != nullptr ? running->job() : job_of_process();
}

} // namespace

std::string kernel_title(const std::string &symbol) {
    constexpr std::string_view prefix = "__omp_offloading_";
    std::string_view rest = symbol;
    if (!rest.starts_with(prefix)) {
        return symbol;
    }
    rest.remove_prefix(prefix.size());
    for (int i = 0; i < 2; ++i) { // the file's device and number
        auto const end = rest.find('_');
        if (end == std::string_view::npos) {
            return symbol;
        }
        rest.remove_prefix(end + 1);
    }
    auto const line = rest.rfind("_l");
    std::string const function(rest.substr(0, line));
    int outcome = 0;
    std::unique_ptr<char, decltype(&std::free)> const demangled(
        abi::__cxa_demangle(function.c_str(), nullptr, nullptr, &outcome), std::free);
    std::string title = outcome == 0 ? demangled.get() : function;
    if (line != std::string_view::npos) {
        title.append(":").append(rest.substr(line + 2));
    }
    std::ranges::replace(title, '"', '\''); // traces quote it
    return title;
}

std::unique_ptr<remote_statistics> remote_statistics::make(const settings &values) {
    if (values.runtime.stats == stats_mode::off && values.runtime.trace_file.empty()) {
        return nullptr;
    }
    return std::unique_ptr<remote_statistics>(new remote_statistics(values));
}

/// `is_call`: the interval is a call of a thread of the program; otherwise an operation in flight.
void remote_statistics::record(const char *what, std::size_t device, const char *by,
                               std::size_t nbytes, time_point begin, time_point end, bool is_call) {
    const char *const function = intern(fmt::format("{} remote {}", what, device));
    if (stats_.enabled()) {
        stats_.record(function, by, nbytes, end - begin, nullptr);
    }
    if (trace_.enabled() && is_call) {
        trace_.slice({function, by, nbytes, runtime::trace::no_peer, runtime::trace::no_group},
                     begin, end);
    } else if (trace_.enabled()) {
        trace_.interval(function, nbytes, begin, end);
    }
}

void remote_statistics::moved(std::size_t device, direction which, carrier by, std::size_t nbytes,
                              time_point begin, time_point end) {
    record(verb(which), device, name(by), nbytes, begin, end, by == carrier::message);
}

void remote_statistics::sent(std::size_t device, std::size_t nbytes) {
    if (stats_.enabled()) {
        stats_.record_all(intern(fmt::format("messages to remote {}", device)), "", 1, nbytes, {},
                          {});
    }
}

void remote_statistics::replied(std::size_t device, std::size_t nbytes, std::uint64_t kernel,
                                time_point begin, time_point end) {
    if (stats_.enabled()) {
        stats_.record(intern(fmt::format("replies of remote {}", device)), "round trip", nbytes,
                      end - begin, nullptr);
    }
    if (trace_.enabled()) {
        const char *title = "round trip";
        {
            std::lock_guard const guard(mutex_);
            auto const known = kernels_.find({device, kernel});
            title = known == kernels_.end() ? title : known->second;
        }
        trace_.interval(intern(fmt::format("{} on remote {}", title, device)), nbytes, begin, end);
    }
}

void remote_statistics::waited(std::size_t device, time_point begin, time_point end) {
    record("wait for", device, "", 0, begin, end, true);
}

void remote_statistics::loaded(std::size_t device, std::size_t nbytes, time_point begin,
                               time_point end) {
    record("load image on", device, "", nbytes, begin, end, true);
}

void remote_statistics::found(std::size_t device, std::uint64_t address,
                              const std::string &symbol) {
    if (address != 0 && trace_.enabled()) {
        std::lock_guard const guard(mutex_);
        kernels_.try_emplace({device, address}, intern(kernel_title(symbol)));
    }
}

void remote_statistics::ran(std::size_t device,
                            std::span<const offload::remote::kernel_time> kernels) {
    for (auto const &each : kernels) {
        stats_.record_all(intern("kernel " + kernel_title(each.name)),
                          intern(fmt::format("remote {}", device)), each.calls, 0,
                          std::chrono::nanoseconds(each.total_ns),
                          std::chrono::nanoseconds(each.longest_ns));
    }
}

void remote_statistics::hand_over(runtime::runtime &running) {
    std::lock_guard const guard(mutex_);
    is_handed_over_ = true;
    running.tracer().take_from(trace_);
}

void remote_statistics::finish(const std::vector<std::string> &labels) {
    launch::job_info const job = current_job();
    if (stats_.enabled()) {
        std::string heading = fmt::format("diomp: statistics of the remote devices of rank {} of "
                                          "{} on {} (process {})",
                                          job.rank.value(), job.size, job.host, ::getpid());
        for (std::size_t i = 0; i < labels.size(); ++i) {
            heading += fmt::format("\n  remote {}: {}", i, labels[i]);
        }
        print_table(stats_.table(heading, {}), stats_file_, job.rank.value());
    }
    std::lock_guard const guard(mutex_);
    // A rank that still runs writes these events with its own.
    bool const is_kept = is_handed_over_ || g_runtime.load(std::memory_order_acquire) != nullptr;
    if (trace_.enabled() && !is_kept) {
        if (status const written = trace_.write(job); !written) {
            log(log_level::warn, "{}", written.failure().message());
        }
    }
}

} // namespace diomp::api
