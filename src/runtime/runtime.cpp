// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/runtime.h"

#include "base/cpu.h"
#include "base/log.h"
#include "device/numa.h"
#include "runtime/early_devices.h"
#include "runtime/rank_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

namespace diomp::runtime {
namespace {

/// More ranks than cores: ranks take turns, so every wait costs a switch.
bool is_oversubscribed(const launch::job_info &job) {
    return static_cast<unsigned>(job.local_size) > std::thread::hardware_concurrency();
}

/// Most polls before a waiting thread yields, some 40 us; what the cores show decides how many of
/// them (conduit/core_monitor.h).
int choose_spin_count(const settings &values) {
    return values.spin_count >= 0 ? values.spin_count : 2000;
}

/// Two rooms are twice the core's own cache. Ranks that share a core share that cache as well.
std::size_t choose_stage_room(const launch::job_info &job) {
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
    if (values.stacks) {
        made->stacks_ = stacks::watch::start(*made->launcher_);
    }
    if (status built = made->build(); !built) {
        return built.take_failure();
    }
    return made;
}

rma::flight_observer runtime::flight_observer() {
    if (!trace_.enabled()) {
        return {};
    }
    return
        [this](rma::direction way, world_rank peer, std::size_t nbytes, trace::time_point begin) {
            trace_.flight(way == rma::direction::put ? "put to" : "get from", peer.value(), nbytes,
                          begin, trace::time_point::clock::now());
        };
}

status runtime::build() {
    auto const &info = launcher_->info();
    std::size_t const wanted = settings_.segment_size_bytes == 0
                                   ? 0
                                   : settings_.segment_size_bytes + memory::internal_bytes;
    conduit::window_options window_options;
    window_options.base = settings_.segment_base;
    window_options.usable_bytes = wanted;
    bool const chosen = settings_.device_segment_size_bytes == 0;
    // Saturating: what is too large is an error with a sentence.
    std::size_t const each = chosen ? offload::devices::least_segment_bytes
                                    : std::min<std::size_t>(settings_.device_segment_size_bytes,
                                                            conduit::window::max_span());
    window_options.device_bytes =
        each * static_cast<std::size_t>(offload::devices::num_host_devices);
    window_options.choose_device_bytes = chosen;
    window_options.is_in_core = settings_.core.whole_window;
    window_options.control_bytes = conduit::control_bytes_per_rank();
    DIOMP_TRY(publish_place(*launcher_)); // the window is created with a fence
    auto window = conduit::window::create(*launcher_, window_options);
    DIOMP_TRY(window);
    window_ = window.take();
    if (window_->usable_bytes() <= memory::internal_bytes) {
        return error(OMPX_ERR_NOMEM, "there is no room for segments in the address window",
                     "set DIOMP_DEVICE_SEGMENT_SIZE to a smaller value");
    }
    conduit::conduit_options conduit_options;
    conduit_options.network = settings_.network;
    conduit_options.cross_memory_attach = settings_.cross_memory_attach;
    conduit_options.ucx_workers = settings_.ucx_workers;
    conduit_options.tcp_interfaces = settings_.tcp_interfaces;
    conduit_options.tcp_send_buffer_bytes = settings_.tcp_send_buffer_bytes;
    conduit_options.tcp_congestion = settings_.tcp_congestion;
    conduit_options.encrypts = settings_.encrypt == encryption::all;
    conduit_options.network_rma = settings_.network_rma;
    conduit_options.device_memory = settings_.network_device_memory;
    conduit_options.native_atomics = settings_.network_atomics == "native";
    early_ = std::make_unique<offload::early_segments>(offload::accelerators::options{
        settings_.cuda_library, settings_.hip_library, settings_.max_active_streams});
    conduit_options.make_device_ranges = make_early_segments(settings_, *launcher_, *early_);
    if (settings_.timeout_s > 0) {
        conduit_options.dead_peer_timeout_s = settings_.timeout_s;
    }
    auto conduit = conduit::create(settings_.conduit, *launcher_, *window_, conduit_options);
    DIOMP_TRY(conduit);
    conduit_ = conduit.take();
    conduit::engine_options options;
    options.spin_count = choose_spin_count(settings_);
    options.is_crowded = settings_.spin_count < 0 && is_oversubscribed(info);
    options.timeout_s = settings_.timeout_s;
    options.warn_after_s = settings_.warn_after_s;
    // Alone, every request is one's own and is served while waiting for it.
    options.progress_thread = info.size > 1;
    engine_ = std::make_unique<conduit::engine>(*conduit_, options);
    conduit_->report_failures_to(
        [this](world_rank peer, std::string why) { lose_peer(peer, std::move(why)); });
    calls_ = std::make_unique<conduit::call_service>(*engine_);
    segment_ = std::make_unique<memory::segment>(*window_, info.rank, info.local,
                                                 settings_.core.own_bytes);
    directory_ = std::make_unique<memory::directory>(*segment_, *engine_, *calls_, info.rank);
    space_ = std::make_unique<memory::address_space>(info.rank, *window_, *engine_, *segment_,
                                                     *directory_,
                                                     settings_.check == check_level::allocations);
    rma::calibrate_copies();
    transfers_ = std::make_unique<rma::transfers>(
        *space_, *segment_, *directory_, *engine_, *calls_,
        rma::options{info.rank, info.size, settings_.stream_threshold_bytes, flight_observer()});
    devices_ = std::make_unique<offload::devices>(
        *space_, *segment_, *directory_, *window_, *engine_, *calls_, *transfers_, *early_, info,
        offload::options{settings_.device_paths, settings_.device_segment_size_bytes,
                         settings_.device_pin_threshold_bytes});
    locks_ = std::make_unique<sync::locks>(*engine_, *calls_, info.rank);
    workspace_ = std::make_unique<group::segment_workspace>(*segment_);
    groups_ = std::make_unique<group::group_registry>(*engine_, *workspace_, info.rank, info.size);
    collective::options collective_options;
    collective_options.window_base = window_->base();
    collective_options.window_span =
        window_->slot_bytes() * static_cast<std::size_t>(window_->num_slots());
    collective_options.stream_threshold_bytes = settings_.stream_threshold_bytes;
    // Untouched pages come from the memory next to who writes them first: only where that is one.
    if (device::has_one_numa_node()) {
        collective_options.shared_bcast_from_bytes = level2_cache_bytes();
    }
    collective_options.oversubscribed = is_oversubscribed(info);
    collective_options.stage_room_bytes = choose_stage_room(info);
    collective_options.check_all_members = settings_.check != check_level::none;
    collectives_ = std::make_unique<collective::collectives>(collective_options);
    device_collectives_ = std::make_unique<device_collectives>(
        *collectives_, *devices_, *engine_, *groups_,
        vendor_choice::options{settings_.ccl, settings_.device_direct_threshold_bytes,
                               settings_.nccl_library, settings_.rccl_library});
    engine_->start();
    // Handlers and workspaces stand on every rank before anybody uses them.
    if (info.size > 1) {
        DIOMP_TRY(group::publish_node(*launcher_, *conduit_));
        DIOMP_TRY(launcher_->fence());
    }
    auto nodes = group::learn_nodes(*launcher_, *conduit_);
    DIOMP_TRY(nodes);
    DIOMP_TRY(groups_->create_world(nodes.take()));
    log(log_level::info,
        "rank {} of {} on {}: conduit {}, segment {} at {}, up to {} polls before yielding",
        info.rank.value(), info.size, info.host, conduit_->abilities().name,
        format_size(segment_->size_bytes()), fmt::ptr(segment_->base()), options.spin_count);
    return {};
}

status runtime::meet_at_end() {
    device_collectives_->finish();
    DIOMP_TRY(transfers_->fence());
    if (int const held = locks_->num_held(); held > 0) {
        log(log_level::warn, "{} lock(s) still held at the end of the program", held);
    }
    sync::call_signature call;
    call.what = sync::operation::finalize;
    {
        auto const turn = groups_->world().enter();
        DIOMP_TRY(groups_->world().meet(call));
    }
    // A rank that has met may go; between nodes others still need what it has sent last.
    if (groups_->world().across() != nullptr) {
        DIOMP_TRY(launcher_->fence());
    }
    return {};
}

status runtime::close() {
    engine_->stop();
    DIOMP_TRY(conduit_->close());
    return launcher_->finalize();
}

void runtime::lose_peer(world_rank peer, std::string why) {
    launcher_->report_loss(peer);
    if (settings_.errors == error_policy::abort) {
        // This thread may be the only one that will ever hear of it: the others compute.
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
        launcher_->report_loss(std::nullopt); // lose_peer(), in another thread, may be about to
    }
    // Whoever lost a peer may have lost it to a death that the launcher knows of; where it cannot
    // ask the others, that is no news of this rank.
    if (settings_.stacks && (failure == OMPX_ERR_TIMEOUT || failure == OMPX_ERR_PEER)) {
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
