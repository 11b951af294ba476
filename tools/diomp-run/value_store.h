// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The head's key-value space: what all ranks have published. No input or output here.
#pragma once

#include "launch/local/protocol.h"

#include <map>
#include <string>
#include <vector>

namespace diomp::run {

class value_store {
public:
    /// Visible from the next commit on.
    void stage(std::vector<launch::local::entry> entries);
    /// Everybody is in the fence. True if a value has been replaced by another one, so that copies
    /// of it elsewhere are out of date.
    [[nodiscard]] bool commit();
    /// nullptr if there is none.
    [[nodiscard]] const std::string *find(int owner, const std::string &key) const;

private:
    std::vector<launch::local::entry> staged_;
    std::map<std::pair<int, std::string>, std::string> values_;
};

} // namespace diomp::run
