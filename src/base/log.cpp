// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/log.h"

#include "base/log_setup.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <memory>
#include <mutex>
#include <unistd.h>
#include <vector>

namespace diomp {
namespace {

// The log must work before the runtime exists and after it is destroyed, hence the only globals
// outside api/.
struct log_setup {
    log_levels levels;
    std::string prefix;
    bool has_time; ///< DIOMP_LOG has the word time, which is kept among the components
};
std::atomic<const log_setup *> g_setup{nullptr};
std::atomic<int> g_descriptor{STDERR_FILENO};

/// Publishes a set-up that is never destroyed: threads may log with a former one, and during exit.
void publish(const log_levels &levels, std::string prefix, bool replaces) {
    static auto *const mutex = new std::mutex;
    static auto *const all = new std::vector<std::unique_ptr<const log_setup>>;
    std::lock_guard const lock(*mutex);
    if (!replaces && g_setup.load(std::memory_order_relaxed) != nullptr) {
        return;
    }
    all->push_back(std::make_unique<const log_setup>(log_setup{
        levels, std::move(prefix),
        std::ranges::find(levels.components, "time", &log_levels::component_level::component) !=
            levels.components.end()}));
    g_setup.store(all->back().get(), std::memory_order_release);
    highest_log_level.store(levels.highest(), std::memory_order_release);
}

const char *name(log_level level) {
    switch (level) {
    case log_level::error:
        return "error";
    case log_level::warn:
        return "warning";
    case log_level::info:
        return "info";
    case log_level::debug:
        return "debug";
    case log_level::off:
        break;
    }
    return "";
}

/// Returns the time as "2026-01-31T23:59:59.123456Z ": UTC, so that lines of several hosts can be
/// sorted.
std::string time_stamp() {
    using namespace std::chrono;
    auto const now = time_point_cast<microseconds>(system_clock::now());
    auto const second = time_point_cast<seconds>(now);
    std::time_t const since_epoch = system_clock::to_time_t(second);
    std::tm calendar{};
    gmtime_r(&since_epoch, &calendar);
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z ", calendar, (now - second).count());
}

} // namespace

std::atomic<log_level> highest_log_level{log_level::warn};

void set_log(const log_levels &levels, std::string prefix) {
    publish(levels, std::move(prefix), true);
}

void set_log_if_unset(const log_levels &levels, std::string prefix) {
    publish(levels, std::move(prefix), false);
}

void set_log_descriptor(int descriptor) {
    g_descriptor.store(descriptor, std::memory_order_release);
}

int log_descriptor() { return g_descriptor.load(std::memory_order_relaxed); }

bool is_component_logged(log_level level, std::string_view component) {
    log_setup const *const setup = g_setup.load(std::memory_order_acquire);
    return setup == nullptr || level <= setup->levels.of(component);
}

void write_log(log_level level, std::string_view text) noexcept {
    int const callers_errno = errno;
    log_setup const *const setup = g_setup.load(std::memory_order_acquire);
    std::string const line =
        fmt::format("diomp: {}{}{}: {}\n", setup != nullptr && setup->has_time ? time_stamp() : "",
                    setup == nullptr ? std::string_view() : setup->prefix, name(level), text);
    [[maybe_unused]] auto const written =
        ::write(g_descriptor.load(std::memory_order_relaxed), line.data(), line.size());
    errno = callers_errno;
}

} // namespace diomp
