// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/gasnet/rdma.h"

#include "transport/common/backoff.h"
#include "transport/registration.h"

#include <algorithm>
#include <gasnet_vis.h>
#include <string_view>

namespace diomp::transport::gasnet {
namespace {

/// Sources up to this size may be reused on return: GASNet copies them or waits until they are
/// sent.
constexpr std::size_t max_copied = 8192;
/// Rows up to this length are three to ten times as fast in GASNet's strided transfers, which
/// gather them in messages, as one by one. GASNet gathers longer rows as well, where that does not
/// pay: with the ucx conduit, rows of 64 bytes and more are faster one by one.
constexpr std::size_t max_row_bytes = 32;
/// Operations tested per advance(); they complete roughly in the order of their start.
constexpr std::size_t max_tested = 128;
/// Limit of one put or get: the ucx conduit (2025.8.0) counts bytes in 32 bits.
constexpr std::size_t max_operation_bytes = std::size_t{1} << 30;

rdma::protocol choose_protocol(std::string_view wish) {
    using protocol = rdma::protocol;
    if (wish == "messages") {
        return protocol::none;
    }
    if (has_one_sided_rdma()) {
        return protocol::one_sided;
    }
    if (wish == "rdma") {
        return protocol::target_served;
    }
    bool const is_ucx = std::string_view(launch::gasnet::conduit_name()) == "ucx";
    return is_ucx ? protocol::target_served_gets : protocol::none;
}

/// Retries until GASNet accepts the operation, and serves requests of other ranks meanwhile.
template <typename Call>
gex_Event_t retry_until_accepted(Call &&call) {
    backoff idle;
    for (;;) {
        if (gex_Event_t const event = call(); event != GEX_EVENT_NO_OP) {
            return event;
        }
        gasnet_AMPoll();
        idle.pause();
    }
}

} // namespace

/// The ofi and ucx conduits may run over TCP, which GASNet does not report.
bool has_one_sided_rdma() {
    return std::string_view(launch::gasnet::conduit_name()) == "ibv" || has_rdma_adapter();
}

status rdma::bind_slot(const launch::gasnet::gasnet_client &job, gex_EP_t endpoint, std::byte *slot,
                       std::size_t nbytes) {
    gex_Segment_t segment{};
    DIOMP_TRY(launch::gasnet::to_status(
        "gex_Segment_Create",
        gex_Segment_Create(&segment, job.handle, slot, nbytes, GEX_MK_HOST, 0)));
    return launch::gasnet::to_status("gex_EP_BindSegment",
                                     gex_EP_BindSegment(endpoint, segment, 0));
}

result<std::unique_ptr<rdma>> rdma::create(const launch::gasnet::gasnet_client &job,
                                           const launch::job_info &info, const arena &arena,
                                           const std::string &wish, iface &messages) {
    std::unique_ptr<rdma> made;
    if (GASNET_MAXEPS == 1) {
        return made;
    }
    gex_EP_t endpoint{};
    DIOMP_TRY(launch::gasnet::to_status(
        "gex_EP_Create", gex_EP_Create(&endpoint, job.handle, GEX_EP_CAPABILITY_RMA, 0)));
    protocol const chosen = choose_protocol(wish);
    made.reset(new rdma(messages, chosen));
    std::size_t nbytes = 0;
    if (chosen == protocol::target_served || chosen == protocol::target_served_gets) {
        nbytes = arena.device_offset() + arena.device_bytes(); // no memory is pinned
    } else if (chosen == protocol::one_sided) {
        nbytes = bytes_to_register(arena, info);
    }
    if (nbytes > 0) {
        DIOMP_TRY(bind_slot(job, endpoint, arena.slot(info.rank), nbytes));
        made->slot_ = {
            {memory_kind::host, reinterpret_cast<std::uintptr_t>(arena.slot(info.rank)), nbytes},
            gex_EP_QueryIndex(endpoint)};
        made->endpoint_pair_ = gex_TM_Pair(endpoint, gex_EP_QueryIndex(endpoint));
    }
    // Collective, also without a slot.
    DIOMP_TRY(launch::gasnet::to_status("gex_EP_PublishBoundSegment",
                                        gex_EP_PublishBoundSegment(job.team, &endpoint, 1, 0)));
    return made;
}

const char *rdma::description() const {
    switch (protocol_) {
    case protocol::target_served:
        return "its own puts and gets, served by the target";
    case protocol::target_served_gets:
        return "active messages, its own gets";
    default:
        return "rdma";
    }
}

void rdma::put(peer &to, std::uint64_t address, const void *source, std::size_t nbytes,
               completion &source_free) {
    if (nbytes > max_copied) {
        put_via(endpoint_pair_, to, address, source, nbytes, source_free);
        return;
    }
    operation const started{&to, to.begin_put(1, nbytes), nullptr, {}};
    start(retry_until_accepted([&] {
              return gex_RMA_PutNB(endpoint_pair_, to.gex_rank(), reinterpret_cast<void *>(address),
                                   const_cast<void *>(source), nbytes, GEX_EVENT_NOW,
                                   GEX_FLAG_IMMEDIATE);
          }),
          started);
}

void rdma::put_via(gex_TM_t endpoint_pair, peer &to, std::uint64_t address, const void *source,
                   std::size_t nbytes, completion &source_free) {
    for (std::size_t done = 0; done < nbytes; done += max_operation_bytes) {
        std::size_t const chunk = std::min(nbytes - done, max_operation_bytes);
        operation const started{&to, to.begin_put(1, chunk), &source_free, {}};
        source_free.begin();
        auto *const from = static_cast<std::byte *>(const_cast<void *>(source)) + done;
        start(retry_until_accepted([&] {
                  return gex_RMA_PutNB(endpoint_pair, to.gex_rank(),
                                       reinterpret_cast<void *>(address + done), from, chunk,
                                       GEX_EVENT_DEFER, GEX_FLAG_IMMEDIATE);
              }),
              started);
    }
}

void rdma::get_via(gex_TM_t endpoint_pair, peer &from, std::uint64_t address, void *destination,
                   std::size_t nbytes, completion &done) {
    for (std::size_t got = 0; got < nbytes; got += max_operation_bytes) {
        std::size_t const chunk = std::min(nbytes - got, max_operation_bytes);
        std::byte *const to = static_cast<std::byte *>(destination) + got;
        get_id const id = from.begin_get(to, chunk, done);
        start(retry_until_accepted([&] {
                  return gex_RMA_GetNB(endpoint_pair, to, from.gex_rank(),
                                       reinterpret_cast<void *>(address + got), chunk,
                                       GEX_FLAG_IMMEDIATE);
              }),
              {&from, nullptr, nullptr, id});
    }
}

bool rdma::supports(const rows &shape) { return shape.nbytes <= max_row_bytes; }

void rdma::put_rows(peer &to, std::uint64_t address, const void *source, const rows &shape,
                    completion &source_free) {
    operation const started{&to, to.begin_put(1, shape.total_bytes()), &source_free, {}};
    source_free.begin();
    start(gex_VIS_StridedPutNB(endpoint_pair_, to.gex_rank(), reinterpret_cast<void *>(address),
                               shape.remote_strides.data(), const_cast<void *>(source),
                               shape.local_strides.data(), shape.nbytes, shape.counts.data(),
                               shape.counts.size(), 0),
          started);
}

void rdma::get_rows(peer &from, std::uint64_t address, void *destination, const rows &shape,
                    completion &done) {
    get_id const id = from.begin_get(destination, shape.total_bytes(), done);
    start(gex_VIS_StridedGetNB(endpoint_pair_, destination, shape.local_strides.data(),
                               from.gex_rank(), reinterpret_cast<void *>(address),
                               shape.remote_strides.data(), shape.nbytes, shape.counts.data(),
                               shape.counts.size(), 0),
          {&from, nullptr, nullptr, id});
}

void rdma::start(gex_Event_t event, const operation &started) {
    if (event == GEX_EVENT_INVALID) { // complete already
        finish(started);
        return;
    }
    if (protocol_ != protocol::one_sided) {
        messages_.request_polling(*started.target);
    }
    std::lock_guard const guard(mutex_);
    events_.push_back(event);
    operations_.push_back(started);
    num_outstanding_.store(events_.size(), std::memory_order_relaxed);
}

void rdma::finish(const operation &over) {
    if (over.put == nullptr) {
        over.target->end_get(over.get);
        return;
    }
    over.target->end_put(over.put);
    if (over.source_free != nullptr) {
        over.source_free->end();
    }
}

// Renews the polling requests to the targets of the oldest operations. Reads the clock once.
void rdma::keep_targets_awake() {
    auto const now = std::chrono::steady_clock::now();
    if (now < remind_at_) {
        return;
    }
    remind_at_ = now + iface::polling_request_interval;
    peer *last = nullptr;
    for (std::size_t i = 0; i < std::min(operations_.size(), max_tested); ++i) {
        if (peer *const target = operations_[i].target; target != last) {
            messages_.request_polling(*target);
            last = target;
        }
    }
}

bool rdma::advance() {
    if (!is_busy()) {
        return false;
    }
    std::unique_lock const guard(mutex_, std::try_to_lock);
    if (!guard.owns_lock()) {
        return false;
    }
    std::size_t const num_tested = std::min(events_.size(), max_tested);
    if (gex_Event_TestSome(events_.data(), num_tested, 0) != GASNET_OK) {
        if (protocol_ != protocol::one_sided) {
            keep_targets_awake();
        }
        return false;
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < events_.size(); ++i) {
        if (events_[i] == GEX_EVENT_INVALID) {
            finish(operations_[i]);
            continue;
        }
        events_[kept] = events_[i];
        operations_[kept] = operations_[i];
        ++kept;
    }
    events_.resize(kept);
    operations_.resize(kept);
    num_outstanding_.store(kept, std::memory_order_relaxed);
    return true;
}

} // namespace diomp::transport::gasnet
