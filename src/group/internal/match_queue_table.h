// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Finds the match queue of a group by the group's id.
#pragma once

#include "group/internal/match_queue.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace diomp::group {

/// One per rank. Thread-safe. Ids are equal on all members and never used again.
class match_queue_table {
public:
    /// Messages may have arrived before.
    match_queue &open(std::uint64_t group_id);
    void close(std::uint64_t group_id);

    /// A match queue and its lock; null if there is none.
    struct locked_queue {
        match_queue *found = nullptr;
        std::unique_lock<std::mutex> lock;
    };
    [[nodiscard]] locked_queue lock(std::uint64_t group_id);
    /// Creates the queue if this rank has not opened it yet. Null if the group was closed, so that
    /// the message is dropped.
    [[nodiscard]] locked_queue lock_or_create(std::uint64_t group_id);

private:
    locked_queue find(std::uint64_t group_id);

    std::mutex mutex_; ///< protects all members; taken before a match queue's lock, never after it
    std::unordered_map<std::uint64_t, std::unique_ptr<match_queue>> queues_;
    static constexpr std::size_t num_remembered_ids = 256;
    std::array<std::uint64_t, num_remembered_ids>
        closed_{}; ///< ids plus one of the last closed groups
    std::size_t num_closed_ = 0;
};

} // namespace diomp::group
