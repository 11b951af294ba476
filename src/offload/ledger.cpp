// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/ledger.h"

#include "memory/layout.h"
#include "offload/segment_memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <mutex>

namespace diomp::offload {

struct ledger::question {
    conduit::request_header header;
    std::uint64_t key = 0;
    std::uint64_t nbytes = 0;
    std::int32_t device = 0;
    std::int32_t place = -1; ///< of the asker's device among those that it drives
    named_by way = named_by::offset;
};

struct ledger::answer {
    remote_allocation what;
    std::uint64_t generation = 0;
    std::uint16_t found = 0;
    std::uint16_t device_in_use = 0;
};

struct ledger::withdrawal {
    conduit::request_header header;
    std::uint64_t base = 0; ///< of the allocation, as the owner sees it
};

ledger::ledger(const segment_table &own, const memory::segment &host, conduit::engine &engine,
               conduit::call_service &calls, world_rank self)
    : own_(own), host_(host), engine_(engine), calls_(calls), self_(self),
      question_handler_(
          engine.add_handler([this](const conduit::message &incoming) { on_question(incoming); })),
      withdrawal_handler_(engine.add_handler(
          [this](const conduit::message &incoming) { on_withdrawal(incoming); })) {}

const std::atomic<std::uint64_t> *ledger::generation_of(world_rank owner) const {
    auto *const slot = engine_.transport().direct_base(owner);
    return slot == nullptr ? nullptr
                           : &reinterpret_cast<memory::published_state *>(slot)->device_generation;
}

std::optional<remote_allocation> ledger::look_up(const key &wanted) const {
    auto const *const published = generation_of(world_rank{std::get<0>(wanted)});
    // Read before the answer: it may only be older than this.
    std::uint64_t const current =
        published == nullptr ? 0 : published->load(std::memory_order_acquire);
    std::shared_lock const guard(mutex_);
    auto const found = kept_.find(wanted);
    if (found == kept_.end() || (published != nullptr && found->second.generation != current)) {
        return std::nullopt;
    }
    return found->second.what;
}

result<ledger::finding> ledger::find(world_rank owner, int device, named_by way, std::uint64_t key,
                                     std::size_t nbytes, bool as_here) {
    ledger::key const wanted{owner.value(), device, way, key};
    if (auto const known = look_up(wanted)) {
        return finding{known, true, true, 0, 0};
    }
    std::uint64_t const withdrawals = [this] {
        std::shared_lock const guard(mutex_);
        return num_withdrawals_;
    }();
    std::int32_t const place = as_here ? place_of(device) : -1;
    auto told = calls_.call<answer>(
        owner, question_handler_, question{{}, key, nbytes, device, place, way}, [owner, device] {
            return fmt::format("waiting for rank {} to say what it has on device {}", owner.value(),
                               device);
        });
    DIOMP_TRY(told);
    answer const &fresh = told.value();
    if (fresh.found == 0) {
        return finding{std::nullopt, fresh.device_in_use != 0, false, 0, 0};
    }
    return finding{fresh.what, true, false, fresh.generation, withdrawals};
}

void ledger::keep(world_rank owner, int device, named_by way, std::uint64_t key,
                  const finding &found) {
    if (found.was_kept || !found.what) {
        return;
    }
    std::lock_guard const guard(mutex_);
    if (kept_.size() >= max_kept) {
        kept_.clear();
    }
    // A withdrawal may have overtaken the answer that it is about.
    if (num_withdrawals_ == found.withdrawals) {
        kept_.insert_or_assign(ledger::key{owner.value(), device, way, key},
                               kept{*found.what, found.generation});
    }
}

void ledger::forget(std::uint64_t offset) {
    std::lock_guard const guard(mutex_);
    std::erase_if(kept_, [&](const auto &entry) {
        return std::get<2>(entry.first) == named_by::offset && std::get<3>(entry.first) == offset;
    });
}

std::int32_t ledger::place_of(int device) const {
    std::vector<int> const driven = own_devices();
    auto const at = std::ranges::find(driven, device);
    return at == driven.end() ? -1 : static_cast<std::int32_t>(at - driven.begin());
}

int ledger::device_in(std::int32_t place) const {
    std::vector<int> const driven = own_devices();
    auto const index = static_cast<std::size_t>(place);
    return place >= 0 && index < driven.size() ? driven[index] : -1;
}

int ledger::device_meant(int device, std::int32_t place) const {
    int const in_place = own_.find(device) == nullptr ? device_in(place) : -1;
    return in_place >= 0 ? in_place : device;
}

conduit::memory_kind ledger::kind_for_network(const device_segment &of) const {
    if (of.memory() == nullptr) {
        return conduit::memory_kind::host;
    }
    conduit::memory_kind const kind = kind_of(of.memory()->on().made_by);
    conduit::memory_range const range{kind, reinterpret_cast<std::uintptr_t>(of.base()),
                                      of.size_bytes()};
    return engine_.transport().reaches_range(range) ? kind : conduit::memory_kind::host;
}

void ledger::on_question(const conduit::message &incoming) {
    question asked;
    std::memcpy(&asked, incoming.payload.data(), sizeof(asked));
    answer told;
    // Before looking: an allocation that goes away after that changes it.
    told.generation = generation_of(self_)->load(std::memory_order_acquire);
    bool const is_mapped = engine_.transport().direct_base(incoming.source) != nullptr;
    // The number, and then its place: the asker's own devices may have numbers of others here.
    for (int const device : {asked.device, device_in(asked.place)}) {
        device_segment *const segment = own_.find(device);
        if (segment == nullptr || told.found != 0) {
            continue;
        }
        told.device_in_use = 1;
        std::uint64_t const offset =
            asked.way == named_by::address
                ? asked.key - reinterpret_cast<std::uintptr_t>(segment->base())
                : asked.key;
        auto found = asked.way == named_by::number
                         ? segment->tell_asymmetric(asked.key, incoming.source, is_mapped)
                         : segment->tell(offset, incoming.source, is_mapped);
        if (!found && asked.nbytes > 0) {
            found = segment->tell(offset + asked.nbytes - 1, incoming.source, is_mapped);
        }
        if (found) {
            told.found = 1;
            told.what = {reinterpret_cast<std::uintptr_t>(segment->base()) + found->offset,
                         found->nbytes,
                         found->offset,
                         identify(found->host, host_),
                         segment->device(),
                         static_cast<std::uint16_t>(segment->memory() != nullptr ? 1 : 0),
                         kind_for_network(*segment)};
        }
    }
    calls_.reply(incoming.source, asked.header.id, told);
}

status ledger::withdraw(int device, std::uint64_t offset, const device_segment::told &known_by) {
    if (known_by.mapped_ranks) {
        reinterpret_cast<memory::published_state *>(engine_.transport().direct_base(self_))
            ->device_generation.fetch_add(1, std::memory_order_acq_rel);
    }
    std::uint64_t const base = reinterpret_cast<std::uintptr_t>(own_.find(device)->base()) + offset;
    std::vector<conduit::call_service::open_call> started;
    started.reserve(known_by.others.size());
    for (world_rank const other : known_by.others) {
        started.push_back(calls_.start(other, withdrawal_handler_, withdrawal{{}, base}));
    }
    for (std::size_t i = 0; i < started.size(); ++i) {
        DIOMP_TRY(calls_.finish<confirmation>(started[i], [&] {
            return fmt::format("waiting for rank {} to forget device memory that is freed",
                               known_by.others[i].value());
        }));
    }
    return {};
}

void ledger::on_withdrawal(const conduit::message &incoming) {
    withdrawal told;
    std::memcpy(&told, incoming.payload.data(), sizeof(told));
    {
        std::lock_guard const guard(mutex_);
        ++num_withdrawals_;
        std::erase_if(kept_, [&](const auto &entry) {
            return std::get<0>(entry.first) == incoming.source.value() &&
                   entry.second.what.base == told.base;
        });
    }
    calls_.reply(incoming.source, told.header.id, confirmation{});
}

} // namespace diomp::offload
