// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives on device memory: each builds a request with a device, which runs at once or is
// queued (_nb).
#include "diomp/target_collective.h"

#include "api/internal/requests.h"
#include "device_coll/device_collectives.h"
#include "diomp/atomic.h"
#include "group/group.h"
#include "group/registry.h"

using namespace diomp;
using api::bcast;
using api::list_call;
using api::move;
using api::reduction;
using coll::request;
using sync::operation;

namespace {

std::string describe(const request &args, int device, ompx_group_t group) {
    return fmt::format("dst={}, src={}, device={}, {}", fmt::ptr(args.dst), args.src,
                       device == OMPX_GROUP_DEVICES ? std::string("OMPX_GROUP_DEVICES")
                                                    : std::to_string(device),
                       api::describe(args, group));
}

/// Finds the group, completes the request by complete(group), then use(devices, group, device).
template <typename Complete, typename Use>
int call(const char *function, const void *site, const request &args, int device,
         ompx_group_t group, Complete &&complete, Use &&use) {
    return api::call(
        function, site, [&] { return describe(args, device, group); },
        [&](runtime::runtime &running, api::call_stats &stats) -> status {
            auto members = running.collectives().groups().find(group);
            DIOMP_TRY(members);
            DIOMP_TRY(complete(*members.value()));
            stats = {"device", args.amount * (args.type == 0 ? 1 : ompx_type_size(args.type)),
                     runtime::trace::no_peer, members.value()->id()};
            // OMPX_GROUP_DEVICES in a group of ranks: the calling task's default device.
            int const on = device == OMPX_GROUP_DEVICES && members.value()->endpoints().empty()
                               ? api::default_device()
                               : device;
            return use(running.collectives().on_devices(), *members.value(), on);
        });
}

// The request is passed by reference: see find_rank_group() in collective.cpp for the cost of a
// copy.
int run(const char *function, const void *site, const request &args, int device,
        ompx_group_t group) {
    return call(
        function, site, args, device, group, [](group::group &) { return status{}; },
        [&args](device_coll::device_collectives &devices, group::group &members, int on) {
            return devices.run(members, args, on);
        });
}

/// Runs a v variant.
int run_lists(const char *function, const void *site, list_call wanted, int device,
              ompx_group_t group) {
    return call(
        function, site, wanted.args, device, group,
        [&wanted](group::group &members) { return api::read_lists(wanted, members); },
        [&wanted](device_coll::device_collectives &devices, group::group &members, int on) {
            return devices.run(members, wanted.args, on);
        });
}

int start(const char *function, const void *site, list_call wanted, int device, ompx_group_t group,
          ompx_event_t *event) {
    return call(
        function, site, wanted.args, device, group,
        [&wanted](group::group &members) { return api::read_lists(wanted, members); },
        [&wanted, event](device_coll::device_collectives &devices, group::group &members,
                         int on) -> status {
            DIOMP_TRY(api::check_pointer(event, "event"));
            auto started = devices.start(members, wanted.args, on);
            DIOMP_TRY(started);
            *event = started.value();
            return {};
        });
}

} // namespace

