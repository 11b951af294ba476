// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "output_relay.h"

#include "agent_protocol.h"
#include "core/pipe.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <sys/epoll.h>
#include <unistd.h>

namespace diomp::run {
namespace {

constexpr std::size_t relay_bytes = std::size_t{16} * 1024;

} // namespace

output_relay::~output_relay() {
    for (auto &each : channels_) {
        loop_.remove(each->token);
    }
}

status output_relay::open_channel(int rank, int which, unique_fd &writing_end) {
    auto opened = open_pipe();
    DIOMP_TRY(opened);
    pipe_ends ends = opened.take();
    DIOMP_TRY(stop_blocking(ends.reading));
    writing_end = std::move(ends.writing);
    channels_.push_back(
        std::unique_ptr<channel>(new channel{rank, which, std::move(ends.reading)}));
    register_channel(*channels_.back());
    return {};
}

result<output_ends> output_relay::open_pipes(int rank) {
    output_ends ends;
    DIOMP_TRY(open_channel(rank, 0, ends.out));
    DIOMP_TRY(open_channel(rank, 1, ends.err));
    return ends;
}

void output_relay::register_channel(channel &which) {
    if (which.fd && which.token == event_loop::token::none) {
        auto token = loop_.add(which.fd.get(), EPOLLIN,
                               [this, from = &which](std::uint32_t) { read_some(*from); });
        which.token = token ? token.value() : event_loop::token::none;
    }
}

bool output_relay::read_some(channel &from) {
    std::array<char, relay_bytes> buffer; // NOLINT(*-member-init): filled by read
    ssize_t const size = from.fd ? read(from.fd.get(), buffer.data(), buffer.size()) : 0;
    if (size > 0) {
        in_flight_bytes_ += static_cast<std::size_t>(size);
        send_(from.rank, from.which, {buffer.data(), static_cast<std::size_t>(size)});
        if (in_flight_bytes_ >= max_unacked_bytes && !paused_) {
            paused_ = true;
            for (auto &each : channels_) {
                loop_.remove(each->token); // not just the events: epoll always reports a hang-up
            }
        }
        return true;
    }
    if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
        loop_.remove(from.token);
        from.fd.reset();
    }
    return false;
}

void output_relay::on_ack(std::size_t bytes) {
    in_flight_bytes_ -= std::min(bytes, in_flight_bytes_);
    if (paused_ && in_flight_bytes_ <= max_unacked_bytes / 2) {
        paused_ = false;
        for (auto &each : channels_) {
            register_channel(*each);
        }
    }
}

void output_relay::close(int which) {
    for (auto &each : channels_) {
        if (each->which == which) {
            loop_.remove(each->token);
            each->fd.reset();
        }
    }
}

void output_relay::collect(int rank) {
    auto const first = static_cast<std::size_t>(rank - first_rank_) * 2;
    for (std::size_t index = first; index < first + 2 && index < channels_.size(); ++index) {
        // At most the capacity of a pipe: a rank's children may write for ever.
        for (int round = 0; round < 64 && read_some(*channels_[index]); ++round) {
        }
    }
}

void output_relay::finish() {
    for (auto &each : channels_) {
        for (int round = 0; round < 4096 && read_some(*each); ++round) {
        }
        loop_.remove(each->token);
        each->fd.reset();
    }
}

} // namespace diomp::run
