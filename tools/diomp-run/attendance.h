// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which ranks have joined, said that they end in good order, and ended. A byte per rank.
//
// In a DiOMP job a rank that ends in good order has told so. One that has not, or has never joined,
// leaves the others waiting for ever. Programs without DiOMP, none of which joins, may end as they
// like.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace diomp::run {

class attendance {
public:
    explicit attendance(int ranks) : flags_(static_cast<std::size_t>(ranks)), unfinished_(ranks) {}

    void join(int rank);
    void finalize(int rank);
    /// The rank has exited with status 0.
    void leave(int rank);

    /// A rank that others wait for in vain, and what is wrong with it.
    struct deserter {
        int rank;
        std::string what;
    };
    /// Constant time, so that it can be asked after every event.
    [[nodiscard]] std::optional<deserter> find_deserter() const;

private:
    enum : std::uint8_t { joined = 1, finalized = 2, left = 4 };
    [[nodiscard]] std::uint8_t &flags(int rank) { return flags_[static_cast<std::size_t>(rank)]; }

    std::vector<std::uint8_t> flags_; ///< [rank]
    int joined_ = 0;                  ///< ranks that have joined
    int unfinished_;                  ///< ranks that have neither left nor finalized
    std::set<int> suspects_;          ///< ranks that have left without finalizing
};

} // namespace diomp::run
