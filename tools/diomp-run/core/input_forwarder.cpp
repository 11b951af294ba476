// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "input_forwarder.h"

#include "pipe.h"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

namespace diomp::run {

result<unique_fd> input_forwarder::open(event_loop &loop,
                                        std::unique_ptr<input_forwarder> &forwarder) {
    if (isatty(STDIN_FILENO) == 0) {
        unique_fd copy(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
        if (!copy) {
            return system_error("cannot copy standard input", errno);
        }
        return copy;
    }
    auto opened = open_pipe();
    DIOMP_TRY(opened);
    pipe_ends ends = opened.take();
    DIOMP_TRY(stop_blocking(ends.writing));
    forwarder.reset(new input_forwarder(loop, std::move(ends.writing)));
    forwarder->resume();
    return std::move(ends.reading);
}

input_forwarder::~input_forwarder() {
    loop_.remove(terminal_token_);
    close_pipe();
}

void input_forwarder::resume() {
    // A read from the background would stop diomp-run (SIGTTIN).
    bool const foreground = tcgetpgrp(STDIN_FILENO) == getpgrp();
    if (!foreground || !pipe_ || !waiting_.empty()) {
        loop_.remove(terminal_token_);
    } else if (terminal_token_ == event_loop::token::none) {
        auto token = loop_.add(STDIN_FILENO, EPOLLIN, [this](std::uint32_t) { read_terminal(); });
        terminal_token_ = token ? token.value() : event_loop::token::none;
    }
}

void input_forwarder::read_terminal() {
    if (tcgetpgrp(STDIN_FILENO) != getpgrp()) {
        loop_.remove(terminal_token_);
        return;
    }
    std::array<char, 4096> buffer{};
    ssize_t const size = read(STDIN_FILENO, buffer.data(), buffer.size());
    if (size > 0) {
        waiting_.append(buffer.data(), static_cast<std::size_t>(size));
        write_pipe();
    } else if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
        loop_.remove(terminal_token_);
        close_pipe(); // Ctrl-D, or the terminal was closed
    }
}

void input_forwarder::write_pipe() {
    ssize_t const size = write(pipe_.get(), waiting_.data(), waiting_.size());
    if (size > 0) {
        waiting_.erase(0, static_cast<std::size_t>(size));
    } else if (size < 0 && errno != EAGAIN && errno != EINTR) {
        waiting_.clear(); // rank 0 has closed its input
        close_pipe();
    }
    if (!waiting_.empty() && pipe_token_ == event_loop::token::none) {
        auto token = loop_.add(pipe_.get(), EPOLLOUT, [this](std::uint32_t) { write_pipe(); });
        pipe_token_ = token ? token.value() : event_loop::token::none;
    } else if (waiting_.empty()) {
        loop_.remove(pipe_token_);
    }
    resume();
}

void input_forwarder::close_pipe() {
    loop_.remove(pipe_token_);
    pipe_.reset();
}

} // namespace diomp::run
