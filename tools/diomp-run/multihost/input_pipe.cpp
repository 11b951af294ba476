// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "input_pipe.h"

#include "core/pipe.h"

#include <cerrno>
#include <sys/epoll.h>
#include <unistd.h>

namespace diomp::run {

result<std::unique_ptr<input_pipe>> input_pipe::create(event_loop &loop, unique_fd &reading_end,
                                                       std::function<void(std::size_t)> on_ack) {
    auto opened = open_pipe();
    DIOMP_TRY(opened);
    pipe_ends ends = opened.take();
    DIOMP_TRY(stop_blocking(ends.writing));
    reading_end = std::move(ends.reading);
    return std::unique_ptr<input_pipe>(
        new input_pipe(loop, std::move(ends.writing), std::move(on_ack)));
}

void input_pipe::add(std::string_view text) {
    ended_ = ended_ || text.empty();
    waiting_ += text;
    write_some();
}

void input_pipe::write_some() {
    while (pipe_ && !waiting_.empty()) {
        ssize_t const size = write(pipe_.get(), waiting_.data(), waiting_.size());
        if (size > 0) {
            waiting_.erase(0, static_cast<std::size_t>(size));
            on_ack_(static_cast<std::size_t>(size));
        } else if (size < 0 && errno == EAGAIN) {
            if (token_ == event_loop::token::none) {
                auto token =
                    loop_.add(pipe_.get(), EPOLLOUT, [this](std::uint32_t) { write_some(); });
                token_ = token ? token.value() : event_loop::token::none;
            }
            return;
        } else if (size < 0 && errno != EINTR) {
            waiting_.clear();
            ended_ = true;
            on_ack_(0);
        }
    }
    loop_.remove(token_);
    if (ended_) {
        pipe_.reset();
    }
}

} // namespace diomp::run
