// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sizes and offsets of the blocks of a buffer: equal blocks, or blocks of a list.
#pragma once

#include "coll/request.h"

#include <concepts>
#include <cstddef>

namespace diomp::coll {

/// A list must outlive the table.
class block_table {
public:
    explicit block_table(std::size_t each_bytes) : each_bytes_(each_bytes) {}
    explicit block_table(const block_list &of) : list_(&of) {}
    [[nodiscard]] std::size_t size(std::integral auto block) const {
        return list_ == nullptr ? each_bytes_ : list_->nbytes[static_cast<std::size_t>(block)];
    }
    [[nodiscard]] std::size_t offset(std::integral auto block) const {
        auto const at = static_cast<std::size_t>(block);
        return list_ == nullptr ? at * each_bytes_ : list_->offsets[at];
    }

private:
    std::size_t each_bytes_ = 0;
    const block_list *list_ = nullptr;
};

} // namespace diomp::coll
