// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers of a queue.
#include "offload/remote/queue.h"
#include "transport/conduit.h"

#include <algorithm>

namespace diomp::offload::remote {

using direction = queue_recorder::direction;
using carrier = queue_recorder::carrier;

status queue::append_zero_copy(operation op, std::uint64_t address, const void *client_memory,
                               std::size_t nbytes, std::unique_lock<std::mutex> &lock) {
    DIOMP_TRY(reserve_space(batch_builder::zero_copy_bytes, lock));
    operations_.zero_copy(op, {address, reinterpret_cast<std::uint64_t>(client_memory), nbytes});
    recorder_.started(op == operation::fetch ? direction::to_device : direction::from_device,
                      carrier::session, nbytes);
    return {};
}

template <typename Transfer>
status queue::stage_chunks(std::size_t nbytes, std::unique_lock<std::mutex> &lock,
                           Transfer transfer) {
    for (std::size_t offset = 0; offset < nbytes;) {
        std::size_t const chunk =
            std::min<std::size_t>(nbytes - offset, device_.slot().max_stage_bytes());
        auto stage = transfers_.allocate_stage(chunk);
        if (!stage && transfers_.has_stages()) {
            lock.unlock();
            DIOMP_TRY(synchronize());
            lock.lock();
            stage = transfers_.allocate_stage(chunk);
        }
        DIOMP_TRY(stage);
        DIOMP_TRY(transfer(stage.value(), offset, chunk));
        offset += chunk;
    }
    return {};
}

status queue::put(std::uint64_t address, const void *source, std::size_t nbytes) {
    if (nbytes == 0) {
        return {};
    }
    DIOMP_TRY(device_.check(address, nbytes));
    auto const begin = recorder_.now();
    std::unique_lock lock(mutex_);
    bool const is_small = nbytes <= owner_.split_threshold_bytes();
    DIOMP_TRY(order_after_deferred(lock, !is_small));
    if (is_small) {
        DIOMP_TRY(reserve_space(put_header_bytes + nbytes, lock));
        operations_.put(address, source, nbytes);
        recorder_.moved(direction::to_device, carrier::message, nbytes, begin);
        return {};
    }
    if (device_.memory().is_zero_copy(address, nbytes)) {
        return append_zero_copy(operation::fetch, address, source, nbytes, lock);
    }
    if (!device_.slot().has(address)) {
        auto const *from = static_cast<const std::byte *>(source);
        return stage_chunks(
            nbytes, lock,
            [&](std::uint64_t stage, std::size_t offset, std::size_t chunk) -> status {
                operations_.include(content::transfers);
                DIOMP_TRY(transfers_.put(stage, from + offset, chunk));
                DIOMP_TRY(reserve_space(batch_builder::max_copy_bytes, lock));
                operations_.copy(operation::copy, device_.rank(), address + offset, stage, chunk);
                return {};
            });
    }
    // The put must not overtake operations that may use that memory.
    if (operations_.includes(content::session) ||
        operations_.overlaps_pending_put(address, nbytes)) {
        lock.unlock();
        DIOMP_TRY(synchronize());
        lock.lock();
    }
    operations_.include(content::transfers);
    return transfers_.put(address, source, nbytes);
}

status queue::get(void *destination, std::uint64_t address, std::size_t nbytes) {
    if (nbytes == 0) {
        return {};
    }
    DIOMP_TRY(device_.check(address, nbytes));
    auto const begin = recorder_.now();
    std::unique_lock lock(mutex_);
    std::size_t const max_in_reply =
        owner_.ranks().conduit().max_message_bytes(device_.rank()) - reply_header_bytes;
    bool const is_small = nbytes <= owner_.split_threshold_bytes() &&
                          operations_.num_reply_bytes() + nbytes <= max_in_reply;
    DIOMP_TRY(order_after_deferred(lock, !is_small, true));
    if (is_small) {
        DIOMP_TRY(reserve_space(batch_builder::get_bytes, lock));
        operations_.get(destination, address, nbytes);
        recorder_.moved(direction::from_device, carrier::message, nbytes, begin);
        return {};
    }
    if (device_.memory().is_zero_copy(address, nbytes)) {
        return append_zero_copy(operation::deliver, address, destination, nbytes, lock);
    }
    if (!device_.slot().has(address)) {
        auto *const to = static_cast<std::byte *>(destination);
        return stage_chunks(
            nbytes, lock,
            [&](std::uint64_t stage, std::size_t offset, std::size_t chunk) -> status {
                DIOMP_TRY(reserve_space(batch_builder::max_copy_bytes, lock));
                operations_.copy(operation::copy, device_.rank(), stage, address + offset, chunk);
                operations_.include(content::transfers); // events include it
                transfers_.add_get(to + offset, stage, chunk, operations_.batch());
                return {};
            });
    }
    operations_.include(content::transfers); // events include it
    transfers_.add_get(destination, address, nbytes, operations_.batch());
    return {};
}

namespace {

/// Copies to memory of another device outside its slot, through a stage buffer in that slot.
status copy_staged(client &owner, queue &from, remote_device &target, std::uint64_t destination,
                   std::uint64_t source, std::size_t nbytes) {
    std::size_t const max_chunk = std::min<std::size_t>(nbytes, target.slot().max_stage_bytes());
    auto stage = target.slot().allocate(max_chunk);
    DIOMP_TRY(stage);
    queue &target_queue = owner.acquire_queue(target);
    status done;
    for (std::size_t offset = 0; offset < nbytes && done; offset += max_chunk) {
        std::size_t const chunk = std::min(max_chunk, nbytes - offset);
        done = from.copy(target.rank(), stage.value(), source + offset, chunk);
        if (done) {
            done = from.synchronize();
        }
        if (done) {
            done = target_queue.copy(target.rank(), destination + offset, stage.value(), chunk);
        }
        if (status last = target_queue.synchronize(); done && !last) {
            done = std::move(last);
        }
    }
    owner.release_queue(target_queue);
    target.slot().release(stage.value());
    return done;
}

} // namespace

status queue::copy(world_rank to, std::uint64_t destination, std::uint64_t source,
                   std::size_t nbytes) {
    if (nbytes == 0) {
        return {};
    }
    remote_device *const target = owner_.device_of(to);
    if (target == nullptr) {
        return error(OMPX_ERR_RANK, "the destination device does not belong to this client");
    }
    DIOMP_TRY(target->check(destination, nbytes));
    bool const is_reached =
        target->slot().has(destination) ||
        (target->memory().is_zero_copy(destination, nbytes) &&
         (device_.slot().has(source) || device_.memory().is_zero_copy(source, nbytes)));
    if (target != &device_ && !is_reached) {
        return copy_staged(owner_, *this, *target, destination, source, nbytes);
    }
    if (target != &device_) {
        DIOMP_TRY(owner_.wait_for_deferred(*target));
    }
    return copy_in_job(operation::copy, to, destination, source, nbytes);
}

status queue::copy_in_job(operation op, world_rank other, std::uint64_t destination,
                          std::uint64_t source, std::size_t nbytes) {
    DIOMP_TRY(device_.check(op == operation::copy ? source : destination, nbytes));
    std::unique_lock lock(mutex_);
    DIOMP_TRY(order_after_deferred(lock));
    DIOMP_TRY(reserve_space(batch_builder::max_copy_bytes, lock));
    operations_.copy(op, other, destination, source, nbytes);
    recorder_.started(direction::between_devices, carrier::session, nbytes);
    return {};
}

status queue::call(std::string_view encoded, std::span<char, call_outcome_bytes> outcome) {
    std::unique_lock lock(mutex_);
    DIOMP_TRY(order_after_deferred(lock));
    for (; !encoded.empty(); encoded.remove_prefix(std::min(encoded.size(), max_call_part_bytes))) {
        std::string_view const part = encoded.substr(0, max_call_part_bytes);
        DIOMP_TRY(reserve_space(batch_builder::call_part_header_bytes + part.size(), lock));
        operations_.call_part(part);
    }
    DIOMP_TRY(reserve_space(batch_builder::call_bytes, lock));
    operations_.call(outcome);
    return {};
}

} // namespace diomp::offload::remote
