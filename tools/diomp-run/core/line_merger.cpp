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
        owner_ = text.empty() || text.back() == '\n' ? no_source : source;
        return;
    }
    from.pending += text;
    if (!from.pending.empty()) {
        pending_sources_.insert(source);
    }
    if (owner_ == no_source || owner_ == source || sources_[owner_].closed) {
        emit_lines(source);
    }
    if (from.pending.size() > max_pending_bytes) {
        emit_partial(source);
    }
    if (owner_ == no_source) {
        emit_pending_lines();
    } else if (owner_ == source) {
        emit_partial(source);
    }
}

void line_merger::close_source(std::size_t source) {
    auto &from = sources_[source];
    if (!from.pending.empty()) {
        emit_lines(source);
        if (!from.pending.empty()) {
            emit_partial(source);
        }
    }
    from.closed = true;
    if (owner_ == no_source) {
        emit_pending_lines();
    }
}

void line_merger::finish() {
    while (!pending_sources_.empty()) {
        close_source(*pending_sources_.begin());
    }
}

bool line_merger::has_pending_line() const {
    return std::ranges::any_of(pending_sources_, [this](std::size_t index) {
        return sources_[index].pending.find('\n') != std::string::npos;
    });
}

bool line_merger::waiting() const {
    bool const parts_may_go = owner_ == no_source || sources_[owner_].closed;
    return parts_may_go ? !pending_sources_.empty() : has_pending_line();
}

void line_merger::idle() {
    // Complete lines first: they do not block other sources.
    if (has_pending_line()) {
        end_line();
        emit_pending_lines();
        return;
    }
    if (owner_ != no_source && !sources_[owner_].closed) {
        return; // partial lines wait until the owner's line ends
    }
    if (!pending_sources_.empty()) {
        emit_partial(*pending_sources_.begin());
    }
}

void line_merger::add_message(std::string_view line) {
    end_line();
    out_(line);
}

void line_merger::emit_pending_lines() {
    std::vector<std::size_t> const indices(pending_sources_.begin(), pending_sources_.end());
    for (std::size_t const index : indices) {
        emit_lines(index);
    }
}

/// Writes all complete lines of a source.
void line_merger::emit_lines(std::size_t index) {
    auto &from = sources_[index];
    auto const last = from.pending.rfind('\n');
    if (last == std::string::npos) {
        return;
    }
    if (owner_ != index) {
        end_line();
    }
    emit(from, std::string_view(from.pending).substr(0, last + 1));
    from.pending.erase(0, last + 1);
    if (from.pending.empty()) {
        pending_sources_.erase(index);
    }
    owner_ = no_source;
}

/// Writes all pending text of a source, which owns the line afterwards unless it ends there.
void line_merger::emit_partial(std::size_t index) {
    auto &from = sources_[index];
    if (from.pending.empty()) {
        return;
    }
    emit_lines(index);
    if (from.pending.empty()) {
        return;
    }
    if (owner_ != index) {
        end_line();
    }
    emit(from, from.pending);
    from.pending.clear();
    pending_sources_.erase(index);
    owner_ = index;
}

/// Writes text with the prefix at the start of each line. The text continues a line if the source
/// owns it.
void line_merger::emit(const source &from, std::string_view text) {
    if (from.prefix.empty()) {
        out_(text);
        return;
    }
    scratch_.clear();
    bool at_start = owner_ == no_source || &sources_[owner_] != &from;
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
    if (owner_ != no_source) {
        out_("\n");
        owner_ = no_source;
    }
}

} // namespace diomp::run
