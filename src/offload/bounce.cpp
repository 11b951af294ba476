// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/bounce.h"

#include "base/log.h"
#include "offload/segment_memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <pthread.h>
#include <utility>

namespace diomp::offload {
namespace {

/// Long enough that a round trip to the owner is little beside its transfer.
constexpr std::size_t piece_bytes = std::size_t{512} << 10;
/// Pieces that an asker has under way at a time.
constexpr std::size_t depth = 4;

void keep_first(status &outcome, status later) {
    if (outcome) {
        outcome = std::move(later);
    }
}

} // namespace

/// Gives its memory back when it goes.
struct bounce::lane {
    lane(bounce &owner, const accelerator &of, device::pinned_memory &&memory)
        : owner_(owner), of_(of), memory_(std::move(memory)) {}
    ~lane() { owner_.give_pinned(of_, std::move(memory_)); }
    lane(const lane &) = delete;
    lane &operator=(const lane &) = delete;

    [[nodiscard]] std::byte *slot(std::size_t number) const {
        return memory_.base() + number % 2 * piece_bytes;
    }

private:
    bounce &owner_;
    const accelerator &of_;
    device::pinned_memory memory_;
};

bounce::bounce(const segment_table &own, memory::address_space &space, memory::segment &host,
               conduit::engine &engine, conduit::call_service &calls, rma::transfers &transfers,
               world_rank self)
    : own_(own), space_(space), host_(host), engine_(engine), calls_(calls), transfers_(transfers),
      self_(self), request_handler_(engine.add_handler(
                       [this](const conduit::message &incoming) { on_request(incoming); })) {}

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
        [&] { return fmt::format("waiting for a copy of {}", by.about.name); }));
    DIOMP_TRY(done);
    return {};
}

status bounce::copy(const accelerator &by, void *dst, const void *src, std::size_t nbytes) {
    auto started = by.streams->copy(by.id, dst, src, nbytes);
    DIOMP_TRY(started);
    return wait_for(by, started.value());
}

result<device::pinned_memory> bounce::take_pinned(const accelerator &of) {
    {
        std::lock_guard const guard(pinned_mutex_);
        auto const found = std::ranges::find_if(
            free_, [&](const auto &entry) { return entry.first == of.backend; });
        if (found != free_.end()) {
            device::pinned_memory taken = std::move(found->second);
            free_.erase(found);
            return taken;
        }
    }
    return of.backend->allocate_pinned(2 * piece_bytes);
}

void bounce::give_pinned(const accelerator &of, device::pinned_memory &&memory) {
    std::lock_guard const guard(pinned_mutex_);
    free_.emplace_back(of.backend, std::move(memory));
}

status bounce::out_of(const accelerator &from, const std::byte *src, std::size_t nbytes,
                      piece_function take) {
    auto pinned = take_pinned(from);
    DIOMP_TRY(pinned);
    lane const through(*this, from, pinned.take());
    struct piece {
        device::ticket coming;
        std::byte *slot = nullptr;
        std::size_t begin = 0;
        std::size_t nbytes = 0;
    };
    std::optional<piece> last;
    status outcome;
    for (std::size_t begun = 0, number = 0; outcome.ok() && (begun < nbytes || last); ++number) {
        std::optional<piece> next;
        if (begun < nbytes) {
            next = piece{{}, through.slot(number), begun, std::min(piece_bytes, nbytes - begun)};
            auto started = from.streams->copy(from.id, next->slot, src + begun, next->nbytes);
            if (started) {
                next->coming = started.take();
                begun += next->nbytes;
            } else {
                outcome = started.take_failure();
                next.reset();
            }
        }
        if (last) {
            keep_first(outcome, wait_for(from, last->coming));
            if (outcome) {
                outcome = take(last->slot, last->begin, last->nbytes);
            }
        }
        last = next;
    }
    if (last) { // after an error: its memory must be free
        keep_first(outcome, wait_for(from, last->coming));
    }
    return outcome;
}

