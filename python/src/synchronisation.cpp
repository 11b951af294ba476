// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Fences, barriers and locks.
#include "events.h"
#include "groups.h"

namespace diomp::python {

namespace {

using rank_call = int (*)(int);

void fence(const group *members) {
    release_dropped();
    if (is_single_node()) { // orders memory, waits for nothing
        check(ompx_fence_group(handle_of(members)));
    } else {
        run([&] { return ompx_fence_group(handle_of(members)); });
    }
}

void barrier(const group *members) {
    release_dropped();
    run([&] { return ompx_barrier_group(handle_of(members)); });
}

event barrier_nb(const group *members) {
    return start(nb::none(),
                 [&](ompx_event_t *event) { return ompx_barrier_nb(handle_of(members), event); });
}

bool try_lock(rank_call call, int rank) {
    int const status = call(rank);
    return status != OMPX_ERR_BUSY && check(status) == OMPX_SUCCESS;
}

} // namespace

void bind_synchronisation(nb::module_ &m) {
    m.def("fence", fence, nb::arg("group") = nb::none(),
          "Blocks until all transfers that this rank has started, or those to the members of a "
          "group, are complete at their targets.");
    m.def(
        "wait_rma", [](int kind) { run([&] { return ompx_waitRMA(kind); }); }, nb::arg("kind"),
        "Blocks until this rank's transfers of some kinds are complete: RMA_PUT, RMA_GET, "
        "RMA_ATOMIC "
        "or their sum.");
    m.def("barrier", barrier, nb::arg("group") = nb::none(),
          "Blocks until all members have called it; includes a fence. Collective.");
    m.def("barrier_nb", barrier_nb, nb::arg("group") = nb::none(),
          "Non-blocking barrier; fences before it returns. Collective.");
    m.def(
        "lock", [](int rank) { run([&] { return ompx_lock(rank); }); }, nb::arg("rank"),
        "Acquires the lock at `rank` for this rank.");
    m.def(
        "unlock", [](int rank) { run([&] { return ompx_unlock(rank); }); }, nb::arg("rank"),
        "Releases the lock at `rank`; includes a fence.");
    m.def(
        "try_lock", [](int rank) { return try_lock(ompx_try_lock, rank); }, nb::arg("rank"),
        "Acquires the lock if it is free and says whether it was.");
    m.def(
        "thread_lock", [](int rank) { run([&] { return ompx_lockt(rank); }); }, nb::arg("rank"),
        "Acquires the lock for threads at `rank` for this thread.");
    m.def(
        "thread_unlock", [](int rank) { run([&] { return ompx_unlockt(rank); }); }, nb::arg("rank"),
        "Releases the lock for threads at `rank`.");
    m.def(
        "thread_try_lock", [](int rank) { return try_lock(ompx_try_lockt, rank); }, nb::arg("rank"),
        "Acquires the lock for threads if it is free and says whether it was.");
}

} // namespace diomp::python
