// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The head's part of the key-value exchange: stores the values of all hosts.
#pragma once

#include "agent_protocol.h"
#include "core/value_store.h"
#include "host_table.h"

#include <set>
#include <string>
#include <vector>

namespace diomp::run {

class head_exchange {
public:
    explicit head_exchange(host_table &hosts) : hosts_(hosts) {}

    void on_entries(frame_reader &frame);
    /// All ranks of the host are in the fence; an error if they were already.
    status on_fence(const host &from);
    void on_get(const host &from, frame_reader &frame);
    [[nodiscard]] bool is_waiting() const { return !in_fence_.empty(); }
    /// Returns the hosts whose ranks are not all in the fence in which those of others are.
    [[nodiscard]] std::vector<std::string> describe_late() const;

private:
    host_table &hosts_;
    value_store values_;
    std::set<const host *> in_fence_;
};

} // namespace diomp::run
