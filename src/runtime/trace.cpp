// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/internal/trace.h"

#include "base/log.h"
#include "base/output_file.h"

#include <fmt/format.h>

#include <pthread.h>
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

/// Text for a JSON string; bytes that would need more than a backslash are left out.
std::string escaped(const std::string &text) {
    std::string made;
    for (char const each : text) {
        if (each == '"' || each == '\\') {
            made += '\\';
        }
        if (static_cast<unsigned char>(each) >= 0x20 && static_cast<unsigned char>(each) < 0x7f) {
            made += each;
        }
    }
    return made;
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

void trace::note_thread(std::int32_t thread) {
    char name[16] = ""; // the system's limit
    ::pthread_getname_np(::pthread_self(), name, sizeof(name));
    std::lock_guard const guard(mutex_);
    threads_[thread] = name;
}

void trace::slice(const call &what, time_point begin, time_point end) {
    thread_local std::int32_t const thread = ::gettid();
    thread_local const trace *noted_in = nullptr;
    if (noted_in != this) {
        note_thread(thread);
        noted_in = this;
    }
    add({what.function, what.path, count_ns(begin), count_ns(end) - count_ns(begin), what.nbytes,
         what.group, thread, what.peer});
}

void trace::flight(const char *path, int peer, std::size_t nbytes, time_point begin,
                   time_point end) {
    add({path, "", count_ns(begin), count_ns(end) - count_ns(begin), nbytes, no_group, no_thread,
         peer});
}

void trace::interval(const char *name, std::size_t nbytes, time_point begin, time_point end) {
    add({name, "", count_ns(begin), count_ns(end) - count_ns(begin), nbytes, no_group, no_thread,
         no_peer});
}

void trace::take_from(trace &other) {
    std::vector<trace_event> taken;
    std::map<std::int32_t, std::string> threads;
    std::uint64_t num_dropped = 0;
    {
        std::lock_guard const guard(other.mutex_);
        taken.swap(other.events_);
        threads.swap(other.threads_);
        num_dropped = std::exchange(other.num_dropped_, 0);
    }
    for (trace_event const &each : taken) {
        add(each);
    }
    std::lock_guard const guard(mutex_);
    threads_.merge(threads);
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

std::string trace::describe_call(const trace_event &each, int rank, double begin_us) {
    std::string text = fmt::format(
        ",\n"
        R"({{"ph":"X","cat":"call","name":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},)"
        R"("args":{{"bytes":{},"path":"{}")",
        each.name, rank, each.thread, begin_us, microseconds(each.nanoseconds), each.nbytes,
        each.path);
    if (each.peer != no_peer) {
        text += fmt::format(R"(,"peer":{})", each.peer);
    }
    if (each.group != no_group) {
        text += each.group == 0 ? std::string(R"(,"group":"world")")
                                : fmt::format(R"(,"group":"{:x}")", each.group);
    }
    return text + "}}";
}

std::string trace::describe(const trace_event &each, int rank, std::int64_t offset_ns,
                            std::uint64_t number) {
    double const begin_us = microseconds(each.begin_ns + offset_ns);
    if (each.thread != no_thread) {
        return describe_call(each, rank, begin_us);
    }
    bool const has_peer = each.peer != no_peer;
    return fmt::format(",\n"
                       R"({{"ph":"b","cat":"flight","name":"{0}{1}","id":{2},"pid":{3},)"
                       R"("tid":0,"ts":{4:.3f},"args":{{"bytes":{5}{6}}}}})"
                       ",\n"
                       R"({{"ph":"e","cat":"flight","name":"{0}{1}","id":{2},"pid":{3},)"
                       R"("tid":0,"ts":{7:.3f}}})",
                       each.name, has_peer ? fmt::format(" rank {}", each.peer) : "", number, rank,
                       begin_us, each.nbytes,
                       has_peer ? fmt::format(R"(,"peer":{})", each.peer) : "",
                       begin_us + microseconds(each.nanoseconds));
}

std::string trace::thread_names(int rank) const {
    std::string text;
    for (auto const &[thread, name] : threads_) {
        text += fmt::format(
            ",\n"
            R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})",
            rank, thread, escaped(name));
    }
    return text;
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
    file.value().write(fmt::format(
        ",\n"
        R"({{"ph":"M","name":"process_sort_index","pid":{0},"args":{{"sort_index":{0}}}}})",
        rank));
    file.value().write(thread_names(rank));
    std::uint64_t num_flights = 0;
    for (trace_event const &each : events_) {
        num_flights += each.thread == no_thread ? 1 : 0;
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
