// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/internal/endpoint_record.h"

#include "offload/device_segment.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

namespace diomp::offload {
namespace {

/// The record is in the first bytes of its memory, the table of peers after it.
constexpr std::size_t peers_offset = 256;
static_assert(sizeof(diomp_endpoint) <= peers_offset);
constexpr std::size_t rings_alignment = 128;

} // namespace

struct endpoint_record::shared_part {
    alignas(128) diomp_device_error failed{};
    alignas(128) std::int32_t broken = 0;
};

endpoint_record::endpoint_record(const accelerator &on, const diomp_endpoint &initial)
    : on_(on), values_(initial), peers_(static_cast<std::size_t>(initial.num_ranks)),
      known_commits_(peers_.size(), 0) {}

result<std::unique_ptr<endpoint_record>>
endpoint_record::create(const accelerator &on, const diomp_endpoint &initial, bool with_rings) {
    std::unique_ptr<endpoint_record> made(new endpoint_record(on, initial));
    std::size_t const rings_offset =
        (peers_offset + made->peers_.size() * sizeof(diomp_peer) + rings_alignment - 1) /
        rings_alignment * rings_alignment;
    // After the rings, the table of groups; without requests they are not known.
    std::size_t const groups_offset = rings_offset + request_rings::device_bytes();
    std::vector<diomp_group> const groups(with_rings ? DIOMP_BARRIER_GROUPS : 0);
    std::size_t const groups_bytes = groups.size() * sizeof(diomp_group);
    std::size_t const nbytes = with_rings ? groups_offset + groups_bytes : rings_offset;
    auto memory = on.backend->reserve(on.id, nbytes);
    DIOMP_TRY(memory);
    DIOMP_TRY(memory.value()->commit(0, nbytes));
    auto pinned = on.backend->allocate_pinned(sizeof(shared_part));
    DIOMP_TRY(pinned);
    auto queue = on.backend->make_queue(on.id);
    DIOMP_TRY(queue);
    made->memory_ = memory.take();
    made->pinned_ = pinned.take();
    made->queue_ = queue.take();
    auto *const shared = ::new (made->pinned_.base()) shared_part;
    diomp_endpoint &values = made->values_;
    values.version = DIOMP_ENDPOINT_VERSION;
    values.peers = reinterpret_cast<const diomp_peer *>(made->peers_on_device());
    values.error = &shared->failed;
    values.broken = &shared->broken;
    if (with_rings) {
        auto rings = request_rings::create(*on.backend, made->memory_->base() + rings_offset);
        DIOMP_TRY(rings);
        made->rings_ = rings.take();
        values.rings = made->rings_->on_device();
        std::byte *const table = made->memory_->base() + groups_offset;
        values.groups = reinterpret_cast<diomp_group *>(table);
        DIOMP_TRY(made->queue_->copy(table, groups.data(), groups_bytes));
        DIOMP_TRY(made->rings_->reset(*made->queue_));
    }
    DIOMP_TRY(made->queue_->copy(made->memory_->base(), &values, sizeof(values)));
    DIOMP_TRY(made->flush());
    return made;
}

endpoint_record::shared_part &endpoint_record::shared() const {
    return *std::launder(reinterpret_cast<shared_part *>(pinned_.base()));
}

std::byte *endpoint_record::peers_on_device() const { return memory_->base() + peers_offset; }

std::uint64_t endpoint_record::device_address() const {
    return reinterpret_cast<std::uintptr_t>(memory_->base());
}

void endpoint_record::set_common(device_segment::common_parts parts) {
    is_changed_ = is_changed_ || values_.symmetric_end != parts.symmetric_end ||
                  values_.mapped_begin != parts.mapped_begin;
    values_.symmetric_end = parts.symmetric_end;
    values_.mapped_begin = parts.mapped_begin;
}

void endpoint_record::allow_requests(bool allowed) {
    std::uint32_t const num_rings = allowed && rings_ != nullptr ? request_rings::num_rings : 0;
    is_changed_ = is_changed_ || values_.num_rings != num_rings;
    values_.num_rings = num_rings;
}

void endpoint_record::set_peer(world_rank rank, const diomp_peer &to) {
    peers_[rank.index()] = to;
    is_changed_ = true;
}

status endpoint_record::flush() {
    if (!is_changed_) {
        return {};
    }
    // The device owns error_claim.
    DIOMP_TRY(queue_->copy(peers_on_device(), peers_.data(), peers_.size() * sizeof(diomp_peer)));
    DIOMP_TRY(queue_->copy(memory_->base(), &values_, offsetof(diomp_endpoint, error_claim)));
    DIOMP_TRY(queue_->wait());
    is_changed_ = false;
    return {};
}

status endpoint_record::reset(std::span<const ompx_group_t> freed) {
    if (!freed.empty()) {
        DIOMP_TRY(forget_groups(freed));
    }
    return rings_->is_broken() ? rings_->reset(*queue_) : status();
}

status endpoint_record::forget_groups(std::span<const ompx_group_t> freed) {
    std::vector<diomp_group> table(DIOMP_BARRIER_GROUPS);
    std::size_t const nbytes = table.size() * sizeof(diomp_group);
    DIOMP_TRY(queue_->copy(table.data(), values_.groups, nbytes));
    DIOMP_TRY(queue_->wait());
    for (ompx_group_t const handle : freed) {
        auto const found = std::ranges::find(table, reinterpret_cast<std::uintptr_t>(handle),
                                             &diomp_group::handle);
        if (found != table.end()) {
            *found = {};
            found->handle = DIOMP_GROUP_FREED;
        }
    }
    DIOMP_TRY(queue_->copy(values_.groups, table.data(), nbytes));
    return queue_->wait();
}

std::optional<diomp_device_error> endpoint_record::take_error() {
    diomp_device_error &failed = shared().failed;
    std::uint64_t const taken = failed.taken;
    if (__atomic_load_n(&failed.written, __ATOMIC_ACQUIRE) != taken + 1) {
        return std::nullopt;
    }
    diomp_device_error const found = failed;
    __atomic_store_n(&failed.taken, taken + 1, __ATOMIC_RELEASE);
    return found;
}

void endpoint_record::break_waits(int status) {
    __atomic_store_n(&shared().broken, status, __ATOMIC_RELEASE);
}

diomp_peer describe_peer(const peer_segments::view &mapped, std::uint64_t segment_bytes,
                         std::uint64_t mapped_end, device_segment::mapped_part own) {
    auto extents = mapped.extents;
    std::ranges::sort(extents, {}, &peer_segments::extent::offset);
    diomp_peer made{reinterpret_cast<std::uintptr_t>(mapped.base), 0, segment_bytes,
                    mapped_end - own.end};
    for (peer_segments::extent const &each : extents) {
        if (each.offset == made.front_bytes) {
            made.front_bytes += each.nbytes;
        }
    }
    for (auto each = extents.rbegin(); each != extents.rend(); ++each) {
        if (each->offset + each->nbytes == made.back_begin) {
            made.back_begin = each->offset;
        }
    }
    if (made.back_shift != 0) { // segments of different sizes: their halves begin elsewhere
        std::uint64_t const from_end = mapped_end - std::min(made.back_begin, mapped_end);
        made.front_bytes = std::min(made.front_bytes, own.begin);
        made.back_begin = from_end == 0 ? std::numeric_limits<std::uint64_t>::max()
                                        : own.end - std::min(from_end, own.end - own.begin);
    }
    return made;
}

} // namespace diomp::offload
