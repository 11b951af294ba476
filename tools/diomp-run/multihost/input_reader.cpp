// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "input_reader.h"

#include "agent_protocol.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <sys/epoll.h>
#include <unistd.h>

namespace diomp::run {

bool input_reader::may_read() const {
    // A read of the terminal from the background would stop diomp-run (SIGTTIN).
    bool const background = isatty(STDIN_FILENO) != 0 && tcgetpgrp(STDIN_FILENO) != getpgrp();
    return !ended_ && !background && in_flight_bytes_ < max_unacked_bytes;
}

void input_reader::resume() {
    if (!may_read()) {
        loop_.remove(token_);
        return;
    }
    if (token_ == event_loop::token::none) {
        auto token = loop_.add(STDIN_FILENO, EPOLLIN, [this](std::uint32_t) {
            read_some();
            resume();
        });
        if (token) {
            token_ = token.value();
            return;
        }
        while (may_read()) { // a regular file, which epoll refuses, is always ready
            read_some();
        }
    }
}

void input_reader::read_some() {
    if (!may_read()) {
        return;
    }
    std::array<char, std::size_t{16} * 1024> buffer; // NOLINT(*-member-init): filled by read
    ssize_t const size = read(STDIN_FILENO, buffer.data(), buffer.size());
    if (size > 0) {
        in_flight_bytes_ += static_cast<std::size_t>(size);
        on_text_({buffer.data(), static_cast<std::size_t>(size)});
    } else if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
        ended_ = true; // also Ctrl-D, or a closed terminal
        on_text_({});
    }
}

void input_reader::on_ack(std::size_t bytes) {
    ended_ = ended_ || bytes == 0;
    in_flight_bytes_ -= std::min(bytes, in_flight_bytes_);
    resume();
}

} // namespace diomp::run
