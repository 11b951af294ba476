// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/runtime.h"

#include "base/log.h"
#include "coll/collective.h"
#include "device_coll/device_collectives.h"
#include "group/registry.h"
#include "memory/directory.h"
#include "memory/memory.h"
#include "memory/segment.h"
#include "messaging/engine.h"
#include "offload/offload.h"
#include "offload/request_observer.h"
#include "rma/options.h"
#include "rma/rma.h"
#include "runtime/collective_allocator.h"
#include "runtime/internal/region_groups.h"
#include "transport/arena.h"

#include <fmt/format.h>

namespace diomp::runtime {
namespace {

rma::transfer_observer observer_for(trace &recorder) {
    if (!recorder.enabled()) {
        return {};
    }
    return [&recorder](rma::direction dir, world_rank peer, std::size_t nbytes,
                       trace::time_point begin) {
        recorder.flight(dir == rma::direction::put ? "put to" : "get from", peer.value(), nbytes,
                        begin, trace::time_point::clock::now());
    };
}

offload::request_observer observer_for(statistics &counts, trace &recorder) {
    if (!counts.enabled() && !recorder.enabled()) {
        return {};
    }
    return [&](const offload::executed_request &what) {
        constexpr const char *path = "in region";
        auto const time = what.end - what.begin;
        if (counts.enabled()) {
            counts.record_all(what.function, path, 1, what.nbytes, time, time);
        }
        if (recorder.enabled()) {
            int const peer = what.rank < 0 ? trace::no_peer : what.rank;
            recorder.slice({what.function, path, what.nbytes, peer, trace::no_group}, what.begin,
                           what.end);
        }
    };
}

} // namespace

runtime::runtime(const settings &values, std::unique_ptr<launch::launcher> launcher)
    : settings_(values), statistics_(values.runtime.stats), trace_(values.runtime.trace_file),
      connection_(settings_, std::move(launcher)) {}

result<std::unique_ptr<runtime>> runtime::start(const settings &values,
                                                std::unique_ptr<launch::launcher> launcher) {
    std::unique_ptr<runtime> made(new runtime(values, std::move(launcher)));
    DIOMP_TRY(made->build());
    return made;
}

status runtime::build() {
    DIOMP_TRY(connection_.open());
    auto const &info = job();
    auto &engine = connection_.engine();
    auto &calls = connection_.calls();
    auto const &arena = connection_.arena();
    segment_ = std::make_unique<memory::segment>(arena, info.rank, info.local,
                                                 settings_.memory.core.own_bytes);
    directory_ = std::make_unique<memory::directory>(*segment_, engine, calls, info.rank);
    space_ =
        std::make_unique<memory::address_space>(info.rank, arena, engine, *segment_, *directory_,
                                                settings_.memory.check == check_level::allocations);
    rma::calibrate_copies();
    transfers_ = std::make_unique<rma::transfers>(*space_, *segment_, *directory_, engine, calls,
                                                  rma::options{info.rank, info.size,
                                                               settings_.rma.stream_threshold_bytes,
                                                               observer_for(trace_)});
    devices_ = std::make_unique<offload::devices>(
        *space_, *segment_, *directory_, arena, engine, calls, *transfers_,
        connection_.preregistered(), info,
        offload::options{settings_.offload.paths, settings_.offload.segment_size_bytes,
                         settings_.offload.pin_threshold_bytes, settings_.offload.calls,
                         observer_for(statistics_, trace_)});
    pairwise_.create(connection_, *transfers_, *space_, *segment_);
    collectives_.create(settings_, connection_, *segment_, *devices_);
    devices_->set_groups(region_groups(collectives_.groups()));
    collectives_.groups().on_free([this](std::uint64_t id) { devices_->forget_group(id); });
    allocator_ = std::make_unique<collective_allocator>(
        *segment_, *space_, *directory_, *transfers_, *devices_, collectives_.groups(),
        collectives_.on_host(), arena, info.local);
    engine.start();
    DIOMP_TRY(collectives_.create_world(connection_));
    log(log_level::info,
        "rank {} of {} on {}: conduit {}, segment {} MiB at {}, up to {} polls before yielding",
        info.rank.value(), info.size, info.host, connection_.conduit_name(),
        segment_->size_bytes() >> 20, fmt::ptr(segment_->base()), engine.options().spin_count);
    return {};
}

status runtime::synchronize_at_end() {
    collectives_.on_devices().finish();
    DIOMP_TRY(transfers_->finish());
    if (int const held = pairwise_.num_locks_held(); held > 0) {
        log(log_level::warn, "{} lock(s) still held at the end of the program", held);
    }
    return collectives_.finish(connection_);
}

runtime::~runtime() { connection_.stop(); }

} // namespace diomp::runtime
