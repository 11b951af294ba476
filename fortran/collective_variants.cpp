// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives that do not wait (_nb), and collectives on device memory (target_, target_..._nb).
// Their arrays must be contiguous. The sizes of the blocks are checked as in collectives.cpp.
#include "caller.h"
#include "operands.h"

namespace diomp::fortran {
namespace {

/// What a call has in addition to the collective's own arguments.
struct variant {
    const char *function;
    const int *device;   ///< null: host memory
    ompx_event_t *event; ///< null: a call on device memory that waits
};

/// Makes the call of the variant: addresses, then the other arguments.
template <typename Nb, typename Target, typename TargetNb, typename... Arguments>
int make_call(const variant &of, Nb nb, Target target, TargetNb target_nb, void *dst,
              const void *src, Arguments... given) {
    if (of.device == nullptr) {
        return nb(dst, src, given..., of.event);
    }
    return of.event == nullptr ? target(dst, src, *of.device, given...)
                               : target_nb(dst, src, *of.device, given..., of.event);
}

/// The arguments of all collectives; those that one does not have are not used.
struct arguments {
    CFI_cdesc_t *to;
    CFI_cdesc_t *from;
    ompx_op_t op;
    int root;
    ompx_group_t group;
};

int bcast(const variant &of, const arguments &all) {
    operands const given(of.function, all.to, nullptr);
    return given.run_contiguous([&](void *dst, const void * /*src*/) {
        std::size_t const nbytes = given.dst().nbytes();
        if (of.device == nullptr) {
            return ompx_bcast_from_nb(dst, nbytes, all.root, all.group, of.event);
        }
        return of.event == nullptr
                   ? ompx_target_bcast_from(dst, *of.device, nbytes, all.root, all.group)
                   : ompx_target_bcast_from_nb(dst, *of.device, nbytes, all.root, all.group,
                                               of.event);
    });
}

int reduce(const variant &of, const arguments &all) {
    operands given(of.function, all.to, all.from);
    bool const is_root = ompx_group_rank(all.group) == all.root;
    given.writes_dst_if(is_root).require_one_type(all.op);
    given.require_blocks(given.dst(), given.src(), is_root ? 1 : 0);
    return given.run_contiguous([&](void *dst, const void *src) {
        return make_call(of, ompx_reduce_nb, ompx_target_reduce, ompx_target_reduce_nb, dst, src,
                         given.elements(given.src()), given.type(), all.op, all.root, all.group);
    });
}

int allreduce(const variant &of, const arguments &all) {
    operands given(of.function, all.to, all.from);
    given.require_one_type(all.op).require_blocks(given.dst(), given.src(), 1);
    return given.run_contiguous([&](void *dst, const void *src) {
        return make_call(of, ompx_allreduce_nb, ompx_target_allreduce, ompx_target_allreduce_nb,
                         dst, src, given.elements(given.src()), given.type(), all.op, all.group);
    });
}

int scan(const variant &of, const arguments &all) {
    operands given(of.function, all.to, all.from);
    given.require_one_type(all.op).require_blocks(given.dst(), given.src(), 1);
    return given.run_contiguous([&](void *dst, const void *src) {
        return make_call(of, ompx_scan_nb, ompx_target_scan, ompx_target_scan_nb, dst, src,
                         given.elements(given.src()), given.type(), all.op, all.group);
    });
}

int exscan(const variant &of, const arguments &all) {
    operands given(of.function, all.to, all.from);
    given.require_one_type(all.op).require_blocks(given.dst(), given.src(), 1);
    return given.run_contiguous([&](void *dst, const void *src) {
        return make_call(of, ompx_exscan_nb, ompx_target_exscan, ompx_target_exscan_nb, dst, src,
                         given.elements(given.src()), given.type(), all.op, all.group);
    });
}

int reduce_scatter(const variant &of, const arguments &all) {
    operands given(of.function, all.to, all.from);
    given.require_one_type(all.op).require_blocks(given.src(), given.dst(),
                                                  ompx_group_size(all.group));
    return given.run_contiguous([&](void *dst, const void *src) {
        return make_call(of, ompx_reduce_scatter_nb, ompx_target_reduce_scatter,
                         ompx_target_reduce_scatter_nb, dst, src, given.elements(given.dst()),
                         given.type(), all.op, all.group);
    });
}

int gather(const variant &of, const arguments &all) {
    operands given(of.function, all.to, all.from);
    given.writes_dst_if(ompx_group_rank(all.group) == all.root);
    given.require_blocks(given.dst(), given.src(), blocks_at(all.root, all.group));
    return given.run_contiguous([&](void *dst, const void *src) {
        return make_call(of, ompx_gather_nb, ompx_target_gather, ompx_target_gather_nb, dst, src,
                         given.src().nbytes(), all.root, all.group);
    });
}

int scatter(const variant &of, const arguments &all) {
    operands given(of.function, all.to, all.from);
    given.reads_src_if(ompx_group_rank(all.group) == all.root);
    given.require_blocks(given.src(), given.dst(), blocks_at(all.root, all.group));
    return given.run_contiguous([&](void *dst, const void *src) {
        return make_call(of, ompx_scatter_nb, ompx_target_scatter, ompx_target_scatter_nb, dst, src,
                         given.dst().nbytes(), all.root, all.group);
    });
}

int allgather(const variant &of, const arguments &all) {
    operands given(of.function, all.to, all.from);
    given.require_blocks(given.dst(), given.src(), ompx_group_size(all.group));
    return given.run_contiguous([&](void *dst, const void *src) {
        return make_call(of, ompx_allgather_nb, ompx_target_allgather, ompx_target_allgather_nb,
                         dst, src, given.src().nbytes(), all.group);
    });
}

int alltoall(const variant &of, const arguments &all) {
    operands given(of.function, all.to, all.from);
    given.require_blocks(given.dst(), given.src(), 1)
        .require_divisible_by(ompx_group_size(all.group));
    return given.run_contiguous([&](void *dst, const void *src) {
        return make_call(
            of, ompx_alltoall_nb, ompx_target_alltoall, ompx_target_alltoall_nb, dst, src,
            given.src().nbytes() / static_cast<std::size_t>(ompx_group_size(all.group)), all.group);
    });
}

} // namespace
} // namespace diomp::fortran

