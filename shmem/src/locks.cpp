// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Locks in the symmetric heap are DiOMP's. Those in static data, where DiOMP has none, are queue
// locks (Mellor-Crummey and Scott, 1991) in the same 8 bytes: the last PE of the queue, on one PE
// for all, and on each PE who is next.
#include "library.h"
#include "shmem/library.h"

using namespace diomp_shmem;

namespace {

constexpr std::uint32_t waiting = 1u << 31; ///< in `next`: this PE does not have the lock yet

class static_lock {
public:
    static_lock(const char *function, long *lock)
        : function_(function), last_(reinterpret_cast<std::uint32_t *>(lock)), next_(last_ + 1) {}

    void acquire() {
        fetch(g_state.rank, next_, waiting, OMPX_REPLACE);
        std::uint32_t const before = fetch(home, last_, own_number(), OMPX_REPLACE);
        if (before == 0) {
            fetch(g_state.rank, next_, ~waiting, OMPX_BAND);
            return;
        }
        fetch(static_cast<int>(before) - 1, next_, own_number(), OMPX_BOR);
        check(function_, ompx_wait_until(next_, OMPX_UINT32, OMPX_CMP_LT, &waiting));
    }

    bool try_acquire() { return compare_swap(0, own_number()) == 0; }

    void release() {
        check(function_, ompx_fence_group(ompx_group_world));
        if (fetch(g_state.rank, next_, 0, OMPX_NO_OP) == 0) {
            if (compare_swap(own_number(), 0) == own_number()) {
                return;
            }
            std::uint32_t const none = 0;
            check(function_, ompx_wait_until(next_, OMPX_UINT32, OMPX_CMP_NE, &none));
        }
        std::uint32_t const next = fetch(g_state.rank, next_, 0, OMPX_REPLACE);
        fetch(static_cast<int>(next) - 1, next_, ~waiting, OMPX_BAND);
    }

private:
    static constexpr int home = 0;

    [[nodiscard]] static std::uint32_t own_number() {
        return static_cast<std::uint32_t>(g_state.rank) + 1;
    }

    std::uint32_t fetch(int pe, std::uint32_t *word, std::uint32_t operand, ompx_op_t op) {
        std::uint32_t before = 0;
        check(function_, ompx_atomic_fetch(pe, word, &operand, &before, OMPX_UINT32, op));
        return before;
    }

    std::uint32_t compare_swap(std::uint32_t expected, std::uint32_t desired) {
        std::uint32_t before = 0;
        check(function_,
              ompx_atomic_compare_swap(home, last_, &expected, &desired, &before, OMPX_UINT32));
        return before;
    }

    const char *function_;
    std::uint32_t *last_;
    std::uint32_t *next_;
};

ompx_lock_t *heap_lock(long *lock) { return reinterpret_cast<ompx_lock_t *>(lock); }

} // namespace

extern "C" {

void shmem_set_lock(long *lock) {
    require_ready(__func__);
    if (is_static(lock)) {
        static_lock(__func__, lock).acquire();
    } else {
        check(__func__, ompx_lock_at(heap_lock(lock)));
    }
}

void shmem_clear_lock(long *lock) {
    require_ready(__func__);
    if (is_static(lock)) {
        static_lock(__func__, lock).release();
    } else {
        check(__func__, ompx_unlock_at(heap_lock(lock)));
    }
}

int shmem_test_lock(long *lock) {
    require_ready(__func__);
    if (is_static(lock)) {
        return static_lock(__func__, lock).try_acquire() ? 0 : 1;
    }
    returned_errors const errors;
    int const outcome = ompx_try_lock_at(heap_lock(lock));
    if (outcome == OMPX_ERR_BUSY || outcome == OMPX_ERR_LOCK) { // the latter: of this PE itself
        return 1;
    }
    check(__func__, outcome);
    return 0;
}

} // extern "C"
