// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "user_signal.h"

#include "base/read_file.h"
#include "orphans.h"
#include "rank_link.h"

#include <fmt/format.h>

#include <charconv>
#include <csignal>
#include <cstdint>
#include <optional>
#include <unistd.h>

namespace diomp::run {
namespace {

/// The mask after a key such as "SigCgt:\t"; bit n - 1 is signal n.
std::optional<std::uint64_t> mask_of(std::string_view process_status, std::string_view key) {
    std::size_t const found = process_status.find(key);
    if (found == std::string_view::npos) {
        return std::nullopt;
    }
    std::string_view const text = process_status.substr(found + key.size());
    std::uint64_t mask = 0;
    auto const parsed = std::from_chars(text.data(), text.data() + text.size(), mask, 16);
    return parsed.ec == std::errc() ? std::optional(mask) : std::nullopt;
}

bool would_end_process(pid_t pid, int signal) {
    auto const text = read_file(fmt::format("/proc/{}/status", pid));
    return text && would_end(text.value(), signal);
}

} // namespace

bool would_end(std::string_view process_status, int signal) {
    for (std::string_view const key : {"\nSigCgt:\t", "\nSigIgn:\t", "\nSigBlk:\t"}) {
        auto const mask = mask_of(process_status, key);
        if (!mask || (*mask >> (signal - 1) & 1) != 0) {
            return false;
        }
    }
    return true;
}

bool shows_stacks_at(int signal, const rank_process &rank) {
    if ((signal != SIGUSR1 && signal != SIGUSR2) || rank.ended || !rank.link ||
        !rank.link->can_show_stacks() || !proc_is_ours()) {
        return false;
    }
    // A script may have started the program that has joined. In a PID namespace of its own the
    // rank has another number here: no process of that number is in the rank's group.
    pid_t const started = rank.process.pid();
    pid_t const joined = rank.link->joined_pid();
    return started > 0 && ::getpgid(joined) == started && would_end_process(started, signal) &&
           (joined == started || would_end_process(joined, signal));
}

} // namespace diomp::run
