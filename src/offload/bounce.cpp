// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/bounce.h"

#include "base/log.h"
#include "base/service_thread.h"
#include "offload/internal/bounce_chunks.h"
#include "offload/internal/segment_memory.h"
#include "offload/internal/variables.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

namespace diomp::offload {
struct bounce::inflight_copy {
    copy_job what;
    const accelerator &on;
    pinned_pair buffers;
    device::ticket copy;
};

bounce::bounce(const segment_table &own, const variables &declared, memory::address_space &space,
               memory::segment &host, messaging::engine &engine, messaging::call_service &calls,
               rma::transfers &transfers, world_rank self)
    : own_(own), variables_(declared), space_(space), host_(host), engine_(engine), calls_(calls),
      transfers_(transfers), self_(self),
      request_handler_(engine.add_handler(
          [this](const transport::message &incoming) { on_request(incoming); })) {}

bounce::~bounce() {
    {
        std::lock_guard const guard(jobs_mutex_);
        stopping_ = true;
    }
    jobs_changed_.notify_all();
    if (thread_.joinable()) {
        thread_.join();
    }
}

status bounce::wait_for(const accelerator &by, const device::ticket &of) {
    result<bool> done = false;
    DIOMP_TRY(engine_.wait_for_network(
        [&] {
            done = by.streams->is_done(of);
            return !done || done.value();
        },
        [&] {
            return fmt::format("waiting for a copy of {} device {}", by.backend->name(),
                               by.id.value());
        }));
    DIOMP_TRY(done);
    return {};
}

status bounce::copy(const accelerator &by, void *dst, const void *src, std::size_t nbytes) {
    auto started = by.streams->copy(by.id, dst, src, nbytes);
    DIOMP_TRY(started);
    return wait_for(by, started.value());
}

status bounce::copy_chunk(rma::direction dir, const device_ptr &local, std::byte *host,
                          std::size_t nbytes) {
    bool const is_put = dir == rma::direction::put;
    std::byte *const dst = is_put ? host : local.address;
    const std::byte *const src = is_put ? local.address : host;
    if (local.on != nullptr) {
        return copy(*local.on, dst, src, nbytes);
    }
    std::memcpy(dst, src, nbytes);
    return {};
}

result<bounce::pinned_pair> bounce::acquire_pinned_pair(const accelerator &of) {
    {
        std::lock_guard const guard(pinned_mutex_);
        auto const found = std::ranges::find_if(
            free_pairs_, [&](const auto &entry) { return entry.first == of.backend; });
        if (found != free_pairs_.end()) {
            device::pinned_memory taken = std::move(found->second);
            free_pairs_.erase(found);
            return pinned_pair(*this, *of.backend, std::move(taken));
        }
    }
    auto made = of.backend->allocate_pinned(pinned_pair_chunks * chunk_bytes);
    DIOMP_TRY(made);
    return pinned_pair(*this, *of.backend, made.take());
}

status bounce::copy_out(const accelerator &from, const std::byte *src, std::size_t nbytes,
                        chunk_function consume) {
    auto buffers = acquire_pinned_pair(from);
    DIOMP_TRY(buffers);
    return run_pipeline(
        buffers.value().base(), pinned_pair_chunks, nbytes,
        [&](const chunk &next) {
            return from.streams->copy(from.id, next.slot, src + next.begin, next.nbytes);
        },
        [&](const chunk &, const device::ticket &coming) { return wait_for(from, coming); },
        [&](const chunk &here) { return consume(here.slot, here.begin, here.nbytes); });
}

status bounce::copy_in(const accelerator &to, std::byte *dst, std::size_t nbytes,
                       chunk_function produce) {
    auto buffers = acquire_pinned_pair(to);
    DIOMP_TRY(buffers);
    return run_pipeline(
        buffers.value().base(), pinned_pair_chunks, nbytes,
        [&](const chunk &next) -> result<device::ticket> {
            DIOMP_TRY(produce(next.slot, next.begin, next.nbytes));
            return to.streams->copy(to.id, dst + next.begin, next.slot, next.nbytes);
        },
        [&](const chunk &, const device::ticket &in_flight) { return wait_for(to, in_flight); },
        [](const chunk &) { return status(); });
}

std::byte *bounce::staging() {
    if (staging_ == nullptr) {
        if (auto const offset = host_.allocate_internal(pipeline_depth * chunk_bytes)) {
            staging_ = engine_.transport().direct_base(self_) + *offset;
        }
    }
    return staging_;
}

/// Pins the staging buffer, which speeds up device copies. Unpinned memory works too, so a refusal
/// of the driver is only logged.
void bounce::pin_staging_for(device::backend &copier) {
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

result<std::byte *> bounce::staging_for(const device_ptr &local) {
    std::byte *const buffer = staging();
    if (buffer == nullptr) {
        return error(OMPX_ERR_NOMEM,
                     "the runtime's part of the segment has no space for a bounce buffer",
                     "free groups that are no longer used");
    }
    if (local.on != nullptr) {
        pin_staging_for(*local.on->backend);
    }
    return buffer;
}

status bounce::wait_for_owner(world_rank owner, const messaging::call_service::pending_call &call,
                              std::size_t nbytes) {
    auto replied = calls_.finish<transfer_reply>(call, [&] {
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

status bounce::request_from_owner(rma::direction dir, world_rank owner, int device,
                                  std::uint64_t address, const device_ptr &local,
                                  std::size_t nbytes) {
    std::lock_guard const guard(request_mutex_);
    auto buffer = staging_for(local);
    DIOMP_TRY(buffer);
    auto const copy_if = [&](rma::direction when, const chunk &each) {
        return dir == when
                   ? copy_chunk(dir, {local.address + each.begin, local.on}, each.slot, each.nbytes)
                   : status();
    };
    return run_pipeline(
        buffer.value(), pipeline_depth, nbytes,
        [&](const chunk &next) -> result<messaging::call_service::pending_call> {
            DIOMP_TRY(copy_if(rma::direction::put, next));
            request args;
            args.address = address + next.begin;
            args.staging = reinterpret_cast<std::uintptr_t>(next.slot);
            args.nbytes = static_cast<std::uint32_t>(next.nbytes);
            args.device = device;
            args.dir = dir;
            return calls_.start(owner, request_handler_, args);
        },
        [&](const chunk &each, const messaging::call_service::pending_call &call) {
            return wait_for_owner(owner, call, each.nbytes);
        },
        [&](const chunk &done) { return copy_if(rma::direction::get, done); });
}

void bounce::on_request(const transport::message &incoming) {
    copy_job added{incoming.source, {}};
    std::memcpy(&added.args, incoming.payload.data(), sizeof(added.args));
    std::lock_guard const guard(jobs_mutex_);
    jobs_.push_back(added);
    if (!thread_.joinable()) {
        thread_ = start_service_thread("diomp-bounce", [this] { serve(); });
    }
    jobs_changed_.notify_one();
}

void bounce::serve() {
    // A put whose device copy overlaps with fetching the next chunk.
    std::optional<inflight_copy> last;
    for (;;) {
        std::optional<copy_job> next;
        {
            std::unique_lock guard(jobs_mutex_);
            jobs_changed_.wait(guard, [&] { return last || stopping_ || !jobs_.empty(); });
            if (stopping_) {
                return;
            }
            if (!jobs_.empty()) {
                next = jobs_.front();
                jobs_.pop_front();
            }
        }
        std::optional<inflight_copy> started_copy;
        if (next) {
            auto started = execute(*next);
            if (!started) {
                send_reply(*next, started.take_failure());
            } else if (!started.value()) {
                send_reply(*next, {});
            } else {
                started_copy.emplace(std::move(*started.value()));
            }
        }
        if (last) {
            send_reply(last->what, wait_for(last->on, last->copy));
            last.reset();
        }
        if (started_copy) {
            last.emplace(std::move(*started_copy));
        }
    }
}

void bounce::send_reply(const copy_job &what, status outcome) {
    if (!outcome) {
        log(log_level::warn, "a transfer of rank {} with memory of device {}: {}",
            what.requester.value(), what.args.device, outcome.failure().message());
    }
    calls_.reply(what.requester, what.args.header.id,
                 transfer_reply{outcome ? 0 : outcome.failure().code()});
}

std::optional<bounce::target_range> bounce::find(const request &args) const {
    device_segment const *const segment = own_.find(args.device);
    if (segment == nullptr || segment->memory() == nullptr) {
        return std::nullopt;
    }
    target_range at{reinterpret_cast<std::byte *>(args.address), 0, &segment->memory()->on()};
    if (auto const offset = segment->offset_of(at.address)) {
        auto const what = segment->find(*offset);
        if (!what) {
            return std::nullopt;
        }
        at.nbytes_left = what->nbytes - (*offset - what->offset);
        return at;
    }
    auto const left = variables_.bytes_left_in(args.device, args.address);
    at.nbytes_left = left.value_or(0);
    return left ? std::optional(at) : std::nullopt;
}

result<std::optional<bounce::inflight_copy>> bounce::execute(const copy_job &what) {
    request const &args = what.args;
    auto const at = find(args);
    if (!at || (args.num_runs == 0 && args.nbytes > at->nbytes_left)) {
        return error(OMPX_ERR_ADDRESS,
                     fmt::format("no allocation of {} bytes at {:#x}", args.nbytes, args.address));
    }
    if (args.num_runs > 0) {
        DIOMP_TRY(execute_runs(what, *at));
        return std::optional<inflight_copy>();
    }
    accelerator const &on = *at->on;
    std::byte *const address = at->address;
    auto buffers = acquire_pinned_pair(on);
    DIOMP_TRY(buffers);
    std::byte *const slot = buffers.value().base();
    auto const location = space_.location_at(what.requester, args.staging);
    if (args.dir == rma::direction::put) {
        DIOMP_TRY(transfers_.blocking().move_at(rma::direction::get, what.requester, location, slot,
                                                args.nbytes));
        auto started = on.streams->copy(on.id, address, slot, args.nbytes);
        DIOMP_TRY(started);
        return std::optional(inflight_copy{what, on, buffers.take(), started.take()});
    }
    DIOMP_TRY(copy(on, slot, address, args.nbytes));
    DIOMP_TRY(transfers_.blocking().move_at(rma::direction::put, what.requester, location, slot,
                                            args.nbytes));
    DIOMP_TRY(transfers_.flush(what.requester));
    return std::optional<inflight_copy>();
}

} // namespace diomp::offload
