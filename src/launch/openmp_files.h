// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reaping of children that may have used OpenMP. libomp registers itself in a file in /dev/shm,
// named after the process id and user id, which stays if its process is killed or calls _exit().
#pragma once

#include <sys/types.h>

namespace diomp::launch {

/// waitpid(child, how, options) and, if a child was reaped, removal of its libomp's file. Removes
/// only a file of this user that is younger than the calling process: where another PID namespace
/// shares /dev/shm, an older file may belong to one of its processes.
pid_t reap_child(pid_t child, int *how = nullptr, int options = 0) noexcept;

} // namespace diomp::launch
