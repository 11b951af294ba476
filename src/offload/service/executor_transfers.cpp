// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Data transfers of an executor, and the release of pages.
#include "messaging/pooled_completion.h"
#include "offload/service/executor.h"

#include <fmt/format.h>

namespace diomp::offload::service {
namespace {

/// Larger than the maximum message of any conduit.
constexpr std::size_t max_reply_bytes = std::size_t{1} << 20;

} // namespace

status executor::get(entry &queue, std::uint64_t address, std::size_t nbytes) {
    std::size_t const before = queue.gets.size();
    if (nbytes > max_reply_bytes) {
        return error(OMPX_ERR_ARG, "a batch requests more bytes than a reply can have");
    }
    queue.gets.resize(before + nbytes);
    return device_.read(queue.gets.data() + before, address, nbytes);
}

status executor::start_zero_copy(entry &queue, remote::operation op,
                                 const remote::zero_copy_transfer &what) {
    remote::world &ranks = *ranks_.load(std::memory_order_acquire);
    DIOMP_TRY(op == remote::operation::fetch ? queue.zero_copy.fetch(ranks, device_, what)
                                             : queue.zero_copy.deliver(ranks, device_, what));
    moved_.zero_copy.fetch_add(what.nbytes, std::memory_order_relaxed);
    return {};
}

void executor::finish_zero_copy(entry &queue) {
    status const completed = queue.zero_copy.wait(*ranks_.load(std::memory_order_acquire));
    if (!completed && queue.failure.empty()) {
        queue.failure = completed.failure().message();
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
    if (slot{ranks.memory_of(to), ranks.arena().usable_bytes()}.has(destination, nbytes)) {
        return copy_to_slot(to, destination, source, nbytes);
    }
    if (!ranks.device_memory(to)) {
        return error(OMPX_ERR_RANGE, "a copy to memory that the other device does not have");
    }
    auto memory = retain_for_network(ranks, device_, source, nbytes);
    DIOMP_TRY(memory);
    return peers_.copy(to, {destination, source, nbytes}, memory.value().kind);
}

status executor::copy_here(std::uint64_t destination, std::uint64_t source, std::size_t nbytes) {
    DIOMP_TRY(device_.copy(destination, source, nbytes));
    if (device_.is_loadable(destination, nbytes) != device_.is_loadable(source, nbytes)) {
        moved_.staged.fetch_add(nbytes, std::memory_order_relaxed);
    }
    return {};
}

status executor::copy_to_slot(world_rank to, std::uint64_t destination, std::uint64_t source,
                              std::size_t nbytes) {
    remote::world &ranks = *ranks_.load(std::memory_order_acquire);
    std::string staged;
    void const *from = to_pointer(source);
    transport::memory_kinds kinds;
    network_range memory;
    if (!device_.is_loadable(source, nbytes)) {
        if (auto zero_copy = retain_for_network(ranks, device_, source, nbytes)) {
            memory = zero_copy.take();
            kinds.local = memory.kind;
            moved_.zero_copy.fetch_add(nbytes, std::memory_order_relaxed);
        } else {
            staged.resize(nbytes);
            DIOMP_TRY(device_.read(staged.data(), source, nbytes));
            from = staged.data();
            moved_.staged.fetch_add(nbytes, std::memory_order_relaxed);
        }
    }
    messaging::pooled_completion completion;
    DIOMP_TRY(kinds.are_host()
                  ? ranks.conduit().put(to, destination, from, nbytes, completion.count())
                  : ranks.conduit().put_device_memory(to, destination, from, nbytes, kinds,
                                                      completion.count()));
    DIOMP_TRY(ranks.conduit().flush(to, completion.count()));
    return completion.wait(ranks.engine(), [&] {
        return fmt::format("copying {} bytes to remote device {}", nbytes, to.value() - 1);
    });
}

status executor::release_pages(packet_reader &parts) {
    remote::world const &ranks = *ranks_.load(std::memory_order_acquire);
    std::uint64_t const begin = ranks.memory_of(ranks.rank());
    slot const memory{begin, ranks.arena().usable_bytes()};
    auto const count = parts.number<std::uint32_t>();
    for (std::uint32_t i = 0; i < count && parts.ok(); ++i) {
        auto const address = parts.number<std::uint64_t>();
        auto const nbytes = parts.number<std::uint64_t>();
        if (!memory.has(address, nbytes)) {
            return error(OMPX_ERR_RANGE, "cannot release pages outside the device's memory");
        }
        ranks.arena().release_pages(local_rank(0), address - begin, nbytes);
    }
    return {};
}

} // namespace diomp::offload::service
