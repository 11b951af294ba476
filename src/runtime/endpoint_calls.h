// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls that the endpoints of one rank make one by one, put together: the n-th call of each of them
// is the same collective.
#pragma once

#include "collective/collective.h"

#include <deque>
#include <functional>
#include <mutex>
#include <vector>

namespace diomp::runtime {

/// Of one group with several endpoints of this rank. Any thread.
class endpoint_calls {
public:
    struct part {
        collective::request asked;
        ompx_event *event = nullptr; ///< completed by who runs the call
    };
    using set = std::vector<part>; ///< [place among the rank's endpoints]

    explicit endpoint_calls(std::size_t num_endpoints) : waiting_(num_endpoints) {}

    /// Adds a call. With the last one of a set, hand_on(set) is called before anybody else can add,
    /// so that sets leave in the order in which they were completed.
    void add(std::size_t place, part added, const std::function<void(set)> &hand_on);
    /// Takes a call back; false: its set is complete.
    bool withdraw(std::size_t place, const ompx_event *event);
    /// Takes all back.
    std::vector<part> withdraw_all();

private:
    std::mutex mutex_;
    std::vector<std::deque<part>> waiting_; ///< [place]
};

} // namespace diomp::runtime
