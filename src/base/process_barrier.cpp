// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/process_barrier.h"

#include "base/panic.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace diomp {
namespace {

long membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0); }

} // namespace

bool prepare_process_barrier() {
    static bool const is_registered = [] {
        long const known = membarrier(MEMBARRIER_CMD_QUERY);
        return known > 0 && (known & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 &&
               membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
    }();
    return is_registered;
}

bool process_barrier() {
    if (!prepare_process_barrier()) {
        return false;
    }
    if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0) {
        panic("membarrier(2) fails, although the kernel has granted it");
    }
    return true;
}

} // namespace diomp
