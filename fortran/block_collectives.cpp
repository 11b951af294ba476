// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives with a block size for each member, on host memory and on device memory.
#include "block_sizes.h"
#include "caller.h"

namespace diomp::fortran {
namespace {

constexpr auto block_remedy = "its size is that of the caller's block, in elements of one type";
constexpr auto buffer_remedy = "the buffer with all blocks ends at the last block or after it";

/// The buffer with all blocks, the caller's own block, and both as operands.
struct side {
    const array &all;
    const array &own;
    bool is_used; ///< whether this member uses the buffer with all blocks
};

/// Checks the arrays of a call against its sizes, as far as the calls before have succeeded.
void check(operands &given, const side &arrays, const block_sizes &sizes, ompx_group_t group) {
    if (!given.is_valid()) {
        return;
    }
    int const me = ompx_group_rank(group);
    given.require(me >= 0, me, "the caller is not in the group", "pass a group of this rank");
    given.require(me >= 0 && arrays.own.nbytes() == sizes.nbytes()[me], OMPX_ERR_MISMATCH,
                  "the array with one block does not match counts", block_remedy);
    if (arrays.is_used) {
        given.require_same_type();
    }
    given.require(!arrays.is_used || arrays.all.element_bytes() == arrays.own.element_bytes(),
                  OMPX_ERR_MISMATCH, "the elements of dst and src differ in size", block_remedy);
    given.require(!arrays.is_used || arrays.all.nbytes() >= sizes.end(), OMPX_ERR_RANGE,
                  "the array with all blocks is too small for counts and displs", buffer_remedy);
}

/// Host memory: sections are copied. Device memory: they are errors.
template <typename Call>
int run(const operands &given, const int *device, Call &&call) {
    return device == nullptr ? given.run(call) : given.run_contiguous(call);
}

int gatherv(const char *function, const CFI_cdesc_t *to, const CFI_cdesc_t *from,
            const CFI_cdesc_t *counts, const CFI_cdesc_t *displs, const int *device, int root,
            ompx_group_t group) {
    operands given(function, to, from);
    block_sizes sizes;
    sizes.load(given, counts, displs, given.src().element_bytes(), ompx_group_size(group));
    bool const is_root = ompx_group_rank(group) == root;
    given.writes_dst_if(is_root);
    check(given, {given.dst(), given.src(), is_root}, sizes, group);
    return run(given, device, [&](void *dst, const void *src) {
        return device == nullptr
                   ? ompx_gatherv(dst, sizes.nbytes(), sizes.offsets(), src, root, group)
                   : ompx_target_gatherv(dst, sizes.nbytes(), sizes.offsets(), src, *device, root,
                                         group);
    });
}

int scatterv(const char *function, const CFI_cdesc_t *to, const CFI_cdesc_t *from,
             const CFI_cdesc_t *counts, const CFI_cdesc_t *displs, const int *device, int root,
             ompx_group_t group) {
    operands given(function, to, from);
    block_sizes sizes;
    sizes.load(given, counts, displs, given.dst().element_bytes(), ompx_group_size(group));
    bool const is_root = ompx_group_rank(group) == root;
    given.reads_src_if(is_root);
    check(given, {given.src(), given.dst(), is_root}, sizes, group);
    return run(given, device, [&](void *dst, const void *src) {
        return device == nullptr
                   ? ompx_scatterv(dst, src, sizes.nbytes(), sizes.offsets(), root, group)
                   : ompx_target_scatterv(dst, src, sizes.nbytes(), sizes.offsets(), *device, root,
                                          group);
    });
}

int allgatherv(const char *function, const CFI_cdesc_t *to, const CFI_cdesc_t *from,
               const CFI_cdesc_t *counts, const CFI_cdesc_t *displs, const int *device,
               ompx_group_t group) {
    operands given(function, to, from);
    block_sizes sizes;
    sizes.load(given, counts, displs, given.src().element_bytes(), ompx_group_size(group));
    check(given, {given.dst(), given.src(), true}, sizes, group);
    return run(given, device, [&](void *dst, const void *src) {
        return device == nullptr ? ompx_allgatherv(dst, sizes.nbytes(), sizes.offsets(), src, group)
                                 : ompx_target_allgatherv(dst, sizes.nbytes(), sizes.offsets(), src,
                                                          *device, group);
    });
}

int alltoallv(const char *function, const CFI_cdesc_t *to, const CFI_cdesc_t *dst_counts,
              const CFI_cdesc_t *from, const CFI_cdesc_t *src_counts, const CFI_cdesc_t *dst_displs,
              const CFI_cdesc_t *src_displs, const int *device, ompx_group_t group) {
    operands given(function, to, from);
    given.require_same_type();
    block_sizes received;
    block_sizes sent;
    int const members = ompx_group_size(group);
    received.load(given, dst_counts, dst_displs, given.dst().element_bytes(), members);
    sent.load(given, src_counts, src_displs, given.src().element_bytes(), members);
    given.require(given.dst().nbytes() >= received.end(), OMPX_ERR_RANGE,
                  "dst is too small for dst_counts and dst_displs", buffer_remedy);
    given.require(given.src().nbytes() >= sent.end(), OMPX_ERR_RANGE,
                  "src is too small for src_counts and src_displs", buffer_remedy);
    return run(given, device, [&](void *dst, const void *src) {
        return device == nullptr
                   ? ompx_alltoallv(dst, received.nbytes(), received.offsets(), src, sent.nbytes(),
                                    sent.offsets(), group)
                   : ompx_target_alltoallv(dst, received.nbytes(), received.offsets(), src,
                                           sent.nbytes(), sent.offsets(), *device, group);
    });
}

} // namespace
} // namespace diomp::fortran

