// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/service/straight.h"

#include <algorithm>
#include <string>
#include <utility>

namespace diomp::offload::service {
namespace {

constexpr world_rank client_rank{0};

} // namespace

result<network_range> hold_for_network(const remote::world &ranks, const target &device,
                                       std::uint64_t address, std::size_t nbytes) {
    auto range = device.hold(address, nbytes);
    DIOMP_TRY(range);
    if (range.value().kind != conduit::memory_kind::host &&
        range.value().kind != ranks.device_memory(ranks.rank())) {
        return error(OMPX_ERR_UNSUPPORTED, no_network_memory);
    }
    return range;
}

bool straight_transfers::must_follow(way going, const remote::straight_transfer &what) const {
    if (!flight_) {
        return false;
    }
    return going != going_ ||
           (going == way::fetch && std::ranges::any_of(pieces_, [&](auto &each) {
                return what.address < each.end && each.begin < what.address + what.nbytes;
            }));
}

result<conduit::memory_ends> straight_transfers::begin(remote::world &ranks, const target &device,
                                                       way going,
                                                       const remote::straight_transfer &what) {
    auto memory = hold_for_network(ranks, device, what.address, what.nbytes);
    DIOMP_TRY(memory);
    if (must_follow(going, what)) {
        DIOMP_TRY(wait(ranks));
    }
    going_ = going;
    if (!flight_) {
        flight_.emplace();
    }
    conduit::memory_ends const ends{conduit::memory_kind::host, memory.value().kind};
    pieces_.push_back({what.address, what.address + what.nbytes, memory.take()});
    return ends;
}

status straight_transfers::fetch(remote::world &ranks, const target &device,
                                 const remote::straight_transfer &what) {
    auto ends = begin(ranks, device, way::fetch, what);
    DIOMP_TRY(ends);
    return ranks.conduit().get_between(client_rank, what.there, to_pointer(what.address),
                                       what.nbytes, ends.value(), flight_->count());
}

status straight_transfers::deliver(remote::world &ranks, const target &device,
                                   const remote::straight_transfer &what) {
    auto ends = begin(ranks, device, way::deliver, what);
    DIOMP_TRY(ends);
    has_put_ = true;
    return ranks.conduit().put_between(client_rank, what.there, to_pointer(what.address),
                                       what.nbytes, ends.value(), flight_->count());
}

status straight_transfers::wait(remote::world &ranks) {
    if (!flight_) {
        return {};
    }
    status done;
    if (std::exchange(has_put_, false)) {
        done = ranks.conduit().flush(client_rank, flight_->count());
    }
    status landed =
        flight_->wait(ranks.engine(), [] { return std::string("moving data of the client"); });
    flight_.reset();
    pieces_.clear();
    return done ? std::move(landed) : std::move(done);
}

} // namespace diomp::offload::service
