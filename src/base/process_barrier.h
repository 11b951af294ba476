// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A memory barrier on all cores that run threads of this process (membarrier(2)). The rare side of
// a protocol calls it, so that the frequent side gets by with plain loads and stores in program
// order and a std::atomic_signal_fence between them.
#pragma once

namespace diomp {

/// Asks the kernel for the barrier. In a process without other threads this costs nothing, later
/// 10 ms; the first use does it otherwise. False: the kernel has none.
bool prepare_process_barrier();

/// Executes it. False: the kernel has none, nothing has been done.
[[nodiscard]] bool process_barrier();

} // namespace diomp
