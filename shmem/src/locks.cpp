// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Locks are DiOMP's, in the symmetric heap and in static data.
#include "library.h"
#include "shmem/library.h"

using namespace diomp_shmem;

namespace {

ompx_lock_t *lock_of(long *lock) { return reinterpret_cast<ompx_lock_t *>(lock); }

} // namespace

extern "C" {

void shmem_set_lock(long *lock) {
    require_ready(__func__);
    check(__func__, ompx_lock_at(lock_of(lock)));
}

void shmem_clear_lock(long *lock) {
    require_ready(__func__);
    check(__func__, ompx_unlock_at(lock_of(lock)));
}

int shmem_test_lock(long *lock) {
    require_ready(__func__);
    returned_errors const errors;
    int const outcome = ompx_try_lock_at(lock_of(lock));
    if (outcome == OMPX_ERR_BUSY || outcome == OMPX_ERR_LOCK) { // the latter: of this PE itself
        return 1;
    }
    check(__func__, outcome);
    return 0;
}

} // extern "C"
