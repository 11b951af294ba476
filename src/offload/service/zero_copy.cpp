// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/service/zero_copy.h"

#include "transport/arena.h"
#include "transport/conduit.h"

#include <algorithm>
#include <string>
#include <utility>

namespace diomp::offload::service {

result<network_range> retain_for_network(const remote::world &ranks, const target &device,
                                         std::uint64_t address, std::size_t nbytes) {
    auto range = device.retain(address, nbytes);
    DIOMP_TRY(range);
    if (range.value().kind != transport::memory_kind::host &&
        range.value().kind != ranks.device_memory(ranks.rank())) {
        return error(OMPX_ERR_UNSUPPORTED, no_network_memory);
    }
    return range;
}

bool zero_copy_transfers::conflicts(direction dir, const remote::zero_copy_transfer &what) const {
    if (!completion_) {
        return false;
    }
    return dir != dir_ ||
           (dir == direction::fetch && std::ranges::any_of(active_ranges_, [&](auto &each) {
                return what.address < each.end && each.begin < what.address + what.nbytes;
            }));
}

result<transport::memory_kinds> zero_copy_transfers::begin(remote::world &ranks, world_rank client,
                                                           const target &device, direction dir,
                                                           const remote::zero_copy_transfer &what) {
    auto memory = retain_for_network(ranks, device, what.address, what.nbytes);
    DIOMP_TRY(memory);
    if (conflicts(dir, what)) {
        DIOMP_TRY(wait(ranks, client));
    }
    dir_ = dir;
    if (!completion_) {
        completion_.emplace();
    }
    transport::memory_kinds const kinds{transport::memory_kind::host, memory.value().kind};
    active_ranges_.push_back({what.address, what.address + what.nbytes, memory.take()});
    return kinds;
}

status zero_copy_transfers::fetch(remote::world &ranks, world_rank client, const target &device,
                                  const remote::zero_copy_transfer &what) {
    auto kinds = begin(ranks, client, device, direction::fetch, what);
    DIOMP_TRY(kinds);
    return ranks.conduit().device()->get_device_memory(client, what.peer_address,
                                                       to_pointer(what.address), what.nbytes,
                                                       kinds.value(), completion_->count());
}

status zero_copy_transfers::deliver(remote::world &ranks, world_rank client, const target &device,
                                    const remote::zero_copy_transfer &what) {
    auto kinds = begin(ranks, client, device, direction::deliver, what);
    DIOMP_TRY(kinds);
    has_put_ = true;
    return ranks.conduit().device()->put_device_memory(client, what.peer_address,
                                                       to_pointer(what.address), what.nbytes,
                                                       kinds.value(), completion_->count());
}

status zero_copy_transfers::wait(remote::world &ranks, world_rank client) {
    if (!completion_) {
        return {};
    }
    status done;
    if (std::exchange(has_put_, false)) {
        done = ranks.conduit().rma()->flush(client, completion_->count());
    }
    status completed =
        completion_->wait(ranks.engine(), [] { return std::string("moving data of the client"); });
    completion_.reset();
    active_ranges_.clear();
    return done ? std::move(completed) : std::move(done);
}

} // namespace diomp::offload::service
