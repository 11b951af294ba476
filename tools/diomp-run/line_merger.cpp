// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "line_merger.h"

#include <algorithm>

namespace diomp::run {

std::size_t line_merger::add_source(std::string prefix) {
    sources_.push_back({std::move(prefix), {}, false});
    return sources_.size() - 1;
}

void line_merger::add_text(std::size_t source, std::string_view text) {
    auto &from = sources_[source];
    if (sources_.size() == 1 && from.prefix.empty()) {
        out_(text);
        owner_ = text.empty() || text.back() == '\n' ? nobody : source;
        return;
    }
    from.held += text;
    if (!from.held.empty()) {
        holding_.insert(source);
    }
    if (owner_ == nobody || owner_ == source || sources_[owner_].closed) {
        emit_lines(source);
    }
    if (from.held.size() > max_held_bytes) {
        emit_part(source);
    }
    if (owner_ == nobody) {
        release_others();
    } else if (owner_ == source) {
        emit_part(source);
    }
}

void line_merger::close_source(std::size_t source) {
    auto &from = sources_[source];
    if (!from.held.empty()) {
        emit_lines(source);
        if (!from.held.empty()) {
            emit_part(source);
        }
    }
    from.closed = true;
    if (owner_ == nobody) {
        release_others();
    }
}

void line_merger::finish() {
    while (!holding_.empty()) {
        close_source(*holding_.begin());
    }
}

bool line_merger::any_line_waits() const {
    return std::ranges::any_of(holding_, [this](std::size_t index) {
        return sources_[index].held.find('\n') != std::string::npos;
    });
}

bool line_merger::waiting() const {
    bool const parts_may_go = owner_ == nobody || sources_[owner_].closed;
    return parts_may_go ? !holding_.empty() : any_line_waits();
}

void line_merger::idle() {
    // Whole lines first: they can go out without making anybody wait.
    if (any_line_waits()) {
        end_line();
        release_others();
        return;
    }
    if (owner_ != nobody && !sources_[owner_].closed) {
        return; // parts of lines wait for the owner, however long its line takes
    }
    if (!holding_.empty()) {
        emit_part(*holding_.begin());
    }
}

void line_merger::add_message(std::string_view line) {
    end_line();
    out_(line);
}

void line_merger::release_others() {
    std::vector<std::size_t> const indices(holding_.begin(), holding_.end());
    for (std::size_t const index : indices) {
        emit_lines(index);
    }
}

/// All complete lines of a source.
void line_merger::emit_lines(std::size_t index) {
    auto &from = sources_[index];
    auto const last = from.held.rfind('\n');
    if (last == std::string::npos) {
        return;
    }
    if (owner_ != index) {
        end_line();
    }
    emit(from, std::string_view(from.held).substr(0, last + 1));
    from.held.erase(0, last + 1);
    if (from.held.empty()) {
        holding_.erase(index);
    }
    owner_ = nobody;
}

/// Everything a source has; it owns the line afterwards unless that ends here.
void line_merger::emit_part(std::size_t index) {
    auto &from = sources_[index];
    if (from.held.empty()) {
        return;
    }
    emit_lines(index);
    if (from.held.empty()) {
        return;
    }
    if (owner_ != index) {
        end_line();
    }
    emit(from, from.held);
    from.held.clear();
    holding_.erase(index);
    owner_ = index;
}

/// Writes text with the prefix at each start of a line. Whether the first character starts one
/// shows in the owner.
void line_merger::emit(const source &from, std::string_view text) {
    if (from.prefix.empty()) {
        out_(text);
        return;
    }
    scratch_.clear();
    bool at_start = owner_ == nobody || &sources_[owner_] != &from;
    while (!text.empty()) {
        auto const newline = text.find('\n');
        std::string_view const line =
            text.substr(0, newline == std::string_view::npos ? text.size() : newline + 1);
        if (at_start) {
            scratch_ += from.prefix;
        }
        scratch_ += line;
        text.remove_prefix(line.size());
        at_start = true;
    }
    out_(scratch_);
}

void line_merger::end_line() {
    if (owner_ != nobody) {
        out_("\n");
        owner_ = nobody;
    }
}

} // namespace diomp::run
