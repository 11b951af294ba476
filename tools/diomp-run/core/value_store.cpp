// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "value_store.h"

#include <iterator>
#include <utility>

namespace diomp::run {

void value_store::stage(std::vector<launch::local::entry> entries) {
    staged_.insert(staged_.end(), std::make_move_iterator(entries.begin()),
                   std::make_move_iterator(entries.end()));
}

bool value_store::commit() {
    bool replaced = false;
    for (launch::local::entry &each : staged_) {
        std::pair key(static_cast<int>(each.owner), std::move(each.key));
        auto const [item, is_new] = values_.try_emplace(std::move(key), each.value);
        if (!is_new && item->second != each.value) {
            item->second = std::move(each.value);
            replaced = true;
        }
    }
    staged_.clear();
    return replaced;
}

const std::string *value_store::find(int owner, const std::string &key) const {
    auto const found = values_.find(std::pair(owner, key));
    return found == values_.end() ? nullptr : &found->second;
}

} // namespace diomp::run
