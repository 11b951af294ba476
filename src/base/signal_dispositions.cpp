// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/signal_dispositions.h"

#include <charconv>

namespace diomp {
namespace {

/// The numbers of real-time signals depend on the C library.
constexpr int last_signal = 31;

void set_disposition(int signal, void (*disposition)(int)) {
    struct sigaction action{};
    action.sa_handler = disposition;
    sigaction(signal, &action, nullptr); // fails for SIGKILL and SIGSTOP, as expected
}

} // namespace

original_signals original_signals::of_this_process() {
    original_signals found;
    sigprocmask(SIG_SETMASK, nullptr, &found.mask_);
    sigemptyset(&found.ignored_);
    for (int signal = 1; signal < NSIG; ++signal) {
        struct sigaction now{};
        if (sigaction(signal, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
            now.sa_handler == SIG_IGN) {
            sigaddset(&found.ignored_, signal);
        }
    }
    return found;
}

void original_signals::restore_dispositions() const {
    for (int signal = 1; signal < NSIG; ++signal) {
        set_disposition(signal, ignores(signal) ? SIG_IGN : SIG_DFL);
    }
}

void original_signals::restore_mask() const { sigprocmask(SIG_SETMASK, &mask_, nullptr); }

std::string original_signals::ignored_list() const {
    std::string list;
    for (int signal = 1; signal <= last_signal; ++signal) {
        if (ignores(signal)) {
            list += (list.empty() ? "" : ",") + std::to_string(signal);
        }
    }
    return list;
}

void ignore_signals(std::string_view list) {
    while (!list.empty()) {
        auto const comma = list.find(',');
        std::string_view const word = list.substr(0, comma);
        list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
        int signal = 0;
        auto const parsed = std::from_chars(word.begin(), word.end(), signal);
        if (parsed.ec == std::errc() && parsed.ptr == word.end() && signal >= 1 &&
            signal <= last_signal) {
            set_disposition(signal, SIG_IGN);
        }
    }
}

} // namespace diomp
