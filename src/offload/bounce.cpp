// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/bounce.h"

#include "base/log.h"
#include "base/service_thread.h"
#include "offload/bounce_pieces.h"
#include "offload/segment_memory.h"
#include "offload/variables.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

namespace diomp::offload {
struct bounce::going {
    job what;
    const accelerator &on;
    lane through;
    device::ticket copy;
};

bounce::bounce(const segment_table &own, const variables &told, memory::address_space &space,
               memory::segment &host, conduit::engine &engine, conduit::call_service &calls,
               rma::transfers &transfers, world_rank self)
    : own_(own), variables_(told), space_(space), host_(host), engine_(engine), calls_(calls),
      transfers_(transfers), self_(self),
      request_handler_(
          engine.add_handler([this](const conduit::message &incoming) { on_request(incoming); })) {}

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

status bounce::copy_end(rma::direction way, const end &local, std::byte *host, std::size_t nbytes) {
    bool const is_put = way == rma::direction::put;
    std::byte *const dst = is_put ? host : local.address;
    const std::byte *const src = is_put ? local.address : host;
    if (local.on != nullptr) {
        return copy(*local.on, dst, src, nbytes);
    }
    std::memcpy(dst, src, nbytes);
    return {};
}

result<bounce::lane> bounce::take_lane(const accelerator &of) {
    {
        std::lock_guard const guard(pinned_mutex_);
        auto const found = std::ranges::find_if(
            free_, [&](const auto &entry) { return entry.first == of.backend; });
        if (found != free_.end()) {
            device::pinned_memory taken = std::move(found->second);
            free_.erase(found);
            return lane(*this, *of.backend, std::move(taken));
        }
    }
    auto made = of.backend->allocate_pinned(lane_pieces * piece_bytes);
    DIOMP_TRY(made);
    return lane(*this, *of.backend, made.take());
}

status bounce::out_of(const accelerator &from, const std::byte *src, std::size_t nbytes,
                      piece_function take) {
    auto through = take_lane(from);
    DIOMP_TRY(through);
    return in_pieces(
        through.value().base(), lane_pieces, nbytes,
        [&](const piece &next) {
            return from.streams->copy(from.id, next.slot, src + next.begin, next.nbytes);
        },
        [&](const piece &, const device::ticket &coming) { return wait_for(from, coming); },
        [&](const piece &here) { return take(here.slot, here.begin, here.nbytes); });
}

status bounce::into(const accelerator &to, std::byte *dst, std::size_t nbytes,
                    piece_function give) {
    auto through = take_lane(to);
    DIOMP_TRY(through);
    return in_pieces(
        through.value().base(), lane_pieces, nbytes,
        [&](const piece &next) -> result<device::ticket> {
            DIOMP_TRY(give(next.slot, next.begin, next.nbytes));
            return to.streams->copy(to.id, dst + next.begin, next.slot, next.nbytes);
        },
        [&](const piece &, const device::ticket &going) { return wait_for(to, going); },
        [](const piece &) { return status(); });
}

std::byte *bounce::staging() {
    if (staging_ == nullptr) {
        if (auto const offset = host_.allocate_internal(depth * piece_bytes)) {
            staging_ = engine_.transport().direct_base(self_) + *offset;
        }
    }
    return staging_;
}

/// A device copies faster from and to pinned memory; it does as well where the driver refuses.
void bounce::pin_staging_for(device::backend &copier) {
    auto const [pin, is_new] = staging_pins_.try_emplace(&copier);
    if (!is_new) {
        return;
    }
    if (auto pinned = copier.pin(staging_, depth * piece_bytes)) {
        pin->second = pinned.take();
    } else {
        log(log_level::info, "the buffer for transfers through other ranks is not pinned: {}",
            pinned.failure().message());
    }
}

result<std::byte *> bounce::staging_for(const end &local) {
    std::byte *const buffer = staging();
    if (buffer == nullptr) {
        return error(OMPX_ERR_NOMEM,
                     "the runtime's part of the segment has no room for a bounce buffer",
                     "free groups that are no longer used");
    }
    if (local.on != nullptr) {
        pin_staging_for(*local.on->backend);
    }
    return buffer;
}

status bounce::wait_for_owner(world_rank owner, const conduit::call_service::open_call &call,
                              std::size_t nbytes) {
    auto told = calls_.finish<answer>(call, [&] {
        return fmt::format("waiting for rank {} to move {} bytes of its device memory",
                           owner.value(), nbytes);
    });
    if (!told) {
        staging_ = nullptr; // the owner may still come for it: never used again
        staging_pins_.clear();
        return told.take_failure();
    }
    if (told.value().failure == OMPX_ERR_ADDRESS) {
        return error(OMPX_ERR_ADDRESS,
                     fmt::format("rank {} does not have these {} bytes of device memory any more: "
                                 "they were freed, or its program has ended",
                                 owner.value(), nbytes),
                     "let a barrier follow the last transfer");
    }
    if (told.value().failure != 0) {
        return error(static_cast<ompx_status>(told.value().failure),
                     fmt::format("rank {} could not move {} bytes of its device memory",
                                 owner.value(), nbytes),
                     fmt::format("see what rank {} says", owner.value()));
    }
    return {};
}

status bounce::ask_owner(rma::direction way, world_rank owner, int device, std::uint64_t address,
                         const end &local, std::size_t nbytes) {
    std::lock_guard const guard(asking_);
    auto buffer = staging_for(local);
    DIOMP_TRY(buffer);
    auto const copy_if = [&](rma::direction when, const piece &each) {
        return way == when
                   ? copy_end(way, {local.address + each.begin, local.on}, each.slot, each.nbytes)
                   : status();
    };
    return in_pieces(
        buffer.value(), depth, nbytes,
        [&](const piece &next) -> result<conduit::call_service::open_call> {
            DIOMP_TRY(copy_if(rma::direction::put, next));
            request asked;
            asked.address = address + next.begin;
            asked.staging = reinterpret_cast<std::uintptr_t>(next.slot);
            asked.nbytes = static_cast<std::uint32_t>(next.nbytes);
            asked.device = device;
            asked.way = way;
            return calls_.start(owner, request_handler_, asked);
        },
        [&](const piece &each, const conduit::call_service::open_call &call) {
            return wait_for_owner(owner, call, each.nbytes);
        },
        [&](const piece &done) { return copy_if(rma::direction::get, done); });
}

void bounce::on_request(const conduit::message &incoming) {
    job added{incoming.source, {}};
    std::memcpy(&added.asked, incoming.payload.data(), sizeof(added.asked));
    std::lock_guard const guard(jobs_mutex_);
    jobs_.push_back(added);
    if (!thread_.joinable()) {
        thread_ = start_service_thread("diomp-bounce", [this] { serve(); });
    }
    jobs_changed_.notify_one();
}

void bounce::serve() {
    // A put whose copy to the device goes on while the next piece is fetched.
    std::optional<going> last;
    for (;;) {
        std::optional<job> next;
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
        std::optional<going> begun;
        if (next) {
            auto started = carry_out(*next);
            if (!started) {
                answer_job(*next, started.take_failure());
            } else if (!started.value()) {
                answer_job(*next, {});
            } else {
                begun.emplace(std::move(*started.value()));
            }
        }
        if (last) {
            answer_job(last->what, wait_for(last->on, last->copy));
            last.reset();
        }
        if (begun) {
            last.emplace(std::move(*begun));
        }
    }
}

void bounce::answer_job(const job &what, status outcome) {
    if (!outcome) {
        log(log_level::warn, "a transfer of rank {} with memory of device {}: {}",
            what.asker.value(), what.asked.device, outcome.failure().message());
    }
    calls_.reply(what.asker, what.asked.header.id, answer{outcome ? 0 : outcome.failure().code()});
}

std::optional<bounce::found> bounce::find(const request &asked) const {
    device_segment const *const segment = own_.find(asked.device);
    if (segment == nullptr || segment->memory() == nullptr) {
        return std::nullopt;
    }
    found at{reinterpret_cast<std::byte *>(asked.address), 0, &segment->memory()->on()};
    if (auto const offset = segment->offset_of(at.address)) {
        auto const what = segment->find(*offset);
        if (!what) {
            return std::nullopt;
        }
        at.left = what->nbytes - (*offset - what->offset);
        return at;
    }
    auto const left = variables_.left_in(asked.device, asked.address);
    at.left = left.value_or(0);
    return left ? std::optional(at) : std::nullopt;
}

result<std::optional<bounce::going>> bounce::carry_out(const job &what) {
    request const &asked = what.asked;
    auto const at = find(asked);
    if (!at || (asked.num_runs == 0 && asked.nbytes > at->left)) {
        return error(OMPX_ERR_ADDRESS, fmt::format("there is nothing of {} bytes at {:#x}",
                                                   asked.nbytes, asked.address));
    }
    if (asked.num_runs > 0) {
        DIOMP_TRY(carry_out_runs(what, *at));
        return std::optional<going>();
    }
    accelerator const &on = *at->on;
    std::byte *const address = at->address;
    auto through = take_lane(on);
    DIOMP_TRY(through);
    std::byte *const slot = through.value().base();
    auto const place = space_.place_at(what.asker, asked.staging);
    if (asked.way == rma::direction::put) {
        DIOMP_TRY(transfers_.move_at(rma::direction::get, what.asker, place, slot, asked.nbytes));
        auto started = on.streams->copy(on.id, address, slot, asked.nbytes);
        DIOMP_TRY(started);
        return std::optional(going{what, on, through.take(), started.take()});
    }
    DIOMP_TRY(copy(on, slot, address, asked.nbytes));
    DIOMP_TRY(transfers_.move_at(rma::direction::put, what.asker, place, slot, asked.nbytes));
    DIOMP_TRY(transfers_.flush(what.asker));
    return std::optional<going>();
}

} // namespace diomp::offload
