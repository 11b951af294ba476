// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/runtime.h"

#include "base/cpu.h"
#include "base/log.h"
#include "base/sizes.h"
#include "device/numa.h"
#include "runtime/internal/preregistered_devices.h"
#include "runtime/rank_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

namespace diomp::runtime {
namespace {

/// More ranks than cores: ranks share cores, so every wait costs a context switch.
bool is_oversubscribed(const launch::job_info &job) {
    return static_cast<unsigned>(job.local_size) > std::thread::hardware_concurrency();
}

/// Maximum number of polls before a waiting thread yields, some 40 us; the actual number adapts to
/// the load of the cores (messaging/internal/core_monitor.h).
int choose_spin_count(const settings &values) {
    return values.messaging.spin_count >= 0 ? values.messaging.spin_count : 2000;
}

/// Two buffer halves are twice the core's level-2 cache. Ranks that share a core share that cache.
std::size_t choose_stage_buffer_bytes(const launch::job_info &job) {
    return is_oversubscribed(job)
               ? 0
               : std::clamp<std::size_t>(level2_cache_bytes(), std::size_t{512} << 10,
                                         std::size_t{2} << 20);
}

} // namespace

result<std::unique_ptr<runtime>> runtime::start(const settings &values,
                                                std::unique_ptr<launch::launcher> launcher) {
    std::unique_ptr<runtime> made(new runtime(values));
    made->launcher_ = std::move(launcher);
    if (values.runtime.stacks) {
        made->stacks_ = stacks::stack_reporter::start(*made->launcher_);
    }
    if (status built = made->build(); !built) {
        return built.take_failure();
    }
    return made;
}

rma::transfer_observer runtime::transfer_observer() {
    if (!trace_.enabled()) {
        return {};
    }
    return
        [this](rma::direction dir, world_rank peer, std::size_t nbytes, trace::time_point begin) {
            trace_.flight(dir == rma::direction::put ? "put to" : "get from", peer.value(), nbytes,
                          begin, trace::time_point::clock::now());
        };
}

status runtime::build() {
    auto const &info = launcher_->info();
    std::size_t const wanted = settings_.memory.segment_size_bytes == 0
                                   ? 0
                                   : settings_.memory.segment_size_bytes + memory::internal_bytes;
    transport::arena_options arena_options;
    arena_options.base = settings_.memory.segment_base;
    arena_options.usable_bytes = wanted;
    bool const chosen = settings_.offload.segment_size_bytes == 0;
    // Saturating: a size that is too large is reported later.
    std::size_t const each = chosen ? offload::devices::min_segment_bytes
                                    : std::min<std::size_t>(settings_.offload.segment_size_bytes,
                                                            transport::arena::max_span());
    arena_options.device_bytes =
        each * static_cast<std::size_t>(offload::devices::num_host_devices);
    arena_options.choose_device_bytes = chosen;
    arena_options.is_in_core = settings_.memory.core.whole_arena;
    arena_options.control_bytes = transport::control_bytes_per_rank();
    DIOMP_TRY(publish_locality(*launcher_)); // arena::create() contains a fence
    auto arena = transport::arena::create(*launcher_, arena_options);
    DIOMP_TRY(arena);
    arena_ = arena.take();
    if (arena_->usable_bytes() <= memory::internal_bytes) {
        return error(OMPX_ERR_NOMEM, "there is no space for segments in the reserved address range",
                     "set DIOMP_DEVICE_SEGMENT_SIZE to a smaller value");
    }
    transport::conduit_options conduit_options;
    conduit_options.network = settings_.transport.network;
    conduit_options.cross_memory_attach = settings_.transport.cross_memory_attach;
    conduit_options.ucx_workers = settings_.ucx.workers;
    conduit_options.tcp_interfaces = settings_.tcp.interfaces;
    conduit_options.tcp_send_buffer_bytes = settings_.tcp.send_buffer_bytes;
    conduit_options.tcp_congestion = settings_.tcp.congestion;
    conduit_options.encrypts = settings_.transport.encrypt == encryption::all;
    conduit_options.network_rma = settings_.transport.network_rma;
    conduit_options.device_memory = settings_.transport.network_device_memory;
    conduit_options.native_atomics = settings_.transport.network_atomics == "native";
    preregistered_ = std::make_unique<offload::preregistered_segments>(
        offload::accelerators::options{settings_.device.cuda_library, settings_.device.hip_library,
                                       settings_.device.max_active_streams});
    conduit_options.make_device_ranges =
        make_preregistered_segments(settings_, *launcher_, *preregistered_);
    if (settings_.messaging.timeout_s > 0) {
        conduit_options.dead_peer_timeout_s = settings_.messaging.timeout_s;
    }
    auto conduit =
        transport::create(settings_.transport.conduit, *launcher_, *arena_, conduit_options);
    DIOMP_TRY(conduit);
    conduit_ = conduit.take();
    messaging::engine_options options;
    options.spin_count = choose_spin_count(settings_);
    options.is_oversubscribed = settings_.messaging.spin_count < 0 && is_oversubscribed(info);
    options.timeout_s = settings_.messaging.timeout_s;
    options.warn_after_s = settings_.messaging.warn_after_s;
    // In a world of one rank, a rank serves its own requests while it waits for them.
    options.progress_thread = info.size > 1;
    engine_ = std::make_unique<messaging::engine>(*conduit_, options);
    conduit_->report_failures_to(
        [this](world_rank peer, std::string why) { on_peer_lost(peer, std::move(why)); });
    calls_ = std::make_unique<messaging::call_service>(*engine_);
    segment_ = std::make_unique<memory::segment>(*arena_, info.rank, info.local,
                                                 settings_.memory.core.own_bytes);
    directory_ = std::make_unique<memory::directory>(*segment_, *engine_, *calls_, info.rank);
    space_ = std::make_unique<memory::address_space>(
        info.rank, *arena_, *engine_, *segment_, *directory_,
        settings_.memory.check == check_level::allocations);
    rma::calibrate_copies();
    transfers_ = std::make_unique<rma::transfers>(
        *space_, *segment_, *directory_, *engine_, *calls_,
        rma::options{info.rank, info.size, settings_.rma.stream_threshold_bytes,
                     transfer_observer()});
    devices_ = std::make_unique<offload::devices>(
        *space_, *segment_, *directory_, *arena_, *engine_, *calls_, *transfers_, *preregistered_,
        info,
        offload::options{settings_.offload.paths, settings_.offload.segment_size_bytes,
                         settings_.offload.pin_threshold_bytes});
    locks_ = std::make_unique<sync::locks>(*engine_, *calls_, info.rank);
    workspace_ = std::make_unique<group::segment_workspace>(*segment_);
    groups_ = std::make_unique<group::group_registry>(*engine_, *workspace_, info.rank, info.size);
    coll::options collective_options;
    collective_options.arena_base = arena_->base();
    collective_options.arena_span =
        arena_->slot_bytes() * static_cast<std::size_t>(arena_->num_slots());
    collective_options.stream_threshold_bytes = settings_.rma.stream_threshold_bytes;
    // First touch places pages on the writer's NUMA node, so only on machines with one node.
    if (device::has_one_numa_node()) {
        collective_options.shared_bcast_min_bytes = level2_cache_bytes();
    }
    collective_options.oversubscribed = is_oversubscribed(info);
    collective_options.stage_buffer_half_bytes = choose_stage_buffer_bytes(info);
    collective_options.check_all_members = settings_.memory.check != check_level::none;
    collectives_ = std::make_unique<coll::collectives>(collective_options);
    device_collectives_ = std::make_unique<device_coll::device_collectives>(
        *collectives_, *devices_, *engine_, *groups_,
        device_coll::vendor_choice::options{
            settings_.device_coll.ccl, settings_.device_coll.direct_threshold_bytes,
            settings_.device_coll.nccl_library, settings_.device_coll.rccl_library});
    engine_->start();
    // All ranks must have handlers and workspaces before any rank uses them.
    if (info.size > 1) {
        DIOMP_TRY(group::publish_node(*launcher_, *conduit_));
        DIOMP_TRY(launcher_->fence());
    }
    auto nodes = group::fetch_node_map(*launcher_, *conduit_);
    DIOMP_TRY(nodes);
    DIOMP_TRY(groups_->create_world(nodes.take()));
    log(log_level::info,
        "rank {} of {} on {}: conduit {}, segment {} at {}, up to {} polls before yielding",
        info.rank.value(), info.size, info.host, conduit_->caps().name,
        format_size(segment_->size_bytes()), fmt::ptr(segment_->base()), options.spin_count);
    return {};
}

status runtime::synchronize_at_end() {
    device_collectives_->finish();
    DIOMP_TRY(transfers_->fence());
    if (int const held = locks_->num_held(); held > 0) {
        log(log_level::warn, "{} lock(s) still held at the end of the program", held);
    }
    sync::call_signature call;
    call.what = sync::operation::finalize;
    {
        auto const call_lock = groups_->world().lock_calls();
        DIOMP_TRY(groups_->world().arrive_and_wait(call));
    }
    // After the round a rank may end; other nodes may not have received its last messages yet.
    if (groups_->world().internode() != nullptr) {
        DIOMP_TRY(launcher_->fence());
    }
    return {};
}

status runtime::close() {
    engine_->stop();
    DIOMP_TRY(conduit_->close());
    return launcher_->finalize();
}

void runtime::on_peer_lost(world_rank peer, std::string why) {
    launcher_->report_peer_failure(peer);
    if (settings_.runtime.errors == error_policy::abort) {
        // This may be the only thread that notices the loss: the others may compute without calls.
        auto const &job = launcher_->info();
        std::string const text = fmt::format("rank {} ({}): {}", job.rank.value(), job.host, why);
        write_log(log_level::error, text);
        give_up(OMPX_ERR_PEER, 1, text);
        std::_Exit(1);
    }
    engine_->fail_waits(std::move(why));
}

void runtime::give_up(int failure, int code, std::string_view message) noexcept {
    if (failure == OMPX_ERR_PEER) {
        // on_peer_lost() in another thread may not have reported it yet.
        launcher_->report_peer_failure(std::nullopt);
    }
    // The launcher may report the death of a lost peer itself. If it cannot request the stacks of
    // all ranks, this rank's own stacks are printed for a timeout only.
    if (settings_.runtime.stacks && (failure == OMPX_ERR_TIMEOUT || failure == OMPX_ERR_PEER)) {
        stacks::give_up(*launcher_, code, message, failure == OMPX_ERR_TIMEOUT);
    } else {
        launcher_->abort(code, message);
    }
}

runtime::~runtime() {
    if (engine_) {
        engine_->stop();
    }
}

} // namespace diomp::runtime
