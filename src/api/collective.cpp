// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The collective calls of diomp.h: each builds a request, which runs at once or is queued (_nb).
#include "diomp/collective.h"

#include "api/internal/requests.h"
#include "diomp/atomic.h"
#include "group/group.h"
#include "group/registry.h"
#include "rma/rma.h"

using namespace diomp;
using api::bcast;
using api::list_call;
using api::move;
using api::reduction;
using coll::request;
using sync::operation;

namespace {

std::string describe(const request &args, ompx_group_t group) {
    return fmt::format("dst={}, src={}, {}", args.dst, args.src, api::describe(args, group));
}

std::size_t bytes_of(const request &args) {
    return args.type == 0 ? args.amount : args.amount * ompx_type_size(args.type);
}

/// Host memory belongs to a rank, so the group must have ranks as members.
// A single result variable, constructed in place: a copy would read it with wider loads than its
// members were stored with, fail store forwarding, and wait for all earlier stores, such as one to
// a cache line owned by another core.
result<group::group *> find_rank_group(runtime::runtime &running, ompx_group_t group,
                                       const request &args) {
    auto found = running.collectives().groups().find(group);
    if (found && !found.value()->endpoints().empty() && args.what != operation::barrier) {
        found = error(OMPX_ERR_ARG,
                      "the group has endpoints as members, but this call needs a group of ranks",
                      "use the ompx_target_ form, or a group of ranks");
    }
    return found;
}

int run(const char *function, const void *site, const request &args, ompx_group_t group) {
    return api::call(
        function, site, [&] { return describe(args, group); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            auto found = find_rank_group(running, group, args);
            DIOMP_TRY(found);
            stats.nbytes = bytes_of(args);
            stats.group = found.value()->id();
            return running.collectives().on_host().run(*found.value(), args);
        });
}

/// Runs a v variant.
int run_lists(const char *function, const void *site, list_call wanted, ompx_group_t group) {
    const request &args = wanted.args;
    return api::call(
        function, site, [&] { return describe(args, group); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            auto found = find_rank_group(running, group, args);
            DIOMP_TRY(found);
            DIOMP_TRY(api::read_lists(wanted, *found.value()));
            stats.group = found.value()->id();
            return running.collectives().on_host().run(*found.value(), args);
        });
}

int start(const char *function, const void *site, list_call wanted, ompx_group_t group,
          ompx_event_t *event) {
    const request &args = wanted.args;
    return api::call(
        function, site, [&] { return describe(args, group); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            DIOMP_TRY(api::check_pointer(event, "event"));
            auto found = find_rank_group(running, group, args);
            DIOMP_TRY(found);
            DIOMP_TRY(api::read_lists(wanted, *found.value()));
            stats.nbytes = bytes_of(args);
            stats.group = found.value()->id();
            if (args.what == operation::barrier) {
                DIOMP_TRY(running.transfers().fence_before_barrier());
            }
            auto started = running.collectives().on_host().start(*found.value(), args);
            DIOMP_TRY(started);
            *event = started.value();
            return {};
        });
}

} // namespace

