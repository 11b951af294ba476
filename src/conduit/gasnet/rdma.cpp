// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/gasnet/rdma.h"

#include "conduit/backoff.h"
#include "conduit/registration.h"

#include <algorithm>
#include <gasnet_vis.h>
#include <string_view>

namespace diomp::conduit::gasnet {
namespace {

/// Sources up to this size may be reused at once: GASNet copies them, or waits until they have
/// left.
constexpr std::size_t most_copied = 8192;
/// Rows up to this length are three to ten times as quick in GASNet's strided transfers, which
/// gather them in messages, as one by one. That goes on beyond what pays: with the ucx conduit,
/// rows of 64 bytes and more are quicker one by one.
constexpr std::size_t most_row_bytes = 32;
/// Operations that one look asks for; they end about in the order of their start.
constexpr std::size_t most_tested = 128;
/// Of one put or get. The ucx conduit (2025.8.0) counts bytes in 32 bits.
constexpr std::size_t most_at_once = std::size_t{1} << 30;

rdma::manner choose_manner(std::string_view wish) {
    using manner = rdma::manner;
    if (wish == "messages") {
        return manner::not_at_all;
    }
    if (moves_alone()) {
        return manner::alone;
    }
    if (wish == "rdma") {
        return manner::served;
    }
    bool const is_ucx = std::string_view(launch::gasnet::conduit_name()) == "ucx";
    return is_ucx ? manner::served_gets : manner::not_at_all;
}

/// Calls until GASNet has room; others' requests are served meanwhile.
template <typename Call>
gex_Event_t insist(Call &&call) {
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

/// Of ofi and ucx, which may run over TCP, GASNet does not tell.
bool moves_alone() {
    return std::string_view(launch::gasnet::conduit_name()) == "ibv" || has_rdma_adapter();
}

status rdma::bind_slot(const launch::gasnet::client &job, gex_EP_t endpoint, std::byte *slot,
                       std::size_t nbytes) {
    gex_Segment_t segment{};
    DIOMP_TRY(
        launch::gasnet::checked("gex_Segment_Create", gex_Segment_Create(&segment, job.handle, slot,
                                                                         nbytes, GEX_MK_HOST, 0)));
    return launch::gasnet::checked("gex_EP_BindSegment", gex_EP_BindSegment(endpoint, segment, 0));
}

result<std::unique_ptr<rdma>> rdma::create(const launch::gasnet::client &job,
                                           const launch::job_info &info, const window &window,
                                           const std::string &wish, traffic &messages) {
    std::unique_ptr<rdma> made;
    if (GASNET_MAXEPS == 1) {
        return made;
    }
    gex_EP_t endpoint{};
    DIOMP_TRY(launch::gasnet::checked(
        "gex_EP_Create", gex_EP_Create(&endpoint, job.handle, GEX_EP_CAPABILITY_RMA, 0)));
    manner const how = choose_manner(wish);
    made.reset(new rdma(messages, how));
    std::size_t nbytes = 0;
    if (how == manner::served || how == manner::served_gets) {
        nbytes = window.device_offset() + window.device_bytes(); // nothing pins it
    } else if (how == manner::alone) {
        nbytes = bytes_to_register(window, info);
    }
    if (nbytes > 0) {
        DIOMP_TRY(bind_slot(job, endpoint, window.slot(info.rank), nbytes));
        made->slot_ = {
            {memory_kind::host, reinterpret_cast<std::uintptr_t>(window.slot(info.rank)), nbytes},
            gex_EP_QueryIndex(endpoint)};
        made->way_ = gex_TM_Pair(endpoint, gex_EP_QueryIndex(endpoint));
    }
    // Without a slot, too: the others wait.
    DIOMP_TRY(launch::gasnet::checked("gex_EP_PublishBoundSegment",
                                      gex_EP_PublishBoundSegment(job.team, &endpoint, 1, 0)));
    return made;
}

const char *rdma::description() const {
    switch (manner_) {
    case manner::served:
        return "its own puts and gets, served by the target";
    case manner::served_gets:
        return "active messages, its own gets";
    default:
        return "rdma";
    }
}

void rdma::put(peer &to, std::uint64_t address, const void *source, std::size_t nbytes,
               completion &source_free) {
    if (nbytes > most_copied) {
        put_through(way_, to, address, source, nbytes, source_free);
        return;
    }
    operation const started{&to, to.begin_put(1, nbytes), nullptr, {}};
    start(insist([&] {
              return gex_RMA_PutNB(way_, to.gex_rank(), reinterpret_cast<void *>(address),
                                   const_cast<void *>(source), nbytes, GEX_EVENT_NOW,
                                   GEX_FLAG_IMMEDIATE);
          }),
          started);
}

void rdma::put_through(gex_TM_t way, peer &to, std::uint64_t address, const void *source,
                       std::size_t nbytes, completion &source_free) {
    for (std::size_t done = 0; done < nbytes; done += most_at_once) {
        std::size_t const piece = std::min(nbytes - done, most_at_once);
        operation const started{&to, to.begin_put(1, piece), &source_free, {}};
        source_free.begin();
        auto *const from = static_cast<std::byte *>(const_cast<void *>(source)) + done;
        start(insist([&] {
                  return gex_RMA_PutNB(way, to.gex_rank(), reinterpret_cast<void *>(address + done),
                                       from, piece, GEX_EVENT_DEFER, GEX_FLAG_IMMEDIATE);
              }),
              started);
    }
}

void rdma::get_through(gex_TM_t way, peer &from, std::uint64_t address, void *destination,
                       std::size_t nbytes, completion &done) {
    for (std::size_t got = 0; got < nbytes; got += most_at_once) {
        std::size_t const piece = std::min(nbytes - got, most_at_once);
        std::byte *const to = static_cast<std::byte *>(destination) + got;
        get_id const id = from.begin_get(to, piece, done);
        start(insist([&] {
                  return gex_RMA_GetNB(way, to, from.gex_rank(),
                                       reinterpret_cast<void *>(address + got), piece,
                                       GEX_FLAG_IMMEDIATE);
              }),
              {&from, nullptr, nullptr, id});
    }
}

bool rdma::takes(const rows &shape) { return shape.nbytes <= most_row_bytes; }

void rdma::put_rows(peer &to, std::uint64_t address, const void *source, const rows &shape,
                    completion &source_free) {
    operation const started{&to, to.begin_put(1, shape.total_bytes()), &source_free, {}};
    source_free.begin();
    start(gex_VIS_StridedPutNB(way_, to.gex_rank(), reinterpret_cast<void *>(address),
                               shape.remote_strides.data(), const_cast<void *>(source),
                               shape.local_strides.data(), shape.nbytes, shape.counts.data(),
                               shape.counts.size(), 0),
          started);
}

void rdma::get_rows(peer &from, std::uint64_t address, void *destination, const rows &shape,
                    completion &done) {
    get_id const id = from.begin_get(destination, shape.total_bytes(), done);
    start(gex_VIS_StridedGetNB(way_, destination, shape.local_strides.data(), from.gex_rank(),
                               reinterpret_cast<void *>(address), shape.remote_strides.data(),
                               shape.nbytes, shape.counts.data(), shape.counts.size(), 0),
          {&from, nullptr, nullptr, id});
}

void rdma::start(gex_Event_t event, const operation &started) {
    if (event == GEX_EVENT_INVALID) { // over already
        finish(started);
        return;
    }
    if (manner_ != manner::alone) {
        messages_.attend(*started.target);
    }
    std::lock_guard const guard(mutex_);
    events_.push_back(event);
    operations_.push_back(started);
    num_under_way_.store(events_.size(), std::memory_order_relaxed);
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

// Those of the oldest operations, which are in the target's hands. One look at the clock for all.
void rdma::keep_targets_awake() {
    auto const now = std::chrono::steady_clock::now();
    if (now < remind_at_) {
        return;
    }
    remind_at_ = now + traffic::ask_again_after;
    peer *last = nullptr;
    for (std::size_t i = 0; i < std::min(operations_.size(), most_tested); ++i) {
        if (peer *const target = operations_[i].target; target != last) {
            messages_.attend(*target);
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
    std::size_t const num_tested = std::min(events_.size(), most_tested);
    if (gex_Event_TestSome(events_.data(), num_tested, 0) != GASNET_OK) {
        if (manner_ != manner::alone) {
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
    num_under_way_.store(kept, std::memory_order_relaxed);
    return true;
}

} // namespace diomp::conduit::gasnet
