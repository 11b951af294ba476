// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace diomp::stacks {

/// Stores the code addresses of the calling thread's frames, innermost first: the interrupted
/// instruction, then the calls that led there (their last byte, which belongs to the call's source
/// line). `interrupted` is the context of a signal handler, whose own frames are left out; nullptr:
/// starts at the caller of this function. Async-signal-safe. Returns the number of frames.
std::size_t unwind(std::span<std::uintptr_t> into, const void *interrupted);

} // namespace diomp::stacks
