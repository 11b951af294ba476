// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The head's key-value store with the values that ranks have published. Does no input or output.
#pragma once

#include "launch/local/protocol.h"

#include <map>
#include <string>
#include <vector>

namespace diomp::run {

class value_store {
public:
    /// Adds values, which become visible with the next commit.
    void stage(std::vector<launch::local::entry> entries);
    /// Makes the staged values visible; call when all ranks are in the fence. Returns true if a
    /// value was replaced by a different one, so that cached copies are stale.
    [[nodiscard]] bool commit();
    /// Returns nullptr if there is no such value.
    [[nodiscard]] const std::string *find(int owner, const std::string &key) const;

private:
    std::vector<launch::local::entry> staged_;
    std::map<std::pair<int, std::string>, std::string> values_;
};

} // namespace diomp::run