using namespace diomp::fortran;

extern "C" {

int diomp_fortran_gatherv(CFI_cdesc_t *to, CFI_cdesc_t *from, CFI_cdesc_t *counts, int root,
                          CFI_cdesc_t *displs, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return gatherv("ompx_gatherv", to, from, counts, displs, nullptr, root, group_of(group));
}

int diomp_fortran_target_gatherv(CFI_cdesc_t *to, CFI_cdesc_t *from, CFI_cdesc_t *counts,
                                 int device, int root, CFI_cdesc_t *displs,
                                 const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return gatherv("ompx_target_gatherv", to, from, counts, displs, &device, root, group_of(group));
}

int diomp_fortran_scatterv(CFI_cdesc_t *to, CFI_cdesc_t *from, CFI_cdesc_t *counts, int root,
                           CFI_cdesc_t *displs, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return scatterv("ompx_scatterv", to, from, counts, displs, nullptr, root, group_of(group));
}

int diomp_fortran_target_scatterv(CFI_cdesc_t *to, CFI_cdesc_t *from, CFI_cdesc_t *counts,
                                  int device, int root, CFI_cdesc_t *displs,
                                  const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return scatterv("ompx_target_scatterv", to, from, counts, displs, &device, root,
                    group_of(group));
}

int diomp_fortran_allgatherv(CFI_cdesc_t *to, CFI_cdesc_t *from, CFI_cdesc_t *counts,
                             CFI_cdesc_t *displs, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return allgatherv("ompx_allgatherv", to, from, counts, displs, nullptr, group_of(group));
}

int diomp_fortran_target_allgatherv(CFI_cdesc_t *to, CFI_cdesc_t *from, CFI_cdesc_t *counts,
                                    int device, CFI_cdesc_t *displs, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return allgatherv("ompx_target_allgatherv", to, from, counts, displs, &device, group_of(group));
}

int diomp_fortran_alltoallv(CFI_cdesc_t *to, CFI_cdesc_t *dst_counts, CFI_cdesc_t *from,
                            CFI_cdesc_t *src_counts, CFI_cdesc_t *dst_displs,
                            CFI_cdesc_t *src_displs, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return alltoallv("ompx_alltoallv", to, dst_counts, from, src_counts, dst_displs, src_displs,
                     nullptr, group_of(group));
}

int diomp_fortran_target_alltoallv(CFI_cdesc_t *to, CFI_cdesc_t *dst_counts, CFI_cdesc_t *from,
                                   CFI_cdesc_t *src_counts, int device, CFI_cdesc_t *dst_displs,
                                   CFI_cdesc_t *src_displs, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return alltoallv("ompx_target_alltoallv", to, dst_counts, from, src_counts, dst_displs,
                     src_displs, &device, group_of(group));
}

} // extern "C"
