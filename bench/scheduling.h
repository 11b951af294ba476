// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Delays by the scheduler: how long this process's threads were runnable without a core, and how
// long the hypervisor kept the machine's cores. Sampled about every millisecond, so that recent
// intervals can be examined afterwards, also those of another rank's calls.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <dirent.h>
#include <fcntl.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace diomp::bench {

inline std::int64_t now_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now); // one clock for all processes of a machine
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// Totals since the start, in nanoseconds.
struct scheduler_delay {
    std::int64_t of_caller = 0;  ///< the calling thread was runnable and had no core
    std::int64_t of_helpers = 0; ///< the process's other threads, summed
    std::int64_t stolen = 0;     ///< all cores of the machine, by the hypervisor

    scheduler_delay operator-(const scheduler_delay &earlier) const {
        return {of_caller - earlier.of_caller, of_helpers - earlier.of_helpers,
                stolen - earlier.stolen};
    }
};

/// For the thread that constructs it. Threads that start later are not included.
class scheduling_history {
public:
    scheduling_history() {
        DIR *const threads = ::opendir("/proc/self/task");
        for (const dirent *entry = nullptr;
             threads != nullptr && (entry = ::readdir(threads)) != nullptr;) {
            if (entry->d_name[0] != '.') {
                add_thread(entry->d_name);
            }
        }
        if (threads != nullptr) {
            ::closedir(threads);
        }
        stat_ = ::open("/proc/stat", O_RDONLY | O_CLOEXEC);
        sample_now(now_ns(), true);
    }
    ~scheduling_history() {
        for (int const each : helpers_) {
            ::close(each);
        }
        ::close(own_);
        ::close(stat_);
    }
    scheduling_history(const scheduling_history &) = delete;
    scheduling_history &operator=(const scheduling_history &) = delete;

    /// Returns whether the kernel counts delays (CONFIG_SCHED_INFO).
    [[nodiscard]] bool is_available() const { return own_ >= 0; }

    /// Samples if the interval is over. Call often; usually costs a comparison.
    void sample_if_due(std::int64_t now) {
        if (now - samples_.back().time >= sample_interval_ns) {
            sample_now(now, now - stolen_at_ >= stolen_interval_ns);
        }
    }
    /// Takes a sample at once.
    void sample_now(std::int64_t now, bool with_stolen) {
        sample next{now, samples_.empty() ? scheduler_delay{} : samples_.back().total};
        next.total.of_caller = run_delay(own_);
        next.total.of_helpers = 0;
        for (int const each : helpers_) {
            next.total.of_helpers += run_delay(each);
        }
        if (with_stolen) {
            next.total.stolen = stolen();
            stolen_at_ = now;
        }
        samples_.push_back(next);
        if (samples_.size() > max_samples) {
            samples_.pop_front();
        }
    }

    /// Returns the delays between two times: from the last sample before to the first one after.
    [[nodiscard]] scheduler_delay between(std::int64_t begin, std::int64_t end) const {
        auto const is_earlier = [](const sample &each, std::int64_t time) {
            return each.time < time;
        };
        auto first = std::lower_bound(samples_.begin(), samples_.end(), begin, is_earlier);
        if (first != samples_.begin()) {
            --first;
        }
        auto last = std::lower_bound(first, samples_.end(), end, is_earlier);
        if (last == samples_.end()) {
            --last;
        }
        return last->total - first->total;
    }

private:
    static constexpr std::int64_t sample_interval_ns = 1'000'000;
    static constexpr std::int64_t stolen_interval_ns =
        50'000'000; // reading /proc/stat is expensive
    static constexpr std::size_t max_samples = 1 << 17;

    struct sample {
        std::int64_t time;
        scheduler_delay total;
    };

    void add_thread(const std::string &name) {
        std::string const path = "/proc/self/task/" + name + "/schedstat";
        int const opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (opened >= 0 && std::atoi(name.c_str()) == ::gettid()) {
            own_ = opened;
        } else if (opened >= 0) {
            helpers_.push_back(opened);
        }
    }

    /// Reads the second number of "<ns on a core> <ns runnable without one> <time slices>".
    static std::int64_t run_delay(int file) {
        char text[128] = {};
        long long delay = 0;
        bool const is_read = ::pread(file, text, sizeof(text) - 1, 0) > 0 &&
                             std::sscanf(text, "%*s %lld", &delay) == 1;
        return is_read ? delay : 0;
    }

    /// Reads the eighth number of the first line of /proc/stat, in clock ticks.
    std::int64_t stolen() const {
        char text[256] = {};
        long long ticks = 0;
        bool const is_read = ::pread(stat_, text, sizeof(text) - 1, 0) > 0 &&
                             std::sscanf(text, "cpu %*s %*s %*s %*s %*s %*s %*s %lld", &ticks) == 1;
        return is_read ? ticks * (1'000'000'000 / ::sysconf(_SC_CLK_TCK)) : 0;
    }

    int own_ = -1;
    std::vector<int> helpers_;
    int stat_ = -1;
    std::int64_t stolen_at_ = 0;
    std::deque<sample> samples_;
};

} // namespace diomp::bench
