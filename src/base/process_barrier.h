// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A memory barrier on all cores that run threads of this process (membarrier(2)). The rare side of
// a protocol calls it, so that the frequent side needs only plain loads and stores in program order
// and a std::atomic_signal_fence between them.
#pragma once

namespace diomp {

/// Registers the process for the barrier. In a process without other threads this costs nothing,
/// later 10 ms. If it was not called before, the first use registers the process. False: the kernel
/// has no such barrier.
bool prepare_process_barrier();

/// Executes the barrier. False: the kernel has none; nothing was done.
[[nodiscard]] bool process_barrier();

} // namespace diomp
