// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How an executor moves data, and gives pages back.
#include "conduit/flight.h"
#include "offload/service/executor.h"

#include <fmt/format.h>

namespace diomp::offload::service {
namespace {

/// More than any conduit's message holds.
constexpr std::size_t most_reply_bytes = std::size_t{1} << 20;

} // namespace

status executor::get(line &queue, std::uint64_t address, std::size_t nbytes) {
    std::size_t const before = queue.gets.size();
    if (nbytes > most_reply_bytes) {
        return error(OMPX_ERR_ARG, "a batch asks for more bytes than a reply can have");
    }
    queue.gets.resize(before + nbytes);
    return device_.read(queue.gets.data() + before, address, nbytes);
}

status executor::move_straight(line &queue, remote::operation way,
                               const remote::straight_transfer &what) {
    remote::world &ranks = *ranks_.load(std::memory_order_acquire);
    DIOMP_TRY(way == remote::operation::fetch ? queue.straight.fetch(ranks, device_, what)
                                              : queue.straight.deliver(ranks, device_, what));
    moved_.straight.fetch_add(what.nbytes, std::memory_order_relaxed);
    return {};
}

void executor::end_straight(line &queue) {
    status const landed = queue.straight.wait(*ranks_.load(std::memory_order_acquire));
    if (!landed && queue.failure.empty()) {
        queue.failure = landed.failure().message();
    }
}

status executor::copy(world_rank to, std::uint64_t destination, std::uint64_t source,
                      std::size_t nbytes) {
    remote::world const &ranks = *ranks_.load(std::memory_order_acquire);
    if (to == ranks.rank()) {
        return copy_here(destination, source, nbytes);
    }
    if (to.value() <= 0 || to.value() >= ranks.size()) {
        return error(OMPX_ERR_RANK, "a copy to a device that does not exist");
    }
    if (slot{ranks.memory_of(to), ranks.window().usable_bytes()}.has(destination, nbytes)) {
        return copy_to_slot(to, destination, source, nbytes);
    }
    if (!ranks.device_memory(to)) {
        return error(OMPX_ERR_RANGE, "a copy to memory that the other device does not have");
    }
    auto memory = hold_for_network(ranks, device_, source, nbytes);
    DIOMP_TRY(memory);
    return peers_.copy(to, {destination, source, nbytes}, memory.value().kind);
}

status executor::copy_here(std::uint64_t destination, std::uint64_t source, std::size_t nbytes) {
    DIOMP_TRY(device_.copy(destination, source, nbytes));
    if (device_.is_loadable(destination, nbytes) != device_.is_loadable(source, nbytes)) {
        moved_.by_way.fetch_add(nbytes, std::memory_order_relaxed);
    }
    return {};
}

status executor::copy_to_slot(world_rank to, std::uint64_t destination, std::uint64_t source,
                              std::size_t nbytes) {
    remote::world &ranks = *ranks_.load(std::memory_order_acquire);
    std::string staged;
    void const *from = to_pointer(source);
    conduit::memory_ends ends;
    network_range memory;
    if (!device_.is_loadable(source, nbytes)) {
        if (auto straight = hold_for_network(ranks, device_, source, nbytes)) {
            memory = straight.take();
            ends.local = memory.kind;
            moved_.straight.fetch_add(nbytes, std::memory_order_relaxed);
        } else {
            staged.resize(nbytes);
            DIOMP_TRY(device_.read(staged.data(), source, nbytes));
            from = staged.data();
            moved_.by_way.fetch_add(nbytes, std::memory_order_relaxed);
        }
    }
    conduit::flight arrival;
    DIOMP_TRY(ends.are_host() ? ranks.conduit().put(to, destination, from, nbytes, arrival.count())
                              : ranks.conduit().put_between(to, destination, from, nbytes, ends,
                                                            arrival.count()));
    DIOMP_TRY(ranks.conduit().flush(to, arrival.count()));
    return arrival.wait(ranks.engine(), [&] {
        return fmt::format("copying {} bytes to remote device {}", nbytes, to.value() - 1);
    });
}

status executor::drop(packet_reader &parts) {
    remote::world const &ranks = *ranks_.load(std::memory_order_acquire);
    std::uint64_t const begin = ranks.memory_of(ranks.rank());
    slot const memory{begin, ranks.window().usable_bytes()};
    auto const count = parts.number<std::uint32_t>();
    for (std::uint32_t i = 0; i < count && parts.ok(); ++i) {
        auto const address = parts.number<std::uint64_t>();
        auto const nbytes = parts.number<std::uint64_t>();
        if (!memory.has(address, nbytes)) {
            return error(OMPX_ERR_RANGE, "pages that are none of the device's memory");
        }
        ranks.window().release_pages(local_rank(0), address - begin, nbytes);
    }
    return {};
}

} // namespace diomp::offload::service
