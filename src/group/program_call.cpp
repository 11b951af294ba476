// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A call of the program that consists of several of a group's.
#include "group/group.h"
#include "group/internode.h"

namespace diomp::group {

several_rounds::several_rounds(group &of)
    : on_node_(of.local_members().barrier()), between_nodes_(of.internode()) {
    if (between_nodes_ == nullptr) {
        return;
    }
    bool const is_outermost = between_nodes_->enter_call();
    between_nodes_->note_several_rounds();
    between_nodes_ = is_outermost ? between_nodes_ : nullptr;
}

several_rounds::~several_rounds() {
    if (between_nodes_ != nullptr) {
        between_nodes_->leave_call();
    }
}

} // namespace diomp::group