using namespace diomp::fortran;

extern "C" {

int diomp_fortran_barrier_nb(ompx_event_t *event, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return ompx_barrier_nb(group_of(group), event);
}

int diomp_fortran_bcast_nb(CFI_cdesc_t *to, int root, ompx_event_t *event,
                           const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return bcast({"ompx_bcast_nb", nullptr, event}, {to, nullptr, 0, root, group_of(group)});
}

int diomp_fortran_target_bcast(CFI_cdesc_t *to, int device, int root, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return bcast({"ompx_target_bcast", &device, nullptr}, {to, nullptr, 0, root, group_of(group)});
}

int diomp_fortran_target_bcast_nb(CFI_cdesc_t *to, int device, int root, ompx_event_t *event,
                                  const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return bcast({"ompx_target_bcast_nb", &device, event}, {to, nullptr, 0, root, group_of(group)});
}

int diomp_fortran_reduce_nb(CFI_cdesc_t *to, CFI_cdesc_t *from, ompx_op_t op, int root,
                            ompx_event_t *event, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return reduce({"ompx_reduce_nb", nullptr, event}, {to, from, op, root, group_of(group)});
}

int diomp_fortran_target_reduce(CFI_cdesc_t *to, CFI_cdesc_t *from, int device, ompx_op_t op,
                                int root, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return reduce({"ompx_target_reduce", &device, nullptr}, {to, from, op, root, group_of(group)});
}

int diomp_fortran_target_reduce_nb(CFI_cdesc_t *to, CFI_cdesc_t *from, int device, ompx_op_t op,
                                   int root, ompx_event_t *event, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return reduce({"ompx_target_reduce_nb", &device, event}, {to, from, op, root, group_of(group)});
}

int diomp_fortran_allreduce_nb(CFI_cdesc_t *to, CFI_cdesc_t *from, ompx_op_t op,
                               ompx_event_t *event, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return allreduce({"ompx_allreduce_nb", nullptr, event}, {to, from, op, 0, group_of(group)});
}

int diomp_fortran_target_allreduce(CFI_cdesc_t *to, CFI_cdesc_t *from, int device, ompx_op_t op,
                                   const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return allreduce({"ompx_target_allreduce", &device, nullptr},
                     {to, from, op, 0, group_of(group)});
}

int diomp_fortran_target_allreduce_nb(CFI_cdesc_t *to, CFI_cdesc_t *from, int device, ompx_op_t op,
                                      ompx_event_t *event, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return allreduce({"ompx_target_allreduce_nb", &device, event},
                     {to, from, op, 0, group_of(group)});
}

int diomp_fortran_scan_nb(CFI_cdesc_t *to, CFI_cdesc_t *from, ompx_op_t op, ompx_event_t *event,
                          const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return scan({"ompx_scan_nb", nullptr, event}, {to, from, op, 0, group_of(group)});
}

int diomp_fortran_target_scan(CFI_cdesc_t *to, CFI_cdesc_t *from, int device, ompx_op_t op,
                              const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return scan({"ompx_target_scan", &device, nullptr}, {to, from, op, 0, group_of(group)});
}

int diomp_fortran_target_scan_nb(CFI_cdesc_t *to, CFI_cdesc_t *from, int device, ompx_op_t op,
                                 ompx_event_t *event, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return scan({"ompx_target_scan_nb", &device, event}, {to, from, op, 0, group_of(group)});
}

int diomp_fortran_exscan_nb(CFI_cdesc_t *to, CFI_cdesc_t *from, ompx_op_t op, ompx_event_t *event,
                            const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return exscan({"ompx_exscan_nb", nullptr, event}, {to, from, op, 0, group_of(group)});
}

int diomp_fortran_target_exscan(CFI_cdesc_t *to, CFI_cdesc_t *from, int device, ompx_op_t op,
                                const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return exscan({"ompx_target_exscan", &device, nullptr}, {to, from, op, 0, group_of(group)});
}

int diomp_fortran_target_exscan_nb(CFI_cdesc_t *to, CFI_cdesc_t *from, int device, ompx_op_t op,
                                   ompx_event_t *event, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return exscan({"ompx_target_exscan_nb", &device, event}, {to, from, op, 0, group_of(group)});
}

int diomp_fortran_reduce_scatter_nb(CFI_cdesc_t *to, CFI_cdesc_t *from, ompx_op_t op,
                                    ompx_event_t *event, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return reduce_scatter({"ompx_reduce_scatter_nb", nullptr, event},
                          {to, from, op, 0, group_of(group)});
}

int diomp_fortran_target_reduce_scatter(CFI_cdesc_t *to, CFI_cdesc_t *from, int device,
                                        ompx_op_t op, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return reduce_scatter({"ompx_target_reduce_scatter", &device, nullptr},
                          {to, from, op, 0, group_of(group)});
}

int diomp_fortran_target_reduce_scatter_nb(CFI_cdesc_t *to, CFI_cdesc_t *from, int device,
                                           ompx_op_t op, ompx_event_t *event,
                                           const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return reduce_scatter({"ompx_target_reduce_scatter_nb", &device, event},
                          {to, from, op, 0, group_of(group)});
}

int diomp_fortran_gather_nb(CFI_cdesc_t *to, CFI_cdesc_t *from, int root, ompx_event_t *event,
                            const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return gather({"ompx_gather_nb", nullptr, event}, {to, from, 0, root, group_of(group)});
}

int diomp_fortran_target_gather(CFI_cdesc_t *to, CFI_cdesc_t *from, int device, int root,
                                const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return gather({"ompx_target_gather", &device, nullptr}, {to, from, 0, root, group_of(group)});
}

int diomp_fortran_target_gather_nb(CFI_cdesc_t *to, CFI_cdesc_t *from, int device, int root,
                                   ompx_event_t *event, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return gather({"ompx_target_gather_nb", &device, event}, {to, from, 0, root, group_of(group)});
}

int diomp_fortran_scatter_nb(CFI_cdesc_t *to, CFI_cdesc_t *from, int root, ompx_event_t *event,
                             const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return scatter({"ompx_scatter_nb", nullptr, event}, {to, from, 0, root, group_of(group)});
}

int diomp_fortran_target_scatter(CFI_cdesc_t *to, CFI_cdesc_t *from, int device, int root,
                                 const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return scatter({"ompx_target_scatter", &device, nullptr}, {to, from, 0, root, group_of(group)});
}

int diomp_fortran_target_scatter_nb(CFI_cdesc_t *to, CFI_cdesc_t *from, int device, int root,
                                    ompx_event_t *event, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return scatter({"ompx_target_scatter_nb", &device, event},
                   {to, from, 0, root, group_of(group)});
}

int diomp_fortran_allgather_nb(CFI_cdesc_t *to, CFI_cdesc_t *from, ompx_event_t *event,
                               const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return allgather({"ompx_allgather_nb", nullptr, event}, {to, from, 0, 0, group_of(group)});
}

int diomp_fortran_target_allgather(CFI_cdesc_t *to, CFI_cdesc_t *from, int device,
                                   const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return allgather({"ompx_target_allgather", &device, nullptr},
                     {to, from, 0, 0, group_of(group)});
}

int diomp_fortran_target_allgather_nb(CFI_cdesc_t *to, CFI_cdesc_t *from, int device,
                                      ompx_event_t *event, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return allgather({"ompx_target_allgather_nb", &device, event},
                     {to, from, 0, 0, group_of(group)});
}

int diomp_fortran_alltoall_nb(CFI_cdesc_t *to, CFI_cdesc_t *from, ompx_event_t *event,
                              const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return alltoall({"ompx_alltoall_nb", nullptr, event}, {to, from, 0, 0, group_of(group)});
}

int diomp_fortran_target_alltoall(CFI_cdesc_t *to, CFI_cdesc_t *from, int device,
                                  const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return alltoall({"ompx_target_alltoall", &device, nullptr}, {to, from, 0, 0, group_of(group)});
}

int diomp_fortran_target_alltoall_nb(CFI_cdesc_t *to, CFI_cdesc_t *from, int device,
                                     ompx_event_t *event, const ompx_group_t *group) {
    caller const here(DIOMP_FORTRAN_CALLER);
    return alltoall({"ompx_target_alltoall_nb", &device, event}, {to, from, 0, 0, group_of(group)});
}

} // extern "C"
