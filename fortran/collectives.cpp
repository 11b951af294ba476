// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls with optional groups, and collectives: counts and types are taken from the arrays.
#include "caller.h"
#include "operands.h"

namespace diomp::fortran {
namespace {

/// A reduction that gives each member a result of the size of its operand.
int reduce_to_all(const char *function,
                  int (*call)(void *, const void *, std::size_t, ompx_type_t, ompx_op_t,
                              ompx_group_t),
                  CFI_cdesc_t *to, CFI_cdesc_t *from, ompx_op_t op, ompx_group_t group) {
    operands given(function, to, from);
    given.require_one_type(op).require_blocks(given.dst(), given.src(), 1);
    // Not in an exclusive scan, on member 0; but there dst is checked as on the others.
    given.writes_dst_if(call != ompx_exscan || ompx_group_rank(group) != 0);
    return given.run([&](void *dst, const void *src) {
        return call(dst, src, given.elements(given.src()), given.type(), op, group);
    });
}

} // namespace
} // namespace diomp::fortran

using namespace diomp::fortran;

extern "C" {

int diomp_fortran_fence(const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return ompx_fence_group(group_of(group));
}

int diomp_fortran_barrier(const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return ompx_barrier_group(group_of(group));
}

int diomp_fortran_sync(const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return ompx_sync(group_of(group));
}

int diomp_fortran_bcast(CFI_cdesc_t *where, const int *root, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    ompx_group_t const members = group_of(group);
    int const from = root == nullptr ? 0 : *root;
    operands given("ompx_bcast", where, nullptr);
    given.writes_dst_if(ompx_group_rank(members) != from);
    return given.run([&](void *dst, const void * /*src*/) {
        return ompx_bcast_from(dst, given.dst().nbytes(), from, members);
    });
}

int diomp_fortran_reduce(CFI_cdesc_t *to, CFI_cdesc_t *from, ompx_op_t op, int root,
                         const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    ompx_group_t const members = group_of(group);
    bool const is_root = ompx_group_rank(members) == root;
    operands given("ompx_reduce", to, from);
    given.writes_dst_if(is_root).require_one_type(op);
    given.require_blocks(given.dst(), given.src(), is_root ? 1 : 0);
    return given.run([&](void *dst, const void *src) {
        return ompx_reduce(dst, src, given.elements(given.src()), given.type(), op, root, members);
    });
}

int diomp_fortran_allreduce(CFI_cdesc_t *to, CFI_cdesc_t *from, ompx_op_t op,
                            const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return reduce_to_all("ompx_allreduce", ompx_allreduce, to, from, op, group_of(group));
}

int diomp_fortran_scan(CFI_cdesc_t *to, CFI_cdesc_t *from, ompx_op_t op,
                       const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return reduce_to_all("ompx_scan", ompx_scan, to, from, op, group_of(group));
}

int diomp_fortran_exscan(CFI_cdesc_t *to, CFI_cdesc_t *from, ompx_op_t op,
                         const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return reduce_to_all("ompx_exscan", ompx_exscan, to, from, op, group_of(group));
}

int diomp_fortran_reduce_scatter(CFI_cdesc_t *to, CFI_cdesc_t *from, ompx_op_t op,
                                 const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    operands given("ompx_reduce_scatter", to, from);
    given.require_one_type(op).require_blocks(given.src(), given.dst(),
                                              ompx_group_size(group_of(group)));
    return given.run([&](void *dst, const void *src) {
        return ompx_reduce_scatter(dst, src, given.elements(given.dst()), given.type(), op,
                                   group_of(group));
    });
}

int diomp_fortran_gather(CFI_cdesc_t *to, CFI_cdesc_t *from, int root, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    ompx_group_t const members = group_of(group);
    operands given("ompx_gather", to, from);
    given.writes_dst_if(ompx_group_rank(members) == root);
    given.require_blocks(given.dst(), given.src(), blocks_at(root, members));
    return given.run([&](void *dst, const void *src) {
        return ompx_gather(dst, src, given.src().nbytes(), root, members);
    });
}

int diomp_fortran_scatter(CFI_cdesc_t *to, CFI_cdesc_t *from, int root, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    ompx_group_t const members = group_of(group);
    operands given("ompx_scatter", to, from);
    given.reads_src_if(ompx_group_rank(members) == root);
    given.require_blocks(given.src(), given.dst(), blocks_at(root, members));
    return given.run([&](void *dst, const void *src) {
        return ompx_scatter(dst, src, given.dst().nbytes(), root, members);
    });
}

int diomp_fortran_allgather(CFI_cdesc_t *to, CFI_cdesc_t *from, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    operands given("ompx_allgather", to, from);
    given.require_blocks(given.dst(), given.src(), ompx_group_size(group_of(group)));
    return given.run([&](void *dst, const void *src) {
        return ompx_allgather(dst, src, given.src().nbytes(), group_of(group));
    });
}

int diomp_fortran_alltoall(CFI_cdesc_t *to, CFI_cdesc_t *from, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    operands given("ompx_alltoall", to, from);
    int const members = ompx_group_size(group_of(group));
    given.require_blocks(given.dst(), given.src(), 1).require_divisible_by(members);
    return given.run([&](void *dst, const void *src) {
        return ompx_alltoall(dst, src, given.src().nbytes() / static_cast<std::size_t>(members),
                             group_of(group));
    });
}

} // extern "C"
