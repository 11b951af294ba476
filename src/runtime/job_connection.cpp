// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/job_connection.h"

#include "base/log.h"
#include "base/sanitizer.h"
#include "memory/layout.h"
#include "messaging/call.h"
#include "offload/device_segments.h"
#include "offload/preregistered_segments.h"
#include "runtime/internal/preregistered_devices.h"
#include "runtime/internal/shared_choices.h"
#include "runtime/rank_devices.h"
#include "stacks/stacks.h"
#include "transport/arena.h"
#include "transport/conduit.h"
#include "transport/create.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace diomp::runtime {
namespace {

/// Maximum number of polls before a waiting thread yields, some 40 us; the actual number adapts to
/// the load of the cores (messaging/internal/core_monitor.h).
int choose_spin_count(const settings &values) {
    return values.messaging.spin_count >= 0 ? values.messaging.spin_count : 2000;
}

constexpr const char *processors_key = "processors";

/// Ranks with different values would use different networks, or different rounds in a collective.
std::vector<own_choices::setting> equal_settings(const settings &values) {
    constexpr std::array<const char *, 3> encryptions{"off", "control", "all"};
    transport_settings const &of = values.transport;
    return {{"DIOMP_CONDUIT", of.conduit},
            {"DIOMP_NETWORK", of.network},
            {"DIOMP_ENCRYPT", encryptions[static_cast<std::size_t>(of.encrypt)]},
            {"DIOMP_NETWORK_ATOMICS", of.network_atomics},
            {"DIOMP_NODE_SIZE", std::to_string(of.node_size)},
            {"DIOMP_CHECK", values.memory.check == check_level::none ? "none" : "allocations"}};
}

} // namespace

job_connection::job_connection(const settings &values, std::unique_ptr<launch::launcher> launcher)
    : settings_(values), errors_(values.runtime.errors), launcher_(std::move(launcher)) {}

job_connection::~job_connection() = default;

status job_connection::open() {
    if (settings_.runtime.stacks) {
        stacks_ = stacks::stack_reporter::start(*launcher_);
    }
    DIOMP_TRY(create_arena());
    DIOMP_TRY(create_conduit());
    messaging::engine_options options;
    options.spin_count = choose_spin_count(settings_);
    options.is_oversubscribed = settings_.messaging.spin_count < 0 && is_oversubscribed();
    options.timeout_s = settings_.messaging.timeout_s;
    options.warn_after_s = settings_.messaging.warn_after_s;
    // In a world of one rank, a rank serves its own requests while it waits for them.
    options.progress_thread = job().size > 1;
    engine_ = std::make_unique<messaging::engine>(*conduit_, options);
    if (auto *const peers = conduit_->peers(); peers != nullptr) {
        peers->report_failures_to(
            [this](world_rank peer, std::string why) { on_peer_lost(peer, std::move(why)); });
    }
    calls_ = std::make_unique<messaging::call_service>(*engine_);
    return {};
}

status job_connection::create_arena() {
    // Sums do not overflow, here and below: a size that is too large is reported later.
    std::size_t const segment_bytes =
        std::min(settings_.memory.segment_size_bytes, std::size_t{1} << 62);
    std::size_t const wanted = segment_bytes == 0 ? 0 : segment_bytes + memory::internal_bytes;
    transport::arena_options options;
    options.base = settings_.memory.segment_base;
    options.usable_bytes = wanted;
    bool const chosen = settings_.offload.segment_size_bytes == 0;
    std::size_t const each = chosen ? offload::device_segments::min_segment_bytes
                                    : std::min<std::size_t>(settings_.offload.segment_size_bytes,
                                                            transport::arena::max_span());
    options.device_bytes =
        each * static_cast<std::size_t>(offload::device_segments::num_host_devices);
    options.choose_device_bytes = chosen;
    options.is_in_core = settings_.memory.core.whole_arena;
    options.has_redzones = has_address_sanitizer();
    options.control_bytes = transport::control_bytes_per_rank();
    // arena::create() contains a fence.
    DIOMP_TRY(publish_locality(*launcher_));
    own_choices const own{settings_.coll.tuning_file, !settings_.remote.devices.empty(),
                          equal_settings(settings_)};
    DIOMP_TRY(publish_choices(*launcher_, own));
    // Ranks of a node may see different numbers of processors, in containers for example: that of
    // the first one counts.
    bool const is_first = job().local_size == 1 || job().local_ranks.front() == job().rank;
    unsigned num_processors = std::thread::hardware_concurrency();
    if (is_first && job().local_size > 1) {
        DIOMP_TRY(launcher_->put(processors_key, std::to_string(num_processors)));
    }
    auto arena = transport::arena::create(*launcher_, options);
    // If settings differ, this is why ranks do not find each other's values.
    bool const has_choices = arena || arena.failure().code() == OMPX_ERR_STATE;
    auto choices = has_choices ? fetch_choices(*launcher_, own) : shared_choices();
    if (!arena && (choices || choices.failure().code() != OMPX_ERR_ARG)) {
        return arena.take_failure();
    }
    DIOMP_TRY(choices);
    arena_ = arena.take();
    if (!is_first) {
        auto published = launcher_->get(job().local_ranks.front(), processors_key);
        DIOMP_TRY(published);
        num_processors =
            static_cast<unsigned>(std::strtoul(published.value().c_str(), nullptr, 10));
    }
    facts_.is_oversubscribed = static_cast<unsigned>(job().local_size) > num_processors;
    algorithms_ = choices.value().algorithms;
    facts_.has_remote_devices = choices.value().have_remote_devices;
    if (arena_->usable_bytes() <= memory::internal_bytes) {
        return error(OMPX_ERR_NOMEM, "there is no space for segments in the reserved address range",
                     "set DIOMP_DEVICE_SEGMENT_SIZE to a smaller value");
    }
    return {};
}

