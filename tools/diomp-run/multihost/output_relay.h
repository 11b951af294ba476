// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sends the output of a host's ranks to the head, which merges the lines. At most
// max_unacked_bytes are unacknowledged, so ranks block in write() while the head's reader is slow.
#pragma once

#include "core/event_loop.h"
#include "core/rank_environment.h"

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace diomp::run {

class output_relay {
public:
    using sender = std::function<void(int rank, int which, std::string_view text)>;
    output_relay(event_loop &loop, int first_rank, sender send)
        : loop_(loop), first_rank_(first_rank), send_(std::move(send)) {}
    ~output_relay();
    output_relay(const output_relay &) = delete;
    output_relay &operator=(const output_relay &) = delete;

    /// Opens the pipes of one rank; call for the ranks in order.
    result<output_ends> open_pipes(int rank);
    /// The head has acknowledged so many bytes.
    void on_ack(std::size_t bytes);
    /// Closes this output (0 or 1), whose reader is gone: ranks that write get SIGPIPE.
    void close(int which);
    /// Reads and sends the text that the rank has written so far, regardless of the limit.
    void collect(int rank);
    /// Reads and sends all text that ranks have written. Call once, at the end.
    void finish();

private:
    struct channel {
        int rank;
        int which; ///< 0 output, 1 error
        unique_fd fd;
        event_loop::token token = event_loop::token::none;
    };
    status open_channel(int rank, int which, unique_fd &writing_end);
    void register_channel(channel &which);
    /// Returns false at end of file, or if nothing can be read now.
    bool read_some(channel &from);

    event_loop &loop_;
    int first_rank_;
    sender send_;
    std::vector<std::unique_ptr<channel>> channels_; ///< [2 * (rank - first_rank) + which]
    std::size_t in_flight_bytes_ = 0;                ///< bytes that the head has not acknowledged
    bool paused_ = false;
};

} // namespace diomp::run
