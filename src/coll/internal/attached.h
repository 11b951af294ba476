// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls on private buffers by cross-memory attach, and the members' agreement to use it. The
// members publish an offer with their buffers' addresses in the first round of a large call. Which
// is faster, stage buffers or attached memory, is measured by each group, collective and size.
#pragma once

#include "coll/internal/execution.h"

#include <span>
#include <vector>

namespace diomp::coll {

/// Call before the first round; begins to measure the call if that is due.
attach_offer make_attach_offer(execution &call);
/// Call after the round, unless all buffers lie in the arena. Whether run_attached() follows, equal
/// on all members.
bool agree_on_attach(execution &call, std::span<const attach_offer> offers);
/// Call at the end of the call.
void note_attach_time(execution &call);
/// Runs the call after its first round. `buffers`: addresses in their owner's process. Blocks until
/// all members are done.
status run_attached(execution &call, const std::vector<buffer_view> &buffers);

} // namespace diomp::coll
