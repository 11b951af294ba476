// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers of a queue.
#include "offload/remote/queue.h"

#include <algorithm>

namespace diomp::offload::remote {

bool queue::overlaps_pending_put(std::uint64_t address, std::size_t nbytes) const {
    return std::any_of(put_ranges_.begin(), put_ranges_.end(), [&](const range &each) {
        return address < each.end && each.begin < address + nbytes;
    });
}

status queue::put_large(std::uint64_t address, const void *source, std::size_t nbytes) {
    if (!put_completion_) {
        put_completion_ = std::make_shared<transport::completion>();
    }
    has_large_puts_ = true;
    has_work_ = true;
    record_started(client_observer::direction::to_device, client_observer::carrier::network,
                   nbytes);
    return owner_.ranks().conduit().put(device_.rank(), address, source, nbytes, *put_completion_);
}

result<std::uint64_t> queue::allocate_stage(std::size_t nbytes,
                                            std::unique_lock<std::mutex> &lock) {
    auto stage = device_.slot().allocate(nbytes);
    if (!stage && !stage_buffers_.empty()) {
        lock.unlock();
        DIOMP_TRY(synchronize());
        lock.lock();
        stage = device_.slot().allocate(nbytes);
    }
    DIOMP_TRY(stage);
    stage_buffers_.push_back(stage.value());
    return stage;
}

void queue::append_copy(world_rank to, std::uint64_t destination, std::uint64_t source,
                        std::size_t nbytes) {
    append_operation(pending_operations_, operation::copy);
    pending_operations_.number(static_cast<std::uint32_t>(to.value()));
    pending_operations_.number(destination);
    pending_operations_.number(source);
    pending_operations_.number(static_cast<std::uint64_t>(nbytes));
    mark_copy();
}

void queue::mark_copy() {
    has_work_ = true;
    has_session_work_ = true;
    has_copies_ = true;
}

status queue::append_zero_copy(operation op, std::uint64_t address, const void *client_memory,
                               std::size_t nbytes, std::unique_lock<std::mutex> &lock) {
    packet_writer encoded;
    append_operation(encoded, op);
    append(encoded,
           zero_copy_transfer{address, reinterpret_cast<std::uint64_t>(client_memory), nbytes});
    DIOMP_TRY(reserve_space(encoded.size(), lock));
    pending_operations_.bytes(encoded.take());
    mark_copy();
    record_started(op == operation::fetch ? client_observer::direction::to_device
                                          : client_observer::direction::from_device,
                   client_observer::carrier::session, nbytes);
    return {};
}

/// For variables of images, and for GPU memory that the network cannot access: large transfers
/// reach the slot only.
status queue::put_staged(std::uint64_t address, const void *source, std::size_t nbytes,
                         std::unique_lock<std::mutex> &lock) {
    auto const *from = static_cast<const std::byte *>(source);
    while (nbytes > 0) {
        std::size_t const chunk = std::min<std::size_t>(nbytes, device_.slot().max_stage_bytes());
        auto stage = allocate_stage(chunk, lock);
        DIOMP_TRY(stage);
        DIOMP_TRY(put_large(stage.value(), from, chunk));
        DIOMP_TRY(reserve_space(64, lock));
        append_copy(device_.rank(), address, stage.value(), chunk);
        address += chunk;
        from += chunk;
        nbytes -= chunk;
    }
    return {};
}

status queue::get_staged(void *destination, std::uint64_t address, std::size_t nbytes,
                         std::unique_lock<std::mutex> &lock) {
    auto *to = static_cast<std::byte *>(destination);
    while (nbytes > 0) {
        std::size_t const chunk = std::min<std::size_t>(nbytes, device_.slot().max_stage_bytes());
        auto stage = allocate_stage(chunk, lock);
        DIOMP_TRY(stage);
        DIOMP_TRY(reserve_space(64, lock));
        append_copy(device_.rank(), stage.value(), address, chunk);
        get_large(to, stage.value(), chunk);
        address += chunk;
        to += chunk;
        nbytes -= chunk;
    }
    return {};
}

void queue::get_large(void *destination, std::uint64_t address, std::size_t nbytes) {
    large_gets_.push_back({destination, address, nbytes});
    has_session_work_ = true; // puts must not overtake the get
    has_copies_ = true;
}

status queue::put(std::uint64_t address, const void *source, std::size_t nbytes) {
    if (nbytes == 0) {
        return {};
    }
    DIOMP_TRY(device_.check(address, nbytes));
    auto const begin = now();
    std::unique_lock lock(mutex_);
    bool const is_small = nbytes <= owner_.split_threshold_bytes();
    DIOMP_TRY(order_after_deferred(lock, !is_small));
    if (is_small) {
        DIOMP_TRY(reserve_space(put_header_bytes + nbytes, lock));
        append_operation(pending_operations_, operation::put);
        pending_operations_.number(address);
        pending_operations_.text({static_cast<const char *>(source), nbytes});
        put_ranges_.push_back({address, address + nbytes});
        has_work_ = true;
        record_in_message(client_observer::direction::to_device, nbytes, begin);
        return {};
    }
    if (device_.memory().is_zero_copy(address, nbytes)) {
        return append_zero_copy(operation::fetch, address, source, nbytes, lock);
    }
    if (!device_.slot().has(address)) {
        return put_staged(address, source, nbytes, lock);
    }
    // The put must not overtake operations that may use that memory.
    if (has_session_work_ || overlaps_pending_put(address, nbytes)) {
        lock.unlock();
        DIOMP_TRY(synchronize());
        lock.lock();
    }
    return put_large(address, source, nbytes);
}

status queue::get(void *destination, std::uint64_t address, std::size_t nbytes) {
    if (nbytes == 0) {
        return {};
    }
    DIOMP_TRY(device_.check(address, nbytes));
    auto const begin = now();
    std::unique_lock lock(mutex_);
    std::size_t const max_in_reply =
        owner_.ranks().conduit().max_message_bytes(device_.rank()) - reply_header_bytes;
    bool const is_small =
        nbytes <= owner_.split_threshold_bytes() && small_get_bytes_ + nbytes <= max_in_reply;
    DIOMP_TRY(order_after_deferred(lock, !is_small));
    if (is_small) {
        DIOMP_TRY(reserve_space(17, lock));
        append_operation(pending_operations_, operation::get);
        pending_operations_.number(address);
        pending_operations_.number(static_cast<std::uint64_t>(nbytes));
        small_gets_.push_back({destination, nbytes});
        small_get_bytes_ += nbytes;
        has_work_ = true;
        record_in_message(client_observer::direction::from_device, nbytes, begin);
        return {};
    }
    if (device_.memory().is_zero_copy(address, nbytes)) {
        return append_zero_copy(operation::deliver, address, destination, nbytes, lock);
    }
    if (!device_.slot().has(address)) {
        return get_staged(destination, address, nbytes, lock);
    }
    get_large(destination, address, nbytes);
    return {};
}

status queue::copy(world_rank to, std::uint64_t destination, std::uint64_t source,
                   std::size_t nbytes) {
    if (nbytes == 0) {
        return {};
    }
    DIOMP_TRY(device_.check(source, nbytes));
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
        return copy_staged(*target, destination, source, nbytes);
    }
    if (target != &device_) {
        DIOMP_TRY(owner_.wait_for_deferred(*target));
    }
    std::unique_lock lock(mutex_);
    DIOMP_TRY(order_after_deferred(lock));
    DIOMP_TRY(reserve_space(64, lock));
    append_copy(to, destination, source, nbytes);
    record_started(client_observer::direction::between_devices, client_observer::carrier::session,
                   nbytes);
    return {};
}

/// Copies to memory of another device outside its slot, through a stage buffer in that slot.
status queue::copy_staged(remote_device &target, std::uint64_t destination, std::uint64_t source,
                          std::size_t nbytes) {
    std::size_t const max_chunk = std::min<std::size_t>(nbytes, target.slot().max_stage_bytes());
    auto stage = target.slot().allocate(max_chunk);
    DIOMP_TRY(stage);
    queue &target_queue = owner_.acquire_queue(target);
    status done;
    for (std::size_t offset = 0; offset < nbytes && done; offset += max_chunk) {
        std::size_t const chunk = std::min(max_chunk, nbytes - offset);
        done = copy(target.rank(), stage.value(), source + offset, chunk);
        if (done) {
            done = synchronize();
        }
        if (done) {
            done = target_queue.copy(target.rank(), destination + offset, stage.value(), chunk);
        }
        if (status last = target_queue.synchronize(); done && !last) {
            done = std::move(last);
        }
    }
    owner_.release_queue(target_queue);
    target.slot().release(stage.value());
    return done;
}

} // namespace diomp::offload::remote
