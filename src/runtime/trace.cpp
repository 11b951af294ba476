// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/internal/trace.h"

#include "base/log.h"
#include "base/output_file.h"

#include <fmt/format.h>

#include <unistd.h>
#include <utility>

namespace diomp::runtime {
namespace {

using std::chrono::nanoseconds;

std::int64_t count_ns(trace::time_point when) {
    return std::chrono::duration_cast<nanoseconds>(when.time_since_epoch()).count();
}

double microseconds(std::int64_t time_ns) { return static_cast<double>(time_ns) * 1e-3; }

/// From the steady clock, which starts with the machine, to the time of day, so that traces of
/// several hosts align as well as their clocks do. Counted from midnight (UTC): a double then holds
/// the microseconds to the nanosecond.
std::int64_t offset_to_time_of_day_ns() {
    auto const steady = std::chrono::steady_clock::now();
    auto const now = std::chrono::system_clock::now();
    auto const since_midnight = now - std::chrono::floor<std::chrono::days>(now);
    return std::chrono::duration_cast<nanoseconds>(since_midnight).count() - count_ns(steady);
}

} // namespace

void trace::add(const trace_event &happened) {
    std::lock_guard const guard(mutex_);
    if (events_.size() >= max_events) {
        ++num_dropped_;
        return;
    }
    events_.push_back(happened);
}

void trace::slice(const char *function, const char *path, std::size_t nbytes, time_point begin,
                  time_point end) {
    thread_local std::int32_t const thread = ::gettid();
    add({function, path, count_ns(begin), count_ns(end) - count_ns(begin), nbytes, thread, -1});
}

void trace::flight(const char *path, int peer, std::size_t nbytes, time_point begin,
                   time_point end) {
    add({path, "", count_ns(begin), count_ns(end) - count_ns(begin), nbytes, 0, peer});
}

void trace::interval(const char *name, std::size_t nbytes, time_point begin, time_point end) {
    add({name, "", count_ns(begin), count_ns(end) - count_ns(begin), nbytes, 0, no_peer});
}

void trace::take_from(trace &other) {
    std::vector<trace_event> taken;
    std::uint64_t num_dropped = 0;
    {
        std::lock_guard const guard(other.mutex_);
        taken.swap(other.events_);
        num_dropped = std::exchange(other.num_dropped_, 0);
    }
    for (trace_event const &each : taken) {
        add(each);
    }
    std::lock_guard const guard(mutex_);
    num_dropped_ += num_dropped;
}

std::string trace::path_of(world_rank rank, int num_ranks) const {
    std::string path = path_;
    std::string const number = fmt::format("{}", rank.value());
    if (auto const at = path.find("%r"); at != std::string::npos) {
        path.replace(at, 2, number);
    } else if (num_ranks > 1) {
        auto const dot = path.rfind('.');
        bool const has_extension = dot != std::string::npos && path.find('/', dot) == path.npos;
        path.insert(has_extension ? dot : path.size(), "." + number);
    }
    return path;
}

std::string trace::describe(const trace_event &each, int rank, std::int64_t offset_ns,
                            std::uint64_t number) {
    double const begin_us = microseconds(each.begin_ns + offset_ns);
    if (each.peer == -1) {
        return fmt::format(",\n"
                           R"({{"ph":"X","cat":"call","name":"{}","pid":{},"tid":{},"ts":{:.3f},)"
                           R"("dur":{:.3f},"args":{{"bytes":{},"path":"{}"}}}})",
                           each.name, rank, each.thread, begin_us, microseconds(each.nanoseconds),
                           each.nbytes, each.path);
    }
    return fmt::format(",\n"
                       R"({{"ph":"b","cat":"flight","name":"{0}{1}","id":{2},"pid":{3},)"
                       R"("tid":0,"ts":{4:.3f},"args":{{"bytes":{5}}}}})"
                       ",\n"
                       R"({{"ph":"e","cat":"flight","name":"{0}{1}","id":{2},"pid":{3},)"
                       R"("tid":0,"ts":{6:.3f}}})",
                       each.name, each.peer == no_peer ? "" : fmt::format(" rank {}", each.peer),
                       number, rank, begin_us, each.nbytes,
                       begin_us + microseconds(each.nanoseconds));
}

status trace::write(const launch::job_info &job) {
    std::lock_guard const guard(mutex_);
    auto file = output_file::create("the trace", path_of(job.rank, job.size));
    if (!file) {
        return error(file.failure().code(), file.failure().message(),
                     "set DIOMP_TRACE to a file that can be written on every node");
    }
    int const rank = job.rank.value();
    std::int64_t const offset_ns = offset_to_time_of_day_ns();
    file.value().write(fmt::format(
        R"([{{"ph":"M","name":"process_name","pid":{},"args":{{"name":"rank {} on {}"}}}})", rank,
        rank, job.host));
    std::uint64_t num_flights = 0;
    for (trace_event const &each : events_) {
        num_flights += each.peer == -1 ? 0 : 1;
        file.value().write(describe(each, rank, offset_ns, num_flights));
    }
    file.value().write("]\n");
    if (num_dropped_ > 0) {
        log(log_level::warn, "the trace lacks the last {} events: {} are kept", num_dropped_,
            max_events);
    }
    return file.value().close();
}

} // namespace diomp::runtime
