// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace diomp::stacks {

/// Code addresses of the calling thread's frames, innermost first: of the interrupted instruction,
/// and of the calls that led there (their last byte, so that they belong to the call's line).
/// `interrupted` is the context that a signal handler got; then the handler's own frames are left
/// out. nullptr: from the caller of this function on. Async-signal-safe. Returns their number.
std::size_t unwind(std::span<std::uintptr_t> into, const void *interrupted);

} // namespace diomp::stacks
