// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Merges the text of several ranks so that their lines do not mix. Pure logic, no descriptors.
//
// A source's complete lines come out at once. What it has of an unfinished line (a prompt, a
// progress bar) is held back until idle() is called; then the source owns the line, and its text
// comes out as it arrives until the line ends. The others' lines wait meanwhile, until the next
// idle(), which ends the line for the owner. With a single source nothing is held back or changed.
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

    /// Sources are numbered from 0 in the order of these calls. `prefix` starts each line.
    std::size_t add_source(std::string prefix);
    void add_text(std::size_t source, std::string_view text);
    /// No more text from this source; an unfinished line of its comes out.
    void close_source(std::size_t source);
    /// No more text from anybody.
    void finish();
    /// To be called a little later whenever waiting(): lets out what has been held back.
    void idle();
    [[nodiscard]] bool waiting() const;
    /// A line of diomp-run's own, before everything that is held back. `line` ends with a newline.
    void add_message(std::string_view line);

private:
    static constexpr std::size_t nobody = static_cast<std::size_t>(-1);
    /// A source holds back at most this much of an unfinished line.
    static constexpr std::size_t max_held_bytes = std::size_t{256} * 1024;

    struct source {
        std::string prefix;
        std::string held;
        bool closed = false;
    };
    [[nodiscard]] bool any_line_waits() const;
    void emit_lines(std::size_t index);
    void emit_part(std::size_t index);
    void emit(const source &from, std::string_view text);
    void end_line();
    void release_others();

    output out_;
    std::vector<source> sources_;
    /// Those that hold something back: most of many sources are silent at any one time.
    std::set<std::size_t> holding_;
    std::size_t owner_ = nobody; ///< whose unfinished line is out
    std::string scratch_;
};

} // namespace diomp::run
