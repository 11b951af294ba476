// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/log.h"

#include "base/log_setup.h"

#include <atomic>
#include <unistd.h>

namespace diomp {
namespace {

// The log must work before the runtime exists and after it is destroyed, hence the only globals
// outside api/.
std::atomic<log_level> g_level{log_level::warn};
std::atomic<bool> g_is_set{false};
std::atomic<int> g_descriptor{STDERR_FILENO};
std::string &line_prefix() {
    static auto *text = new std::string; // never destroyed: threads may log during exit
    return *text;
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

} // namespace

void set_log(log_level level, std::string prefix) {
    line_prefix() = std::move(prefix);
    g_level.store(level, std::memory_order_release);
    g_is_set.store(true, std::memory_order_release);
}

void set_log_if_unset(log_level level, std::string prefix) {
    if (!g_is_set.load(std::memory_order_acquire)) {
        set_log(level, std::move(prefix));
    }
}

void set_log_descriptor(int descriptor) {
    g_descriptor.store(descriptor, std::memory_order_release);
}

log_level current_log_level() { return g_level.load(std::memory_order_relaxed); }

void write_log(log_level level, std::string_view text) noexcept {
    std::string const line = fmt::format("diomp: {}{}: {}\n", line_prefix(), name(level), text);
    [[maybe_unused]] auto const written =
        ::write(g_descriptor.load(std::memory_order_relaxed), line.data(), line.size());
}

} // namespace diomp
