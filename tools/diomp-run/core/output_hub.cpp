// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "output_hub.h"

#include "pipe.h"

#include <fmt/format.h>

#include <cerrno>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace diomp::run {
namespace {

/// Delay of a partial line, too short to be noticed at a prompt.
constexpr double partial_line_delay_s = 0.02;
constexpr std::size_t read_bytes = std::size_t{64} * 1024;

bool same_file(int a, int b) {
    struct stat first{};
    struct stat second{};
    return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

} // namespace

/// An output stream of diomp-run.
struct output_hub::stream {
    stream(event_loop &loop, int fd)
        : destination(loop, fd), lines([this](std::string_view text) { destination.write(text); }) {
    }
    sink destination;
    line_merger lines;
    bool paused = false;
};

/// The reading end of one rank's pipe.
struct output_hub::channel {
    stream &to;
    unique_fd fd;
    std::size_t source;
    event_loop::token token = event_loop::token::none;
};

output_hub::output_hub(event_loop &loop, bool tag_lines, timer idle)
    : loop_(loop), tag_lines_(tag_lines), idle_(std::move(idle)), buffer_(read_bytes) {}

output_hub::~output_hub() {
    loop_.remove(idle_token_);
    for (auto &each : channels_) {
        loop_.remove(each->token);
    }
}

result<std::unique_ptr<output_hub>> output_hub::create(event_loop &loop, bool tag_lines) {
    auto idle = timer::create();
    DIOMP_TRY(idle);
    std::unique_ptr<output_hub> hub(new output_hub(loop, tag_lines, idle.take()));
    auto *const self = hub.get();
    // One stream if both are the same terminal or file, so that their lines do not mix.
    hub->streams_.push_back(std::make_unique<stream>(loop, STDOUT_FILENO));
    if (!same_file(STDOUT_FILENO, STDERR_FILENO)) {
        hub->streams_.push_back(std::make_unique<stream>(loop, STDERR_FILENO));
    }
    for (auto &each : hub->streams_) {
        each->destination.on_change = [self, to = each.get()] { self->update_flow(*to); };
    }
    auto token = loop.add(self->idle_.fd(), EPOLLIN, [self](std::uint32_t) {
        self->idle_.acknowledge();
        for (auto &each : self->streams_) {
            each->lines.idle();
        }
        self->update_timer();
    });
    DIOMP_TRY(token);
    self->idle_token_ = token.value();
    return hub;
}

status output_hub::open_channel(std::string prefix, stream &to, unique_fd &writing_end) {
    auto opened = open_pipe();
    DIOMP_TRY(opened);
    pipe_ends ends = opened.take();
    DIOMP_TRY(stop_blocking(ends.reading));
    writing_end = std::move(ends.writing);
    std::size_t const source = to.lines.add_source(std::move(prefix));
    channels_.push_back(std::unique_ptr<channel>(new channel{to, std::move(ends.reading), source}));
    channel &added = *channels_.back();
    auto token = loop_.add(added.fd.get(), EPOLLIN, [this, &added](std::uint32_t) {
        read_some(added);
        update_timer();
    });
    DIOMP_TRY(token);
    added.token = token.value();
    return {};
}

result<output_ends> output_hub::open_pipes(int rank) {
    output_ends ends;
    DIOMP_TRY(open_channel(tag(rank), stream_of(0), ends.out));
    DIOMP_TRY(open_channel(tag(rank), stream_of(1), ends.err));
    return ends;
}

std::string output_hub::tag(int rank) const { return tag_lines_ ? fmt::format("[{}] ", rank) : ""; }

void output_hub::add_remote_ranks(int ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
        for (int const which : {0, 1}) {
            remote_.push_back(
                static_cast<std::uint32_t>(stream_of(which).lines.add_source(tag(rank))));
        }
    }
}

void output_hub::add_text(int rank, int which, std::string_view text) {
    auto const index = static_cast<std::size_t>(rank) * 2 + static_cast<std::size_t>(which);
    stream_of(which).lines.add_text(remote_[index], text);
    update_timer();
}

result<std::size_t> output_hub::open_error_pipe(unique_fd &writing_end) {
    DIOMP_TRY(open_channel("", stream_of(1), writing_end));
    return channels_.size() - 1;
}

void output_hub::collect_pipe(std::size_t number) {
    collect_channel(*channels_[number]);
    update_timer();
}

bool output_hub::congested(int which) const { return stream_of(which).destination.congested(); }

bool output_hub::reader_closed(int which) const { return stream_of(which).destination.broken(); }

bool output_hub::read_some(channel &from) {
    if (!from.fd) {
        return false;
    }
    ssize_t const size = read(from.fd.get(), buffer_.data(), buffer_.size());
    if (size > 0) {
        from.to.lines.add_text(from.source, {buffer_.data(), static_cast<std::size_t>(size)});
        return true;
    }
    if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
        close_channel(from);
    }
    return false;
}

void output_hub::close_channel(channel &which) {
    loop_.remove(which.token);
    which.fd.reset();
    which.to.lines.close_source(which.source);
}

/// Passes the state of diomp-run's output on to the ranks: while its reader is slow, they block in
/// write(); after the reader has closed it, they get SIGPIPE.
void output_hub::update_flow(stream &which) {
    bool const pause = which.destination.congested();
    for (auto &each : channels_) {
        if (&each->to != &which || !each->fd) {
            continue;
        }
        if (which.destination.broken()) {
            loop_.remove(each->token);
            each->fd.reset();
        } else if (pause && !which.paused) {
            loop_.remove(each->token); // not just the events: epoll always reports a hang-up
        } else if (!pause && which.paused) {
            auto token =
                loop_.add(each->fd.get(), EPOLLIN, [this, from = each.get()](std::uint32_t) {
                    read_some(*from);
                    update_timer();
                });
            each->token = token ? token.value() : event_loop::token::none;
        }
    }
    which.paused = pause;
    if (on_flow_change) {
        on_flow_change();
    }
}

void output_hub::update_timer() {
    bool waiting = false;
    for (auto &each : streams_) {
        waiting = waiting || each->lines.waiting();
    }
    if (waiting && !idle_.armed()) {
        idle_.arm(partial_line_delay_s);
    }
}

void output_hub::message(const std::string &text) {
    streams_.back()->lines.add_message("diomp-run: " + text + "\n");
}

void output_hub::collect(int rank) {
    auto const first = static_cast<std::size_t>(rank) * 2;
    for (std::size_t index = first; index < first + 2 && index < channels_.size(); ++index) {
        collect_channel(*channels_[index]);
    }
    update_timer();
}

void output_hub::collect_channel(channel &which) {
    // At most the capacity of a pipe: a rank's children may write for ever.
    for (int round = 0; round < 16 && read_some(which); ++round) {
    }
}

void output_hub::finish() {
    on_flow_change = nullptr;
    loop_.remove(idle_token_);
    for (auto &each : channels_) {
        for (int round = 0; round < 1024 && read_some(*each); ++round) {
        }
        if (each->fd) {
            close_channel(*each);
        }
    }
    for (auto &each : streams_) {
        each->lines.finish();
        each->destination.on_change = nullptr;
        each->destination.drain();
    }
}

bool output_hub::reader_closed() const { return streams_.front()->destination.broken(); }

int output_hub::output_error() const {
    int const error = streams_.front()->destination.error();
    return error == EPIPE ? 0 : error;
}

} // namespace diomp::run
