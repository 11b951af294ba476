// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/collective_layer.h"

#include "coll/collective.h"
#include "config/settings.h"
#include "device/numa.h"
#include "device_coll/device_collectives.h"
#include "group/group.h"
#include "group/registry.h"
#include "group/segment_workspace.h"
#include "launch/launch.h"
#include "runtime/job_connection.h"
#include "transport/arena.h"
#include "transport/conduit.h"

#include <algorithm>

namespace diomp::runtime {
namespace {

/// Two buffer halves are twice the core's level-2 cache. Ranks that share a core share that cache.
std::size_t choose_stage_buffer_bytes(const job_connection &job) {
    return job.is_oversubscribed()
               ? 0
               : std::clamp<std::size_t>(level2_cache_bytes(), std::size_t{512} << 10,
                                         std::size_t{2} << 20);
}

/// Ranks that do not load each other's slots are on different nodes, even if their memory is the
/// same. All ranks decide alike: one that is alone on its node would not notice.
group::node_map make_node_map(job_connection &job) {
    launch::job_info const &info = job.job();
    if (job.has_forced_network()) {
        return group::node_map::one_per_rank();
    }
    return info.local_size == info.size ? group::node_map{}
                                        : group::node_map(job.arena().tables().nodes);
}

} // namespace

collective_layer::collective_layer() = default;
collective_layer::~collective_layer() = default;

void collective_layer::create(const settings &values, job_connection &job, memory::segment &own,
                              offload::devices &devices) {
    workspace_ = std::make_unique<group::segment_workspace>(own);
    groups_ = std::make_unique<group::group_registry>(job.engine(), *workspace_, job.job().rank,
                                                      job.job().size);
    coll::options options;
    options.arena_base = job.arena().base();
    options.arena_span = job.arena().span_bytes();
    options.stream_threshold_bytes = values.rma.stream_threshold_bytes;
    // First touch places pages on the writer's NUMA node, so only on machines with one node.
    if (device::has_one_numa_node()) {
        options.shared_bcast_min_bytes = level2_cache_bytes();
    }
    options.oversubscribed = job.is_oversubscribed();
    options.stage_buffer_half_bytes = choose_stage_buffer_bytes(job);
    options.check_all_members = values.memory.check != check_level::none;
    options.source = job.algorithms();
    on_host_ = std::make_unique<coll::collectives>(options);
    on_devices_ = std::make_unique<device_coll::device_collectives>(
        *on_host_, devices, job.engine(), *groups_,
        device_coll::options{values.device_coll.ccl, values.device_coll.direct_threshold_bytes,
                             values.device_coll.nccl_library, values.device_coll.rccl_library});
}

status collective_layer::create_world(job_connection &job) {
    // All ranks must have handlers and workspaces before any rank uses them.
    if (job.job().size > 1) {
        DIOMP_TRY(job.launcher().fence());
    }
    return groups_->create_world(make_node_map(job), job.arena().tables().ranks);
}

status collective_layer::free_group(ompx_group_t group) {
    if (auto const ending = groups_->find(group); ending) {
        on_devices_->forget(*ending.value(), group);
    }
    return groups_->free(group);
}

status collective_layer::finish(job_connection &job) {
    sync::call_signature call;
    call.what = sync::operation::finalize;
    {
        auto const call_lock = groups_->world().lock_calls();
        DIOMP_TRY(groups_->world().arrive_and_wait(call));
    }
    // After the round a rank may end; other nodes may not have received its last messages yet.
    if (groups_->world().internode() != nullptr) {
        DIOMP_TRY(job.launcher().fence());
    }
    return {};
}

} // namespace diomp::runtime
