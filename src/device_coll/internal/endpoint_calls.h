// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collects the calls that the endpoints of one rank make one by one: the n-th calls of all its
// endpoints are one collective.
#pragma once

#include "coll/collective.h"

#include <deque>
#include <functional>
#include <mutex>
#include <vector>

namespace diomp::device_coll {

/// For one group in which this rank has several endpoints. Any thread.
class endpoint_calls {
public:
    struct endpoint_call {
        coll::request args;
        ompx_event *event = nullptr; ///< completed by the thread that runs the call
    };
    using call_set = std::vector<endpoint_call>; ///< [own_index]

    explicit endpoint_calls(std::size_t num_endpoints) : waiting_(num_endpoints) {}

    /// Adds a call. The last call of a set calls submit(set) under the lock, so that sets are
    /// submitted in the order in which they became complete. `submit` must not call this object.
    void add(std::size_t own_index, endpoint_call added,
             const std::function<void(call_set)> &submit);
    /// Removes a waiting call; false if its set is complete already.
    bool cancel(std::size_t own_index, const ompx_event *event);
    /// Removes and returns all waiting calls.
    std::vector<endpoint_call> cancel_all();

private:
    std::mutex mutex_;
    std::vector<std::deque<endpoint_call>> waiting_; ///< [own_index]
};

} // namespace diomp::device_coll
