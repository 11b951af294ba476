// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Brings the output of a host's ranks to the head, which has the lines merged. What is on its way
// is limited, so that ranks wait in write() while the head's reader is slow.
#pragma once

#include "event_loop.h"
#include "rank_environment.h"

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

    /// Pipes for one rank; ranks in order.
    result<output_ends> open_pipes(int rank);
    /// The head has used so many bytes.
    void taken(std::size_t bytes);
    /// Nobody reads this output (0 or 1) any more: writers get SIGPIPE.
    void close(int which);
    /// Takes in what the rank has written so far, whatever is on its way.
    void collect(int rank);
    /// Takes in all that ranks have written. The end.
    void finish();

private:
    struct channel {
        int rank;
        int which; ///< 0 output, 1 error
        unique_fd fd;
        event_loop::token token = event_loop::token::none;
    };
    status open_channel(int rank, int which, unique_fd &writing_end);
    void watch(channel &which);
    /// False at the end of the file, or when there is nothing to read now.
    bool read_some(channel &from);

    event_loop &loop_;
    int first_rank_;
    sender send_;
    std::vector<std::unique_ptr<channel>> channels_; ///< [2 * (rank - first_rank) + which]
    std::size_t on_the_way_ = 0;                     ///< bytes that the head has not used yet
    bool paused_ = false;
};

} // namespace diomp::run
