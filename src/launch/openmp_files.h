// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What libomp leaves behind in /dev/shm when its process is killed: it registers itself in a file
// that bears the process's and the user's number, and takes it away when it ends in good order.
#pragma once

#include <sys/types.h>

namespace diomp::launch {

/// Takes the file away that the caller's child has left, which has just been reaped. Only a file of
/// this user that is younger than the calling process: where processes of another PID namespace see
/// the same /dev/shm, older ones may be theirs.
void remove_openmp_files(pid_t dead_child) noexcept;

} // namespace diomp::launch
