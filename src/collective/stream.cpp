// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "collective/spanning.h"

#include <algorithm>

namespace diomp::collective {
namespace {

/// Scratch memory for all blocks of a piece.
constexpr std::size_t piece_scratch_bytes = std::size_t{2} << 20;

} // namespace

// Letters that are still expected would land in memory that is no longer theirs.
stream::~stream() {
    for (group::receipt &each : expected_) {
        across_.withdraw(each);
    }
}

std::size_t stream::expect(std::size_t from, std::span<std::byte> data) {
    std::size_t const first = expected_.size();
    for (std::size_t letter = 0; letter < num_letters(data.size()); ++letter) {
        std::size_t const at = letter * letter_bytes_;
        across_.expect(expected_.emplace_back(), from, step(letter),
                       data.subspan(at, std::min(letter_bytes_, data.size() - at)), how_);
    }
    return first;
}

status stream::send_letter(std::size_t to, std::span<const std::byte> data, std::size_t letter) {
    std::size_t const at = letter * letter_bytes_;
    return across_.send(to, step(letter),
                        data.subspan(at, std::min(letter_bytes_, data.size() - at)), how_);
}

status stream::send(std::size_t to, std::span<const std::byte> data) {
    for (std::size_t letter = 0; letter < num_letters(data.size()); ++letter) {
        DIOMP_TRY(send_letter(to, data, letter));
    }
    return {};
}

status stream::await(std::size_t index) { return across_.await(expected_[index]); }

status stream::await_all() {
    for (std::size_t index = 0; index < expected_.size(); ++index) {
        DIOMP_TRY(await(index));
    }
    return {};
}

chunking cut_blocks(const spanning_call &call, std::size_t num_blocks) {
    std::size_t const fitting = piece_scratch_bytes / num_blocks / call.unit_bytes;
    // Whole cache lines, so that operands in scratch memory stay aligned.
    std::size_t const lines = fitting / cache_line_bytes * cache_line_bytes;
    return {call.asked.amount, std::max<std::size_t>(1, lines > 0 ? lines : fitting)};
}

} // namespace diomp::collective