extern "C" {

int ompx_target_bcast_from(void *ptr, int device, size_t nbytes, int root,
                           ompx_group_t group) noexcept {
    return run("ompx_target_bcast_from", DIOMP_SITE, bcast(ptr, nbytes, root), device, group);
}

int ompx_target_bcast(void *ptr, int device, size_t nbytes, int root, ompx_group_t group) noexcept {
    return run("ompx_target_bcast", DIOMP_SITE, bcast(ptr, nbytes, root), device, group);
}

int ompx_target_reduce(void *dst, const void *src, int device, size_t count, ompx_type_t type,
                       ompx_op_t op, int root, ompx_group_t group) noexcept {
    return run("ompx_target_reduce", DIOMP_SITE,
               reduction(operation::reduce, dst, src, count, type, op, root), device, group);
}

int ompx_target_allreduce(void *dst, const void *src, int device, size_t count, ompx_type_t type,
                          ompx_op_t op, ompx_group_t group) noexcept {
    return run("ompx_target_allreduce", DIOMP_SITE,
               reduction(operation::allreduce, dst, src, count, type, op), device, group);
}

int ompx_target_gather(void *dst, const void *src, int device, size_t nbytes, int root,
                       ompx_group_t group) noexcept {
    return run("ompx_target_gather", DIOMP_SITE, move(operation::gather, dst, src, nbytes, root),
               device, group);
}

int ompx_target_scatter(void *dst, const void *src, int device, size_t nbytes, int root,
                        ompx_group_t group) noexcept {
    return run("ompx_target_scatter", DIOMP_SITE, move(operation::scatter, dst, src, nbytes, root),
               device, group);
}

int ompx_target_allgather(void *dst, const void *src, int device, size_t nbytes,
                          ompx_group_t group) noexcept {
    return run("ompx_target_allgather", DIOMP_SITE, move(operation::allgather, dst, src, nbytes),
               device, group);
}

int ompx_target_reduce_scatter(void *dst, const void *src, int device, size_t count,
                               ompx_type_t type, ompx_op_t op, ompx_group_t group) noexcept {
    return run("ompx_target_reduce_scatter", DIOMP_SITE,
               reduction(operation::reduce_scatter, dst, src, count, type, op), device, group);
}

int ompx_target_alltoall(void *dst, const void *src, int device, size_t nbytes,
                         ompx_group_t group) noexcept {
    return run("ompx_target_alltoall", DIOMP_SITE, move(operation::alltoall, dst, src, nbytes),
               device, group);
}

int ompx_target_gatherv(void *dst, const size_t *nbytes, const size_t *offsets, const void *src,
                        int device, int root, ompx_group_t group) noexcept {
    return run_lists("ompx_target_gatherv", DIOMP_SITE,
                     {move(operation::gatherv, dst, src, 0, root), {nbytes, offsets}, {}}, device,
                     group);
}

int ompx_target_scatterv(void *dst, const void *src, const size_t *nbytes, const size_t *offsets,
                         int device, int root, ompx_group_t group) noexcept {
    return run_lists("ompx_target_scatterv", DIOMP_SITE,
                     {move(operation::scatterv, dst, src, 0, root), {}, {nbytes, offsets}}, device,
                     group);
}

int ompx_target_allgatherv(void *dst, const size_t *nbytes, const size_t *offsets, const void *src,
                           int device, ompx_group_t group) noexcept {
    return run_lists("ompx_target_allgatherv", DIOMP_SITE,
                     {move(operation::allgatherv, dst, src, 0), {nbytes, offsets}, {}}, device,
                     group);
}

int ompx_target_alltoallv(void *dst, const size_t *dst_nbytes, const size_t *dst_offsets,
                          const void *src, const size_t *src_nbytes, const size_t *src_offsets,
                          int device, ompx_group_t group) noexcept {
    return run_lists("ompx_target_alltoallv", DIOMP_SITE,
                     {move(operation::alltoallv, dst, src, 0),
                      {dst_nbytes, dst_offsets},
                      {src_nbytes, src_offsets}},
                     device, group);
}

int ompx_target_scan(void *dst, const void *src, int device, size_t count, ompx_type_t type,
                     ompx_op_t op, ompx_group_t group) noexcept {
    return run("ompx_target_scan", DIOMP_SITE,
               reduction(operation::scan, dst, src, count, type, op), device, group);
}

int ompx_target_exscan(void *dst, const void *src, int device, size_t count, ompx_type_t type,
                       ompx_op_t op, ompx_group_t group) noexcept {
    return run("ompx_target_exscan", DIOMP_SITE,
               reduction(operation::exscan, dst, src, count, type, op), device, group);
}

int ompx_target_bcast_from_nb(void *ptr, int device, size_t nbytes, int root, ompx_group_t group,
                              ompx_event_t *event) noexcept {
    return start("ompx_target_bcast_from_nb", DIOMP_SITE, bcast(ptr, nbytes, root), device, group,
                 event);
}

int ompx_target_bcast_nb(void *ptr, int device, size_t nbytes, int root, ompx_group_t group,
                         ompx_event_t *event) noexcept {
    return start("ompx_target_bcast_nb", DIOMP_SITE, bcast(ptr, nbytes, root), device, group,
                 event);
}

int ompx_target_reduce_nb(void *dst, const void *src, int device, size_t count, ompx_type_t type,
                          ompx_op_t op, int root, ompx_group_t group,
                          ompx_event_t *event) noexcept {
    return start("ompx_target_reduce_nb", DIOMP_SITE,
                 reduction(operation::reduce, dst, src, count, type, op, root), device, group,
                 event);
}

int ompx_target_allreduce_nb(void *dst, const void *src, int device, size_t count, ompx_type_t type,
                             ompx_op_t op, ompx_group_t group, ompx_event_t *event) noexcept {
    return start("ompx_target_allreduce_nb", DIOMP_SITE,
                 reduction(operation::allreduce, dst, src, count, type, op), device, group, event);
}

int ompx_target_gather_nb(void *dst, const void *src, int device, size_t nbytes, int root,
                          ompx_group_t group, ompx_event_t *event) noexcept {
    return start("ompx_target_gather_nb", DIOMP_SITE,
                 move(operation::gather, dst, src, nbytes, root), device, group, event);
}

int ompx_target_scatter_nb(void *dst, const void *src, int device, size_t nbytes, int root,
                           ompx_group_t group, ompx_event_t *event) noexcept {
    return start("ompx_target_scatter_nb", DIOMP_SITE,
                 move(operation::scatter, dst, src, nbytes, root), device, group, event);
}

int ompx_target_allgather_nb(void *dst, const void *src, int device, size_t nbytes,
                             ompx_group_t group, ompx_event_t *event) noexcept {
    return start("ompx_target_allgather_nb", DIOMP_SITE,
                 move(operation::allgather, dst, src, nbytes), device, group, event);
}

int ompx_target_reduce_scatter_nb(void *dst, const void *src, int device, size_t count,
                                  ompx_type_t type, ompx_op_t op, ompx_group_t group,
                                  ompx_event_t *event) noexcept {
    return start("ompx_target_reduce_scatter_nb", DIOMP_SITE,
                 reduction(operation::reduce_scatter, dst, src, count, type, op), device, group,
                 event);
}

int ompx_target_alltoall_nb(void *dst, const void *src, int device, size_t nbytes,
                            ompx_group_t group, ompx_event_t *event) noexcept {
    return start("ompx_target_alltoall_nb", DIOMP_SITE, move(operation::alltoall, dst, src, nbytes),
                 device, group, event);
}

int ompx_target_gatherv_nb(void *dst, const size_t *nbytes, const size_t *offsets, const void *src,
                           int device, int root, ompx_group_t group, ompx_event_t *event) noexcept {
    return start("ompx_target_gatherv_nb", DIOMP_SITE,
                 {move(operation::gatherv, dst, src, 0, root), {nbytes, offsets}, {}}, device,
                 group, event);
}

int ompx_target_scatterv_nb(void *dst, const void *src, const size_t *nbytes, const size_t *offsets,
                            int device, int root, ompx_group_t group,
                            ompx_event_t *event) noexcept {
    return start("ompx_target_scatterv_nb", DIOMP_SITE,
                 {move(operation::scatterv, dst, src, 0, root), {}, {nbytes, offsets}}, device,
                 group, event);
}

int ompx_target_allgatherv_nb(void *dst, const size_t *nbytes, const size_t *offsets,
                              const void *src, int device, ompx_group_t group,
                              ompx_event_t *event) noexcept {
    return start("ompx_target_allgatherv_nb", DIOMP_SITE,
                 {move(operation::allgatherv, dst, src, 0), {nbytes, offsets}, {}}, device, group,
                 event);
}

int ompx_target_alltoallv_nb(void *dst, const size_t *dst_nbytes, const size_t *dst_offsets,
                             const void *src, const size_t *src_nbytes, const size_t *src_offsets,
                             int device, ompx_group_t group, ompx_event_t *event) noexcept {
    return start("ompx_target_alltoallv_nb", DIOMP_SITE,
                 {move(operation::alltoallv, dst, src, 0),
                  {dst_nbytes, dst_offsets},
                  {src_nbytes, src_offsets}},
                 device, group, event);
}

int ompx_target_scan_nb(void *dst, const void *src, int device, size_t count, ompx_type_t type,
                        ompx_op_t op, ompx_group_t group, ompx_event_t *event) noexcept {
    return start("ompx_target_scan_nb", DIOMP_SITE,
                 reduction(operation::scan, dst, src, count, type, op), device, group, event);
}

int ompx_target_exscan_nb(void *dst, const void *src, int device, size_t count, ompx_type_t type,
                          ompx_op_t op, ompx_group_t group, ompx_event_t *event) noexcept {
    return start("ompx_target_exscan_nb", DIOMP_SITE,
                 reduction(operation::exscan, dst, src, count, type, op), device, group, event);
}

} // extern "C"
