// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How a queue's transfers travel.
#include "offload/remote/queue.h"

#include <algorithm>

namespace diomp::offload::remote {

bool queue::touches_gathered(std::uint64_t address, std::size_t nbytes) const {
    return std::any_of(put_ranges_.begin(), put_ranges_.end(), [&](const range &each) {
        return address < each.end && each.begin < address + nbytes;
    });
}

status queue::put_large(std::uint64_t address, const void *source, std::size_t nbytes) {
    if (!landing_) {
        landing_ = std::make_shared<conduit::completion>();
    }
    has_large_puts_ = true;
    has_work_ = true;
    note_flight(observer::direction::to_device, observer::carrier::network, nbytes);
    return owner_.ranks().conduit().put(device_.rank(), address, source, nbytes, *landing_);
}

result<std::uint64_t> queue::take_stage(std::size_t nbytes, std::unique_lock<std::mutex> &lock) {
    auto stage = device_.slot().allocate(nbytes);
    if (!stage && !stages_.empty()) {
        lock.unlock();
        DIOMP_TRY(synchronize());
        lock.lock();
        stage = device_.slot().allocate(nbytes);
    }
    DIOMP_TRY(stage);
    stages_.push_back(stage.value());
    return stage;
}

void queue::append_copy(world_rank to, std::uint64_t destination, std::uint64_t source,
                        std::size_t nbytes) {
    append_operation(gathered_, operation::copy);
    gathered_.number(static_cast<std::uint32_t>(to.value()));
    gathered_.number(destination);
    gathered_.number(source);
    gathered_.number(static_cast<std::uint64_t>(nbytes));
    note_copy();
}

void queue::note_copy() {
    has_work_ = true;
    computes_ = true;
    copies_ = true;
}

status queue::append_straight(operation way, std::uint64_t address, const void *here,
                              std::size_t nbytes, std::unique_lock<std::mutex> &lock) {
    packet_writer encoded;
    append_operation(encoded, way);
    append(encoded, straight_transfer{address, reinterpret_cast<std::uint64_t>(here), nbytes});
    DIOMP_TRY(make_room(encoded.size(), lock));
    gathered_.bytes(encoded.take());
    note_copy();
    note_flight(way == operation::fetch ? observer::direction::to_device
                                        : observer::direction::from_device,
                observer::carrier::session, nbytes);
    return {};
}

/// Variables of images, and memory of GPUs where the network does not reach it: large transfers
/// reach the slot only.
status queue::stage_put(std::uint64_t address, const void *source, std::size_t nbytes,
                        std::unique_lock<std::mutex> &lock) {
    auto const *from = static_cast<const std::byte *>(source);
    while (nbytes > 0) {
        std::size_t const part = std::min<std::size_t>(nbytes, device_.slot().most_staged());
        auto stage = take_stage(part, lock);
        DIOMP_TRY(stage);
        DIOMP_TRY(put_large(stage.value(), from, part));
        DIOMP_TRY(make_room(64, lock));
        append_copy(device_.rank(), address, stage.value(), part);
        address += part;
        from += part;
        nbytes -= part;
    }
    return {};
}

status queue::stage_get(void *destination, std::uint64_t address, std::size_t nbytes,
                        std::unique_lock<std::mutex> &lock) {
    auto *to = static_cast<std::byte *>(destination);
    while (nbytes > 0) {
        std::size_t const part = std::min<std::size_t>(nbytes, device_.slot().most_staged());
        auto stage = take_stage(part, lock);
        DIOMP_TRY(stage);
        DIOMP_TRY(make_room(64, lock));
        append_copy(device_.rank(), stage.value(), address, part);
        get_large(to, stage.value(), part);
        address += part;
        to += part;
        nbytes -= part;
    }
    return {};
}

void queue::get_large(void *destination, std::uint64_t address, std::size_t nbytes) {
    large_gets_.push_back({destination, address, nbytes});
    computes_ = true; // puts must not overtake it
    copies_ = true;
}

status queue::put(std::uint64_t address, const void *source, std::size_t nbytes) {
    if (nbytes == 0) {
        return {};
    }
    DIOMP_TRY(device_.check(address, nbytes));
    auto const begin = now();
    std::unique_lock lock(mutex_);
    bool const is_small = nbytes <= owner_.split_threshold_bytes();
    DIOMP_TRY(follow(lock, !is_small));
    if (is_small) {
        DIOMP_TRY(make_room(put_header_bytes + nbytes, lock));
        append_operation(gathered_, operation::put);
        gathered_.number(address);
        gathered_.text({static_cast<const char *>(source), nbytes});
        put_ranges_.push_back({address, address + nbytes});
        has_work_ = true;
        note_moved(observer::direction::to_device, nbytes, begin);
        return {};
    }
    if (device_.is_straight(address, nbytes)) {
        return append_straight(operation::fetch, address, source, nbytes, lock);
    }
    if (!device_.is_segment(address)) {
        return stage_put(address, source, nbytes, lock);
    }
    // It must not overtake what may use that memory.
    if (computes_ || touches_gathered(address, nbytes)) {
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
    std::size_t const most_in_reply =
        owner_.ranks().conduit().max_message_bytes(device_.rank()) - reply_header_bytes;
    bool const is_small =
        nbytes <= owner_.split_threshold_bytes() && small_get_bytes_ + nbytes <= most_in_reply;
    DIOMP_TRY(follow(lock, !is_small));
    if (is_small) {
        DIOMP_TRY(make_room(17, lock));
        append_operation(gathered_, operation::get);
        gathered_.number(address);
        gathered_.number(static_cast<std::uint64_t>(nbytes));
        small_gets_.push_back({destination, nbytes});
        small_get_bytes_ += nbytes;
        has_work_ = true;
        note_moved(observer::direction::from_device, nbytes, begin);
        return {};
    }
    if (device_.is_straight(address, nbytes)) {
        return append_straight(operation::deliver, address, destination, nbytes, lock);
    }
    if (!device_.is_segment(address)) {
        return stage_get(destination, address, nbytes, lock);
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
        return error(OMPX_ERR_RANK, "the other device is none of this client's");
    }
    DIOMP_TRY(target->check(destination, nbytes));
    bool const is_reached = target->is_segment(destination) ||
                            (target->is_straight(destination, nbytes) &&
                             (device_.is_segment(source) || device_.is_straight(source, nbytes)));
    if (target != &device_ && !is_reached) {
        return copy_by_stage(*target, destination, source, nbytes);
    }
    if (target != &device_) {
        DIOMP_TRY(owner_.settle(*target));
    }
    std::unique_lock lock(mutex_);
    DIOMP_TRY(follow(lock));
    DIOMP_TRY(make_room(64, lock));
    append_copy(to, destination, source, nbytes);
    note_flight(observer::direction::between_devices, observer::carrier::session, nbytes);
    return {};
}

/// To memory of another device that is not in its slot: by way of a stage there.
status queue::copy_by_stage(remote_device &target, std::uint64_t destination, std::uint64_t source,
                            std::size_t nbytes) {
    std::size_t const most = std::min<std::size_t>(nbytes, target.slot().most_staged());
    auto stage = target.slot().allocate(most);
    DIOMP_TRY(stage);
    queue &there = owner_.take_queue(target);
    status done;
    for (std::size_t at = 0; at < nbytes && done; at += most) {
        std::size_t const part = std::min(most, nbytes - at);
        done = copy(target.rank(), stage.value(), source + at, part);
        if (done) {
            done = synchronize();
        }
        if (done) {
            done = there.copy(target.rank(), destination + at, stage.value(), part);
        }
        if (status last = there.synchronize(); done && !last) {
            done = std::move(last);
        }
    }
    owner_.give_back(there);
    target.slot().release(stage.value());
    return done;
}

} // namespace diomp::offload::remote