status job_connection::create_conduit() {
    transport::conduit_options options;
    options.network = settings_.transport.network;
    options.cross_memory_attach = settings_.transport.cross_memory_attach;
    options.ucx.workers = settings_.ucx.workers;
    options.ucx.limits_access = settings_.ucx.limits_access;
    options.tcp.interfaces = settings_.tcp.interfaces;
    options.tcp.send_buffer_bytes = settings_.tcp.send_buffer_bytes;
    options.tcp.congestion = settings_.tcp.congestion;
    options.tcp.max_connections = settings_.tcp.max_connections;
    options.encrypts = settings_.transport.encrypt == encryption::all;
    options.network_rma = settings_.transport.network_rma;
    options.device_memory = settings_.transport.network_device_memory;
    options.native_atomics = settings_.transport.network_atomics == "native";
    preregistered_ = std::make_unique<offload::preregistered_segments>(
        offload::accelerators::options{settings_.device.cuda_library, settings_.device.hip_library,
                                       settings_.device.max_active_streams});
    options.make_device_ranges =
        make_preregistered_segments(settings_, *launcher_, *preregistered_);
    if (settings_.messaging.timeout_s > 0) {
        options.dead_peer_timeout_s = settings_.messaging.timeout_s;
    }
    auto conduit = transport::create(settings_.transport.conduit, *launcher_, *arena_, options);
    DIOMP_TRY(conduit);
    conduit_ = conduit.take();
    return {};
}

void job_connection::stop() {
    if (engine_) {
        engine_->stop();
    }
}

status job_connection::close() {
    stop();
    if (auto *const peers = conduit_->peers(); peers != nullptr) {
        DIOMP_TRY(peers->close());
    }
    return launcher_->finalize();
}

void job_connection::freeze() {
    if (auto *const peers = conduit_->peers(); peers != nullptr) {
        peers->freeze();
    }
}

std::unique_ptr<transport::arena> job_connection::keep_arena() { return std::move(arena_); }

void job_connection::on_peer_lost(world_rank peer, std::string why) {
    launcher_->report_peer_failure(peer);
    if (errors_.load() == error_policy::abort) {
        // Where the launcher ends the job, ranks end one after the other: this one, too, in a
        // moment.
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        // This may be the only thread that notices the loss: the others may compute without calls.
        std::string const text =
            fmt::format("rank {} ({}): {}", job().rank.value(), job().host, why);
        write_log(log_level::error, text);
        give_up(OMPX_ERR_PEER, 1, text);
        std::_Exit(1);
    }
    engine_->fail_waits(std::move(why));
}

void job_connection::note_peer_error() noexcept {
    if (!has_peer_error_.exchange(true)) {
        launcher_->report_peer_failure(std::nullopt);
    }
}

void job_connection::give_up(int failure, int code, std::string_view message) noexcept {
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
    if (failure == OMPX_SUCCESS && job().size > 1) {
        // ompx_abort: the launcher ends all ranks, this one too. If it ended earlier, others would
        // report that it is lost.
        std::this_thread::sleep_for(std::chrono::seconds(1));
    }
}

const std::string &job_connection::conduit_name() const { return conduit_->name(); }

bool job_connection::has_forced_network() const {
    return transport::is_forced_network(settings_.transport.conduit);
}

} // namespace diomp::runtime
