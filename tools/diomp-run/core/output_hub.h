// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Forwards the ranks' standard output and error to diomp-run's.
#pragma once

#include "line_merger.h"
#include "rank_environment.h"
#include "sink.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace diomp::run {

class output_hub {
public:
    static result<std::unique_ptr<output_hub>> create(event_loop &loop, bool tag_lines);
    ~output_hub();
    output_hub(const output_hub &) = delete;
    output_hub &operator=(const output_hub &) = delete;

    /// Opens the pipes of one rank; call for the ranks in order. The caller closes its copy of the
    /// ends after the start.
    result<output_ends> open_pipes(int rank);

    /// Adds ranks on other hosts, whose output arrives by add_text().
    void add_remote_ranks(int ranks);
    void add_text(int rank, int which, std::string_view text);
    /// Opens a pipe whose text goes to standard error. Returns its number, for collect_pipe().
    result<std::size_t> open_error_pipe(unique_fd &writing_end);
    void collect_pipe(std::size_t number);
    /// Called when congested() or reader_closed() may have changed.
    std::function<void()> on_flow_change;
    /// Returns whether the caller should stop adding text for now; `which`: 0 output, 1 error.
    [[nodiscard]] bool congested(int which) const;
    [[nodiscard]] bool reader_closed(int which) const;

    /// Prints a line of diomp-run's own on standard error.
    void message(const std::string &text);
    /// Reads the text that the rank has written so far.
    void collect(int rank);
    /// Reads the text that all ranks have written, and writes all pending text. Call once, at the
    /// end.
    void finish();
    /// Returns whether the reader of diomp-run's output has closed it.
    [[nodiscard]] bool reader_closed() const;
    /// Returns the errno of a failed write to standard output, other than EPIPE; 0 if none failed.
    [[nodiscard]] int output_error() const;

private:
    struct stream;
    struct channel;
    explicit output_hub(event_loop &loop, bool tag_lines, timer idle);
    status open_channel(std::string prefix, stream &to, unique_fd &writing_end);
    /// Returns false at end of file, or if nothing can be read now.
    bool read_some(channel &from);
    void close_channel(channel &which);
    void collect_channel(channel &which);
    [[nodiscard]] stream &stream_of(int which) const {
        return which == 0 ? *streams_.front() : *streams_.back();
    }
    void update_flow(stream &which);
    void update_timer();
    [[nodiscard]] std::string tag(int rank) const;

    event_loop &loop_;
    bool tag_lines_;
    timer idle_;
    event_loop::token idle_token_ = event_loop::token::none;
    std::vector<char> buffer_;
    std::vector<std::unique_ptr<stream>> streams_;   ///< standard output, and standard error if it
                                                     ///< is another file
    std::vector<std::unique_ptr<channel>> channels_; ///< [2 * rank + (0 output, 1 error)], or
                                                     ///< [number of an error pipe]
    std::vector<std::uint32_t> remote_; ///< sources of ranks on other hosts, [2 * rank + which]
};

} // namespace diomp::run
