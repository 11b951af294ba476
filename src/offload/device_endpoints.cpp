// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/device_endpoints.h"

#include "base/log.h"
#include "config/settings.h"
#include "launch/launch.h"
#include "messaging/call.h"
#include "messaging/engine.h"
#include "offload/alloc_directory.h"
#include "offload/device_segment.h"
#include "offload/device_segments.h"
#include "offload/internal/endpoint_record.h"
#include "offload/internal/region_proxy.h"
#include "offload/internal/request_executor.h"
#include "offload/internal/segment_memory.h"
#include "offload/path_selector.h"
#include "offload/table.h"
#include "transport/arena.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

namespace diomp::offload {

/// Asks a rank for the device that corresponds to one of this rank.
struct device_endpoints::locate_request {
    messaging::request_header header;
    std::int32_t device = 0;
    std::int32_t device_index = -1; ///< among those that the requester drives
};

struct device_endpoints::locate_reply {
    std::uint64_t segment_bytes = 0;
    std::uint64_t mapped_end = 0; ///< device_segment::mapped()
    std::int32_t device = -1;     ///< -1: none that has memory of its own
};

namespace {

void warn_if_failed(int device, const status &outcome) {
    if (!outcome) {
        log(log_level::warn, "calls in target regions on device {} may fail: {}", device,
            outcome.failure().message());
    }
}

} // namespace

device_endpoints::device_endpoints(device_segments &segments, alloc_directory &directory,
                                   path_selector &paths, messaging::engine &engine,
                                   messaging::call_service &calls, const transport::arena &arena,
                                   const launch::job_info &job,
                                   std::unique_ptr<request_executor> executor,
                                   device_call_paths calls_by)
    : segments_(segments), directory_(directory), paths_(paths), calls_(calls),
      locate_handler_(
          engine.add_handler([this](const transport::message &incoming) { on_locate(incoming); })),
      proxy_(std::make_unique<region_proxy>(std::move(executor), engine, calls_by)) {
    constexpr double ns_per_s = 1e9;
    common_.rank = job.rank.value();
    common_.num_ranks = job.size;
    common_.host_begin = arena.base();
    common_.host_bytes = arena.span_bytes();
    engine.failure().on_set([this] { break_waits(OMPX_ERR_PEER); });
    common_.timeout_ns = static_cast<std::uint64_t>(engine.options().timeout_s * ns_per_s);
}

void device_endpoints::set_groups(std::function<result<group_members>(ompx_group_t)> find) {
    proxy_->executor().set_groups(std::move(find));
}

void device_endpoints::forget_group(std::uint64_t id) { proxy_->forget_group(id); }

device_endpoints::~device_endpoints() {
    break_waits(OMPX_ERR_STATE);
    proxy_.reset(); // its thread reads the rings of the records
}

void device_endpoints::on_locate(const transport::message &incoming) {
    locate_request request;
    std::memcpy(&request, incoming.payload.data(), sizeof(request));
    locate_reply reply;
    int const device = directory_.resolve_device(request.device, request.device_index);
    device_segment const *const segment = segments_.table().find(device);
    if (segment != nullptr && segment->memory() != nullptr) {
        reply = {segment->size_bytes(), segment->mapped().end, device};
    }
    calls_.reply(incoming.source, request.header.id, reply);
}

std::uint64_t device_endpoints::begin(const diomp_offload_request &of, requests by_region) {
    endpoint_record *const record = prepare(of);
    if (record == nullptr) {
        return 0;
    }
    std::lock_guard const guard(mutex_);
    bool const may_request = by_region == requests::allowed && record->rings() != nullptr;
    record->allow_requests(may_request);
    if (may_request) {
        diomp_endpoint const &values = record->values();
        warn_if_failed(of.device,
                       proxy_->begin({of.device, values.base, values.segment_bytes,
                                      devices_[static_cast<std::size_t>(of.device)].numa_node},
                                     *record->rings(),
                                     [record](auto freed) { return record->reset(freed); }));
    }
    warn_if_failed(of.device, record->flush());
    return record->device_address();
}

status device_endpoints::end(int device) { return proxy_->end(device); }

endpoint_record *device_endpoints::prepare(const diomp_offload_request &of) {
    int const device = of.device;
    device_segment *segment = segments_.table().find(device);
    if (segment == nullptr) {
        segment = segments_.make(of);
        if (segment != nullptr && segment->memory() != nullptr) {
            directory_.publish_commit(); // of the words of barriers
        }
    }
    if (segment == nullptr || segment->memory() == nullptr) {
        return nullptr;
    }
    std::lock_guard const guard(mutex_);
    auto &[record, was_refused, numa_node] = devices_[static_cast<std::size_t>(device)];
    if (record == nullptr && !was_refused) {
        find_node_peers();
        auto made = create(*segment);
        if (made) {
            record = made.take();
            accelerator const &on = segment->memory()->on();
            auto const described = on.backend->describe(on.id);
            numa_node = described ? described.value().numa_node : -1;
            live_[static_cast<std::size_t>(device)].store(record.get(), std::memory_order_release);
        } else {
            was_refused = true;
            log(log_level::warn, "calls in target regions on device {} fail: {}", device,
                made.failure().message());
        }
    }
    if (record != nullptr) {
        record->set_common(segment->common());
        update_peers(*record, *segment);
    }
    return record.get();
}

result<std::unique_ptr<endpoint_record>> device_endpoints::create(device_segment &segment) const {
    diomp_endpoint initial = common_;
    initial.device = segment.device();
    initial.base = reinterpret_cast<std::uintptr_t>(segment.base());
    initial.segment_bytes = segment.size_bytes();
    initial.mapped_begin = segment.size_bytes();
    initial.barrier_words = reinterpret_cast<std::uint64_t *>(
        segment.barrier_words()); // NOLINT(performance-no-int-to-ptr)
    auto made = endpoint_record::create(segment.memory()->on(), initial, proxy_->takes_requests());
    DIOMP_TRY(made);
    // The own segment: what set_common() allows is committed.
    if (proxy_->takes_requests()) {
        warn_if_failed(segment.device(), proxy_->prepare(segment.memory()->on()));
    }
    made.value()->set_peer(self(), {initial.base, std::numeric_limits<std::uint64_t>::max(), 0, 0});
    return made;
}

void device_endpoints::find_node_peers() {
    node_peers_.clear();
    if (proxy_->replaces_mappings()) {
        return;
    }
    for (int number = 0; number < common_.num_ranks; ++number) {
        world_rank const peer(number);
        if (peer != self() && directory_.commits_of(peer) != nullptr) {
            node_peers_.push_back(peer);
        }
    }
}

void device_endpoints::update_peers(endpoint_record &of, const device_segment &segment) {
    for (world_rank const peer : node_peers_) {
        std::uint64_t &known = of.known_commits()[peer.index()];
        std::uint64_t const now = directory_.commits_of(peer)->load(std::memory_order_acquire);
        if (known == now) {
            continue;
        }
        known = now;
        if (status const updated = update_peer(of, segment, peer); !updated) {
            log(log_level::info, "device {}: no loads and stores of rank {}'s memory: {}",
                segment.device(), peer.value(), updated.failure().message());
        }
    }
}

status device_endpoints::update_peer(endpoint_record &of, const device_segment &segment,
                                     world_rank peer) {
    auto replied = calls_.call<locate_reply>(
        peer, locate_handler_,
        locate_request{{}, segment.device(), directory_.device_index_of(segment.device())},
        [peer] { return fmt::format("waiting for rank {} to name its device", peer.value()); });
    DIOMP_TRY(replied);
    locate_reply const &there = replied.value();
    if (there.device < 0) {
        return error(OMPX_ERR_UNSUPPORTED, "it has no segment on the device");
    }
    auto mapped = paths_.open_all(peer, there.device, of.on());
    DIOMP_TRY(mapped);
    of.set_peer(peer, describe_peer(mapped.value(), there.segment_bytes, there.mapped_end,
                                    segment.mapped()));
    return {};
}

std::optional<region_error> device_endpoints::take_error(int device) {
    std::lock_guard const guard(mutex_);
    auto const &record = devices_[static_cast<std::size_t>(device)].record;
    auto const found = record == nullptr ? std::nullopt : record->take_error();
    auto by_proxy = proxy_->take_error(device);
    return found ? std::optional(describe_region_error(*found, device, common_.num_ranks))
                 : std::move(by_proxy);
}

void device_endpoints::break_waits(int status) {
    for (auto const &each : live_) {
        if (endpoint_record *const record = each.load(std::memory_order_acquire);
            record != nullptr) {
            record->break_waits(status);
        }
    }
}

} // namespace diomp::offload
