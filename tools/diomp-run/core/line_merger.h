// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Merges the text of several ranks so that their lines do not mix. Does no input or output itself.
//
// Complete lines are written at once. A partial line (a prompt, a progress bar) stays pending until
// idle() is called; then its source owns the line, and its text is written as it arrives until the
// line ends. Meanwhile lines of other sources stay pending until the next idle(), which ends the
// owner's line. Text of a single source is passed through unchanged.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace diomp::run {

class line_merger {
public:
    using output = std::function<void(std::string_view)>;
    explicit line_merger(output out) : out_(std::move(out)) {}

    /// Adds a source; sources are numbered from 0. `prefix` starts each of its lines.
    std::size_t add_source(std::string prefix);
    void add_text(std::size_t source, std::string_view text);
    /// Ends a source and writes its partial line.
    void close_source(std::size_t source);
    /// Ends all sources.
    void finish();
    /// Writes pending text. Call after a short delay whenever waiting() is true.
    void idle();
    [[nodiscard]] bool waiting() const;
    /// Writes a line of diomp-run's own before all pending text. `line` ends with a newline.
    void add_message(std::string_view line);

private:
    static constexpr std::size_t no_source = static_cast<std::size_t>(-1);
    /// Limit of the pending text of a source.
    static constexpr std::size_t max_pending_bytes = std::size_t{256} * 1024;

    struct source {
        std::string prefix;
        std::string pending;
        bool closed = false;
    };
    [[nodiscard]] bool has_pending_line() const;
    void emit_lines(std::size_t index);
    void emit_partial(std::size_t index);
    void emit(const source &from, std::string_view text);
    void end_line();
    void emit_pending_lines();

    output out_;
    std::vector<source> sources_;
    /// Sources with pending text, usually few of many.
    std::set<std::size_t> pending_sources_;
    std::size_t owner_ = no_source; ///< the source whose partial line was written last
    std::string scratch_;
};

} // namespace diomp::run
