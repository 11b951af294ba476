// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "report.h"

#include <fmt/format.h>

#include <cstring>
#include <sys/wait.h>

namespace diomp::run {

std::optional<exit_info> peek_exit(pid_t pid) {
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0) {
        return std::nullopt;
    }
    exit_info how;
    if (info.si_code == CLD_EXITED) {
        how.code = info.si_status;
    } else {
        how.signal = info.si_status;
        how.core_dumped = info.si_code == CLD_DUMPED;
    }
    return how;
}

std::string signal_name(int signal) {
    const char *const name = sigabbrev_np(signal);
    return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

std::string describe(const exit_info &how) {
    if (how.signal == 0) {
        return fmt::format("exited with status {}", how.code);
    }
    const char *const text = sigdescr_np(how.signal);
    return fmt::format("was killed by signal {} ({}{}{}{}){}{}", how.signal,
                       signal_name(how.signal), text != nullptr ? ", " : "",
                       text != nullptr ? text : "", how.core_dumped ? "; core dumped" : "",
                       how.reason.empty() ? "" : ": ", how.reason);
}

std::string describe(const error &why) {
    return why.remedy().empty() ? why.message() : why.message() + "; " + why.remedy();
}

} // namespace diomp::run
