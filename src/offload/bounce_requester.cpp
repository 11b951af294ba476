// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/bounce_requester.h"

#include "base/log.h"
#include "memory/segment.h"
#include "messaging/call.h"
#include "offload/internal/bounce_server.h"
#include "offload/internal/chunks.h"
#include "transport/conduit.h"

#include <fmt/core.h>

#include <cstring>

namespace diomp::offload {

using rma::direction;
using rma::run;

status bounce_requester::copy_chunk(direction dir, const device_ptr &local, std::byte *host,
                                    std::size_t nbytes) {
    bool const is_put = dir == direction::put;
    std::byte *const dst = is_put ? host : local.address;
    const std::byte *const src = is_put ? local.address : host;
    if (local.on != nullptr) {
        return copies_.copy(*local.on, dst, src, nbytes);
    }
    std::memcpy(dst, src, nbytes);
    return {};
}

status bounce_requester::copy_chunk_runs(direction dir, const device_ptr &local,
                                         std::byte *chunk_begin, std::span<const run> runs) {
    if (local.on != nullptr) {
        return copies_.copy_runs(dir, *local.on, chunk_begin, local.address, runs);
    }
    for (const run &each : runs) {
        std::byte *const there = chunk_begin + each.remote;
        std::byte *const here = local.address + each.local;
        std::memcpy(dir == direction::put ? there : here, dir == direction::put ? here : there,
                    each.nbytes);
    }
    return {};
}

/// Pins the staging buffer, which speeds up device copies. Unpinned memory works too, so a refusal
/// of the driver is only logged.
void bounce_requester::pin_staging_for(device::backend &copier) {
    auto const [pin, is_new] = staging_pins_.try_emplace(&copier);
    if (!is_new) {
        return;
    }
    if (auto pinned = copier.pin(staging_, pipeline_depth * chunk_bytes)) {
        pin->second = pinned.take();
    } else {
        log(log_level::info, "the buffer for transfers through other ranks is not pinned: {}",
            pinned.failure().message());
    }
}

result<std::byte *> bounce_requester::staging_for(const device_ptr &local) {
    if (staging_ == nullptr) {
        auto const offset = host_.allocate_internal(pipeline_depth * chunk_bytes);
        staging_ = offset ? engine_.transport().direct_base(self_) + *offset : nullptr;
    }
    if (staging_ == nullptr) {
        return error(OMPX_ERR_NOMEM,
                     "the runtime's part of the segment has no space for a bounce buffer",
                     "free groups that are no longer used");
    }
    if (local.on != nullptr) {
        pin_staging_for(*local.on->backend);
    }
    return staging_;
}

status bounce_requester::prepare_for_regions(const accelerator &on) {
    std::lock_guard const guard(request_mutex_);
    auto staging = staging_for({nullptr, &on});
    DIOMP_TRY(staging);
    return {};
}

status bounce_requester::wait_for_owner(world_rank owner, const messaging::pending_call &call,
                                        std::size_t nbytes) {
    auto replied = calls_.finish<bounce_reply>(call, [&] {
        return fmt::format("waiting for rank {} to move {} bytes of its device memory",
                           owner.value(), nbytes);
    });
    if (!replied) {
        staging_ = nullptr; // the owner may still access it, so it is not reused
        staging_pins_.clear();
        return replied.take_failure();
    }
    if (replied.value().failure == OMPX_ERR_ADDRESS) {
        return error(OMPX_ERR_ADDRESS,
                     fmt::format("rank {} no longer has these {} bytes of device memory: "
                                 "they were freed, or its program has ended",
                                 owner.value(), nbytes),
                     "call a barrier after the last transfer");
    }
    if (replied.value().failure != 0) {
        return error(static_cast<ompx_status>(replied.value().failure),
                     fmt::format("rank {} could not move {} bytes of its device memory",
                                 owner.value(), nbytes),
                     fmt::format("see the messages of rank {}", owner.value()));
    }
    return {};
}

status bounce_requester::request_from_owner(direction dir, world_rank owner, int device,
                                            std::uint64_t address, const device_ptr &local,
                                            std::size_t nbytes) {
    std::lock_guard const guard(request_mutex_);
    auto buffer = staging_for(local);
    DIOMP_TRY(buffer);
    auto const copy_if = [&](direction when, const chunk &each) {
        return dir == when
                   ? copy_chunk(dir, {local.address + each.begin, local.on}, each.slot, each.nbytes)
                   : status();
    };
    return run_pipeline(
        buffer.value(), pipeline_depth, nbytes,
        [&](const chunk &next) -> result<messaging::call_service::pending_call> {
            DIOMP_TRY(copy_if(direction::put, next));
            bounce_request args;
            args.address = address + next.begin;
            args.staging = reinterpret_cast<std::uintptr_t>(next.slot);
            args.nbytes = static_cast<std::uint32_t>(next.nbytes);
            args.device = device;
            args.dir = dir;
            return calls_.start(owner, request_handler_, args);
        },
        [&](const chunk &each, const messaging::pending_call &call) {
            return wait_for_owner(owner, call, each.nbytes);
        },
        [&](const chunk &done) { return copy_if(direction::get, done); });
}

status bounce_requester::request_from_owner(direction dir, world_rank owner, int device,
                                            std::uint64_t address, const device_ptr &local,
                                            std::span<const run> runs) {
    std::lock_guard const guard(request_mutex_);
    auto buffer = staging_for(local);
    DIOMP_TRY(buffer);
    auto const batches = pack(runs, sizeof(listed_run));
    auto const batch_of = [&](const chunk &which) -> const packed_runs & {
        return batches[which.begin / chunk_bytes];
    };
    auto const data_begin = [](const packed_runs &batch) {
        return batch.runs.size() * sizeof(listed_run);
    };
    auto const start = [&](const chunk &next) -> result<messaging::call_service::pending_call> {
        packed_runs const &batch = batch_of(next);
        std::size_t at = 0;
        for (const run &each : batch.runs) {
            listed_run const entry{each.remote, each.nbytes};
            std::memcpy(next.slot + at, &entry, sizeof(entry));
            at += sizeof(entry);
        }
        if (dir == direction::put) {
            DIOMP_TRY(copy_chunk_runs(dir, local, next.slot, batch.to_local(at)));
        }
        bounce_request args;
        args.address = address;
        args.staging = reinterpret_cast<std::uintptr_t>(next.slot);
        args.nbytes = static_cast<std::uint32_t>(at + batch.nbytes);
        args.num_runs = static_cast<std::uint32_t>(batch.runs.size());
        args.device = device;
        args.dir = dir;
        return calls_.start(owner, request_handler_, args);
    };
    auto const wait = [&](const chunk &each, const messaging::pending_call &call) {
        return wait_for_owner(owner, call, batch_of(each).nbytes);
    };
    auto const finish = [&](const chunk &done) -> status {
        packed_runs const &batch = batch_of(done);
        return dir == direction::get
                   ? copy_chunk_runs(dir, local, done.slot, batch.to_local(data_begin(batch)))
                   : status();
    };
    return run_pipeline(buffer.value(), pipeline_depth, batches.size() * chunk_bytes, start, wait,
                        finish);
}

} // namespace diomp::offload
