// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tracks which ranks have joined the job, called ompx_finalize(), and exited. A byte per rank.
//
// A rank that exits without ompx_finalize(), or without having joined, would leave the other ranks
// waiting for ever: a premature exit. If no rank joins, the program does not use DiOMP, and its
// processes may exit at any time.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace diomp::run {

class rank_tracker {
public:
    explicit rank_tracker(int ranks)
        : flags_(static_cast<std::size_t>(ranks)), unfinished_(ranks) {}

    void join(int rank);
    void finalize(int rank);
    /// Records that the rank has exited with status 0.
    void mark_exited(int rank);

    /// A rank that has exited prematurely, and a description for the user.
    struct premature_exit {
        int rank;
        std::string what;
    };
    /// Returns a premature exit, if there is one. Takes constant time: called after every event.
    [[nodiscard]] std::optional<premature_exit> find_premature_exit() const;
    /// Returns the ranks that have not joined.
    [[nodiscard]] std::vector<int> absent_ranks() const;

private:
    enum : std::uint8_t { joined = 1, finalized = 2, exited = 4 };
    [[nodiscard]] std::uint8_t &flags(int rank) { return flags_[static_cast<std::size_t>(rank)]; }

    std::vector<std::uint8_t> flags_; ///< [rank]
    int joined_ = 0;                  ///< ranks that have joined
    int unfinished_;                  ///< ranks that have neither exited nor finalized
    std::set<int> suspects_;          ///< ranks that have exited without finalizing
};

} // namespace diomp::run