status bounce::into(const accelerator &to, std::byte *dst, std::size_t nbytes,
                    piece_function give) {
    auto pinned = take_pinned(to);
    DIOMP_TRY(pinned);
    lane const through(*this, to, pinned.take());
    std::array<device::ticket, 2> going;
    status outcome;
    for (std::size_t done = 0, number = 0; done < nbytes && outcome.ok(); ++number) {
        device::ticket &own = going[number % 2];
        std::byte *const slot = through.slot(number);
        std::size_t const part = std::min(piece_bytes, nbytes - done);
        outcome = wait_for(to, own);
        if (outcome) {
            outcome = give(slot, done, part);
        }
        if (outcome) {
            auto started = to.streams->copy(to.id, dst + done, slot, part);
            if (started) {
                own = started.take();
            } else {
                outcome = started.take_failure();
            }
        }
        done += part;
    }
    for (device::ticket const &each : going) {
        keep_first(outcome, wait_for(to, each));
    }
    return outcome;
}

std::byte *bounce::staging() {
    if (staging_ == nullptr) {
        if (auto const offset = host_.allocate_internal(depth * piece_bytes)) {
            staging_ = engine_.transport().direct_base(self_) + *offset;
        }
    }
    return staging_;
}

/// `slot` is a part of the staging buffer.
result<conduit::call_service::open_call> bounce::begin_piece(request asked, world_rank owner,
                                                             std::byte *slot, const end &local) {
    if (asked.way == rma::direction::put) {
        if (local.on != nullptr) {
            DIOMP_TRY(copy(*local.on, slot, local.address, asked.nbytes));
        } else {
            std::memcpy(slot, local.address, asked.nbytes);
        }
    }
    asked.staging = reinterpret_cast<std::uintptr_t>(slot);
    return calls_.start(owner, request_handler_, asked);
}

status bounce::end_piece(rma::direction way, world_rank owner,
                         const conduit::call_service::open_call &call, const std::byte *slot,
                         const end &local, std::size_t nbytes) {
    auto told = calls_.finish<answer>(call, [&] {
        return fmt::format("waiting for rank {} to move {} bytes of its device memory",
                           owner.value(), nbytes);
    });
    if (!told) {
        staging_ = nullptr; // the owner may still come for it: never used again
        return told.take_failure();
    }
    if (told.value().failure != 0) {
        return error(
            static_cast<ompx_status>(told.value().failure),
            fmt::format("rank {} could not move {} bytes of its device memory", owner.value(),
                        nbytes),
            fmt::format("see what rank {} says; was the memory freed meanwhile?", owner.value()));
    }
    if (way == rma::direction::get) {
        if (local.on != nullptr) {
            return copy(*local.on, local.address, slot, nbytes);
        }
        std::memcpy(local.address, slot, nbytes);
    }
    return {};
}

status bounce::ask_owner(rma::direction way, world_rank owner, int device, std::uint64_t offset,
                         const end &local, std::size_t nbytes) {
    struct piece {
        conduit::call_service::open_call call;
        std::size_t begin;
        std::size_t nbytes;
        std::byte *slot;
    };
    std::lock_guard const guard(asking_);
    std::byte *const buffer = staging();
    if (buffer == nullptr) {
        return error(OMPX_ERR_NOMEM,
                     "the runtime's part of the segment has no room for a bounce buffer",
                     "free groups that are no longer used");
    }
    auto const part_of = [&](std::size_t begin) { return end{local.address + begin, local.on}; };
    std::deque<piece> under_way;
    auto const end_oldest = [&]() -> status {
        piece const oldest = std::move(under_way.front());
        under_way.pop_front();
        return end_piece(way, owner, oldest.call, oldest.slot, part_of(oldest.begin),
                         oldest.nbytes);
    };
    status outcome;
    for (std::size_t begun = 0, number = 0; begun < nbytes && outcome.ok(); ++number) {
        if (under_way.size() == depth) {
            outcome = end_oldest();
            if (!outcome) {
                break;
            }
        }
        std::byte *const slot = buffer + number % depth * piece_bytes;
        std::size_t const part = std::min(piece_bytes, nbytes - begun);
        request const asked{{}, offset + begun, 0, static_cast<std::uint32_t>(part), device, way};
        auto call = begin_piece(asked, owner, slot, part_of(begun));
        if (!call) {
            outcome = call.take_failure();
            break;
        }
        under_way.push_back({call.take(), begun, part, slot});
        begun += part;
    }
    while (!under_way.empty()) {
        keep_first(outcome, end_oldest());
    }
    return outcome;
}