extern "C" {

int ompx_op_create(ompx_op_t *op, ompx_op_function_t function, void *context,
                   int commutative) noexcept {
    return api::call(
        "ompx_op_create", DIOMP_SITE,
        [&] { return fmt::format("op={}, commutative={}", fmt::ptr(op), commutative); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(api::check_pointer(op, "op"));
            auto made = running.collectives().on_host().operators().create(function, context,
                                                                           commutative != 0);
            DIOMP_TRY(made);
            *op = made.value();
            return {};
        });
}

int ompx_op_free(ompx_op_t *op) noexcept {
    return api::call(
        "ompx_op_free", DIOMP_SITE, [&] { return fmt::format("op={}", fmt::ptr(op)); },
        [&](runtime::runtime &running, api::call_stats &) -> status {
            DIOMP_TRY(api::check_pointer(op, "op"));
            DIOMP_TRY(running.collectives().on_host().operators().free(*op));
            *op = 0;
            return {};
        });
}

int ompx_bcast(void *ptr, size_t nbytes, ompx_group_t group) noexcept {
    return run("ompx_bcast", DIOMP_SITE, bcast(ptr, nbytes, 0), group);
}

int ompx_bcast_from(void *ptr, size_t nbytes, int root, ompx_group_t group) noexcept {
    return run("ompx_bcast_from", DIOMP_SITE, bcast(ptr, nbytes, root), group);
}

int ompx_reduce(void *dst, const void *src, size_t count, ompx_type_t type, ompx_op_t op, int root,
                ompx_group_t group) noexcept {
    return run("ompx_reduce", DIOMP_SITE,
               reduction(operation::reduce, dst, src, count, type, op, root), group);
}

int ompx_allreduce(void *dst, const void *src, size_t count, ompx_type_t type, ompx_op_t op,
                   ompx_group_t group) noexcept {
    return run("ompx_allreduce", DIOMP_SITE,
               reduction(operation::allreduce, dst, src, count, type, op), group);
}

int ompx_gather(void *dst, const void *src, size_t nbytes, int root, ompx_group_t group) noexcept {
    return run("ompx_gather", DIOMP_SITE, move(operation::gather, dst, src, nbytes, root), group);
}

int ompx_scatter(void *dst, const void *src, size_t nbytes, int root, ompx_group_t group) noexcept {
    return run("ompx_scatter", DIOMP_SITE, move(operation::scatter, dst, src, nbytes, root), group);
}

int ompx_allgather(void *dst, const void *src, size_t nbytes, ompx_group_t group) noexcept {
    return run("ompx_allgather", DIOMP_SITE, move(operation::allgather, dst, src, nbytes), group);
}

int ompx_reduce_scatter(void *dst, const void *src, size_t count, ompx_type_t type, ompx_op_t op,
                        ompx_group_t group) noexcept {
    return run("ompx_reduce_scatter", DIOMP_SITE,
               reduction(operation::reduce_scatter, dst, src, count, type, op), group);
}

int ompx_alltoall(void *dst, const void *src, size_t nbytes, ompx_group_t group) noexcept {
    return run("ompx_alltoall", DIOMP_SITE, move(operation::alltoall, dst, src, nbytes), group);
}

int ompx_gatherv(void *dst, const size_t *nbytes, const size_t *offsets, const void *src, int root,
                 ompx_group_t group) noexcept {
    return run_lists("ompx_gatherv", DIOMP_SITE,
                     {move(operation::gatherv, dst, src, 0, root), {nbytes, offsets}, {}}, group);
}

int ompx_scatterv(void *dst, const void *src, const size_t *nbytes, const size_t *offsets, int root,
                  ompx_group_t group) noexcept {
    return run_lists("ompx_scatterv", DIOMP_SITE,
                     {move(operation::scatterv, dst, src, 0, root), {}, {nbytes, offsets}}, group);
}

int ompx_allgatherv(void *dst, const size_t *nbytes, const size_t *offsets, const void *src,
                    ompx_group_t group) noexcept {
    return run_lists("ompx_allgatherv", DIOMP_SITE,
                     {move(operation::allgatherv, dst, src, 0), {nbytes, offsets}, {}}, group);
}

int ompx_alltoallv(void *dst, const size_t *dst_nbytes, const size_t *dst_offsets, const void *src,
                   const size_t *src_nbytes, const size_t *src_offsets,
                   ompx_group_t group) noexcept {
    return run_lists("ompx_alltoallv", DIOMP_SITE,
                     {move(operation::alltoallv, dst, src, 0),
                      {dst_nbytes, dst_offsets},
                      {src_nbytes, src_offsets}},
                     group);
}

int ompx_scan(void *dst, const void *src, size_t count, ompx_type_t type, ompx_op_t op,
              ompx_group_t group) noexcept {
    return run("ompx_scan", DIOMP_SITE, reduction(operation::scan, dst, src, count, type, op),
               group);
}

int ompx_exscan(void *dst, const void *src, size_t count, ompx_type_t type, ompx_op_t op,
                ompx_group_t group) noexcept {
    return run("ompx_exscan", DIOMP_SITE, reduction(operation::exscan, dst, src, count, type, op),
               group);
}

int ompx_barrier_nb(ompx_group_t group, ompx_event_t *event) noexcept {
    return start("ompx_barrier_nb", DIOMP_SITE, request{.what = operation::barrier}, group, event);
}

int ompx_bcast_from_nb(void *ptr, size_t nbytes, int root, ompx_group_t group,
                       ompx_event_t *event) noexcept {
    return start("ompx_bcast_from_nb", DIOMP_SITE, bcast(ptr, nbytes, root), group, event);
}

int ompx_bcast_nb(void *ptr, size_t nbytes, int root, ompx_group_t group,
                  ompx_event_t *event) noexcept {
    return start("ompx_bcast_nb", DIOMP_SITE, bcast(ptr, nbytes, root), group, event);
}

int ompx_reduce_nb(void *dst, const void *src, size_t count, ompx_type_t type, ompx_op_t op,
                   int root, ompx_group_t group, ompx_event_t *event) noexcept {
    return start("ompx_reduce_nb", DIOMP_SITE,
                 reduction(operation::reduce, dst, src, count, type, op, root), group, event);
}

int ompx_allreduce_nb(void *dst, const void *src, size_t count, ompx_type_t type, ompx_op_t op,
                      ompx_group_t group, ompx_event_t *event) noexcept {
    return start("ompx_allreduce_nb", DIOMP_SITE,
                 reduction(operation::allreduce, dst, src, count, type, op), group, event);
}

int ompx_gather_nb(void *dst, const void *src, size_t nbytes, int root, ompx_group_t group,
                   ompx_event_t *event) noexcept {
    return start("ompx_gather_nb", DIOMP_SITE, move(operation::gather, dst, src, nbytes, root),
                 group, event);
}

int ompx_scatter_nb(void *dst, const void *src, size_t nbytes, int root, ompx_group_t group,
                    ompx_event_t *event) noexcept {
    return start("ompx_scatter_nb", DIOMP_SITE, move(operation::scatter, dst, src, nbytes, root),
                 group, event);
}

int ompx_allgather_nb(void *dst, const void *src, size_t nbytes, ompx_group_t group,
                      ompx_event_t *event) noexcept {
    return start("ompx_allgather_nb", DIOMP_SITE, move(operation::allgather, dst, src, nbytes),
                 group, event);
}

int ompx_reduce_scatter_nb(void *dst, const void *src, size_t count, ompx_type_t type, ompx_op_t op,
                           ompx_group_t group, ompx_event_t *event) noexcept {
    return start("ompx_reduce_scatter_nb", DIOMP_SITE,
                 reduction(operation::reduce_scatter, dst, src, count, type, op), group, event);
}

int ompx_alltoall_nb(void *dst, const void *src, size_t nbytes, ompx_group_t group,
                     ompx_event_t *event) noexcept {
    return start("ompx_alltoall_nb", DIOMP_SITE, move(operation::alltoall, dst, src, nbytes), group,
                 event);
}

int ompx_gatherv_nb(void *dst, const size_t *nbytes, const size_t *offsets, const void *src,
                    int root, ompx_group_t group, ompx_event_t *event) noexcept {
    return start("ompx_gatherv_nb", DIOMP_SITE,
                 {move(operation::gatherv, dst, src, 0, root), {nbytes, offsets}, {}}, group,
                 event);
}

int ompx_scatterv_nb(void *dst, const void *src, const size_t *nbytes, const size_t *offsets,
                     int root, ompx_group_t group, ompx_event_t *event) noexcept {
    return start("ompx_scatterv_nb", DIOMP_SITE,
                 {move(operation::scatterv, dst, src, 0, root), {}, {nbytes, offsets}}, group,
                 event);
}

int ompx_allgatherv_nb(void *dst, const size_t *nbytes, const size_t *offsets, const void *src,
                       ompx_group_t group, ompx_event_t *event) noexcept {
    return start("ompx_allgatherv_nb", DIOMP_SITE,
                 {move(operation::allgatherv, dst, src, 0), {nbytes, offsets}, {}}, group, event);
}

int ompx_alltoallv_nb(void *dst, const size_t *dst_nbytes, const size_t *dst_offsets,
                      const void *src, const size_t *src_nbytes, const size_t *src_offsets,
                      ompx_group_t group, ompx_event_t *event) noexcept {
    return start("ompx_alltoallv_nb", DIOMP_SITE,
                 {move(operation::alltoallv, dst, src, 0),
                  {dst_nbytes, dst_offsets},
                  {src_nbytes, src_offsets}},
                 group, event);
}

int ompx_scan_nb(void *dst, const void *src, size_t count, ompx_type_t type, ompx_op_t op,
                 ompx_group_t group, ompx_event_t *event) noexcept {
    return start("ompx_scan_nb", DIOMP_SITE, reduction(operation::scan, dst, src, count, type, op),
                 group, event);
}

int ompx_exscan_nb(void *dst, const void *src, size_t count, ompx_type_t type, ompx_op_t op,
                   ompx_group_t group, ompx_event_t *event) noexcept {
    return start("ompx_exscan_nb", DIOMP_SITE,
                 reduction(operation::exscan, dst, src, count, type, op), group, event);
}

} // extern "C"
