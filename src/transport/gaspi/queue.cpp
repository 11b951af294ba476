// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/gaspi/queue.h"

#include <GASPI.h>

namespace diomp::transport::gaspi {
namespace {

// Every pair is connected and every queue has one user at a time, so no call needs to wait.
constexpr gaspi_timeout_t no_wait = GASPI_TEST;

gaspi_segment_id_t id_of(segment which) { return static_cast<gaspi_segment_id_t>(which); }
gaspi_rank_t rank_of(world_rank rank) { return static_cast<gaspi_rank_t>(rank.value()); }

} // namespace

gaspi_queue::outcome gaspi_queue::track(int code, const operation &started) {
    switch (code) {
    case GASPI_SUCCESS:
        outstanding.push_back(started);
        ++num_pending_;
        return outcome::started;
    case GASPI_QUEUE_FULL:
    case GASPI_TIMEOUT:
        return outcome::full;
    default:
        return outcome::failed;
    }
}

gaspi_queue::outcome gaspi_queue::write(world_rank to, location from, segment remote,
                                        std::uint64_t offset, const operation &started) {
    return track(gaspi_write(id_of(from.segment_id), from.offset, rank_of(to), id_of(remote),
                             offset, started.nbytes, queue_, no_wait),
                 started);
}

gaspi_queue::outcome gaspi_queue::read(world_rank from, location to, segment remote,
                                       std::uint64_t offset, const operation &started) {
    return track(gaspi_read(id_of(to.segment_id), to.offset, rank_of(from), id_of(remote), offset,
                            started.nbytes, queue_, no_wait),
                 started);
}

gaspi_queue::outcome gaspi_queue::write_and_notify(world_rank to, location from, segment remote,
                                                   std::uint64_t offset, std::size_t nbytes,
                                                   std::uint32_t id, std::uint32_t value) {
    outcome const done =
        track(gaspi_write_notify(id_of(from.segment_id), from.offset, rank_of(to), id_of(remote),
                                 offset, nbytes, id, value, queue_, no_wait),
              {});
    if (done == outcome::started) {
        track(GASPI_SUCCESS, {}); // takes two entries of the queue
    }
    return done;
}

gaspi_queue::outcome gaspi_queue::notify(world_rank to, segment remote, std::uint32_t id,
                                         std::uint32_t value) {
    return track(gaspi_notify(id_of(remote), rank_of(to), id, value, queue_, no_wait), {});
}

bool gaspi_queue::poll_completions() {
    gaspi_return_t const code = gaspi_wait(queue_, no_wait);
    gaspi_number_t left = 0;
    gaspi_queue_size(queue_, &left);
    if ((code != GASPI_SUCCESS && code != GASPI_TIMEOUT) || left > num_pending_) {
        return false;
    }
    num_pending_ = left;
    return true;
}

std::optional<std::uint32_t> find_notification(std::uint32_t begin, std::uint32_t count) {
    gaspi_notification_id_t first = 0;
    if (gaspi_notify_waitsome(id_of(segment::work), begin, count, &first, no_wait) !=
        GASPI_SUCCESS) {
        return std::nullopt;
    }
    return first;
}

std::uint32_t take_notification(std::uint32_t id) {
    gaspi_notification_t value = 0;
    gaspi_notify_reset(id_of(segment::work), id, &value);
    return value;
}

} // namespace diomp::transport::gaspi
