// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conduit/gaspi/lane.h"

#include <GASPI.h>

namespace diomp::conduit::gaspi {
namespace {

// Every pair is connected and every queue has one user at a time, so no call has to wait.
constexpr gaspi_timeout_t at_once = GASPI_TEST;

gaspi_segment_id_t id_of(segment which) { return static_cast<gaspi_segment_id_t>(which); }
gaspi_rank_t rank_of(world_rank rank) { return static_cast<gaspi_rank_t>(rank.value()); }

} // namespace

lane::outcome lane::note(int code, const operation &started) {
    switch (code) {
    case GASPI_SUCCESS:
        under_way.push_back(started);
        ++num_left_;
        return outcome::started;
    case GASPI_QUEUE_FULL:
    case GASPI_TIMEOUT:
        return outcome::full;
    default:
        return outcome::failed;
    }
}

lane::outcome lane::write(world_rank to, place from, segment remote, std::uint64_t offset,
                          const operation &started) {
    return note(gaspi_write(id_of(from.where), from.offset, rank_of(to), id_of(remote), offset,
                            started.nbytes, queue_, at_once),
                started);
}

lane::outcome lane::read(world_rank from, place to, segment remote, std::uint64_t offset,
                         const operation &started) {
    return note(gaspi_read(id_of(to.where), to.offset, rank_of(from), id_of(remote), offset,
                           started.nbytes, queue_, at_once),
                started);
}

lane::outcome lane::write_and_notify(world_rank to, place from, segment remote,
                                     std::uint64_t offset, std::size_t nbytes, std::uint32_t id,
                                     std::uint32_t value) {
    outcome const done =
        note(gaspi_write_notify(id_of(from.where), from.offset, rank_of(to), id_of(remote), offset,
                                nbytes, id, value, queue_, at_once),
             {});
    if (done == outcome::started) {
        note(GASPI_SUCCESS, {}); // two entries of the queue
    }
    return done;
}

lane::outcome lane::notify(world_rank to, segment remote, std::uint32_t id, std::uint32_t value) {
    return note(gaspi_notify(id_of(remote), rank_of(to), id, value, queue_, at_once), {});
}

bool lane::look() {
    gaspi_return_t const code = gaspi_wait(queue_, at_once);
    gaspi_number_t left = 0;
    gaspi_queue_size(queue_, &left);
    if ((code != GASPI_SUCCESS && code != GASPI_TIMEOUT) || left > num_left_) {
        return false;
    }
    num_left_ = left;
    return true;
}

} // namespace diomp::conduit::gaspi