void bounce::on_request(const conduit::message &incoming) {
    job added{incoming.source, {}};
    std::memcpy(&added.asked, incoming.payload.data(), sizeof(added.asked));
    std::lock_guard const guard(jobs_mutex_);
    jobs_.push_back(added);
    if (!thread_.joinable()) {
        thread_ = std::thread([this] { serve(); });
    }
    jobs_changed_.notify_one();
}

void bounce::serve() {
    ::pthread_setname_np(::pthread_self(), "diomp-bounce");
    std::map<const device::backend *, device::pinned_memory> pinned;
    // A put whose copy to the device goes on while the next piece is fetched.
    std::optional<going> last;
    for (std::size_t number = 0;; ++number) {
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
            auto started = carry_out(*next, pinned, number % 2);
            if (!started) {
                answer_job(*next, started.take_failure());
            } else if (started.value().on == nullptr) {
                answer_job(*next, {});
            } else {
                begun = started.take();
            }
        }
        if (last) {
            answer_job(last->what, wait_for(*last->on, last->copy));
        }
        last = begun;
    }
}

void bounce::answer_job(const job &what, status outcome) {
    if (!outcome) {
        log(log_level::warn, "a transfer of rank {} with memory of device {}: {}",
            what.asker.value(), what.asked.device, outcome.failure().message());
    }
    calls_.reply(what.asker, what.asked.header.id, answer{outcome ? 0 : outcome.failure().code()});
}

result<bounce::going>
bounce::carry_out(const job &what, std::map<const device::backend *, device::pinned_memory> &pinned,
                  std::size_t slot_number) {
    request const &asked = what.asked;
    device_segment const *const segment = own_.find(asked.device);
    auto const found = segment == nullptr ? std::nullopt : segment->find(asked.offset);
    if (!found || segment->memory() == nullptr ||
        asked.nbytes > found->nbytes - (asked.offset - found->offset)) {
        return error(OMPX_ERR_ADDRESS,
                     fmt::format("there is no allocation of {} bytes at offset {}", asked.nbytes,
                                 asked.offset));
    }
    accelerator const &on = segment->memory()->on();
    auto &memory = pinned[on.backend];
    if (memory.base() == nullptr) {
        auto made = take_pinned(on);
        DIOMP_TRY(made);
        memory = made.take();
    }
    std::byte *const slot = memory.base() + slot_number * piece_bytes;
    std::byte *const address = segment->base() + asked.offset;
    auto const place = space_.place_at(what.asker, asked.staging);
    if (asked.way == rma::direction::put) {
        DIOMP_TRY(transfers_.move_at(rma::direction::get, what.asker, place, slot, asked.nbytes));
        auto started = on.streams->copy(on.id, address, slot, asked.nbytes);
        DIOMP_TRY(started);
        return going{what, &on, started.take()};
    }
    DIOMP_TRY(copy(on, slot, address, asked.nbytes));
    DIOMP_TRY(transfers_.move_at(rma::direction::put, what.asker, place, slot, asked.nbytes));
    DIOMP_TRY(transfers_.flush(what.asker));
    return going{what, nullptr, {}};
}

} // namespace diomp::offload
