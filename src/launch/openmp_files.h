// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Removal of files that libomp leaves in /dev/shm when its process is killed. libomp registers
// itself in a file named after the process id and user id, and removes it at a normal exit.
#pragma once

#include <sys/types.h>

namespace diomp::launch {

/// Removes the file of the caller's child, which has just been reaped. Removes only a file of this
/// user that is younger than the calling process: where another PID namespace shares /dev/shm, an
/// older file may belong to one of its processes.
void remove_openmp_files(pid_t dead_child) noexcept;

} // namespace diomp::launch
