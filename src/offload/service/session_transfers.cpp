// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/service/session_transfers.h"

#include "transport/arena.h"
#include "transport/conduit.h"

#include <fmt/format.h>

#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace diomp::offload::service {

void session_transfers::start(remote::world &ranks) {
    ranks_ = &ranks;
    fetches_.start(ranks);
}

void session_transfers::on_peer_lost(world_rank peer, const std::string &why) {
    copies_.on_peer_lost(peer, why);
    fetches_.on_peer_lost(peer);
}

status session_transfers::begin_zero_copy(zero_copy_transfers &queue, remote::operation op,
                                          const remote::zero_copy_transfer &what) {
    DIOMP_TRY(op == remote::operation::fetch ? queue.fetch(*ranks_, client_, device_, what)
                                             : queue.deliver(*ranks_, client_, device_, what));
    moved_.zero_copy.fetch_add(what.nbytes, std::memory_order_relaxed);
    return {};
}

namespace {

/// `copies`, or new ones, with another copy of `nbytes`.
started_copies &grown(std::unique_ptr<started_copies> &copies, world_rank with, bool are_to_it,
                      std::size_t nbytes) {
    if (copies == nullptr) {
        copies = std::make_unique<started_copies>();
        copies->with = with;
        copies->are_to_it = are_to_it;
    }
    copies->nbytes += nbytes;
    return *copies;
}

} // namespace

status session_transfers::begin_copy(std::unique_ptr<started_copies> &copies,
                                     remote::operation what, world_rank other,
                                     std::uint64_t destination, std::uint64_t source,
                                     std::size_t nbytes) {
    return what == remote::operation::copy ? push(copies, other, destination, source, nbytes)
                                           : pull(copies, other, destination, source, nbytes);
}

status session_transfers::push(std::unique_ptr<started_copies> &copies, world_rank to,
                               std::uint64_t destination, std::uint64_t source,
                               std::size_t nbytes) {
    if (to == ranks_->rank()) {
        return copy_here(destination, source, nbytes);
    }
    if (!ranks_->is_session(to)) {
        return error(OMPX_ERR_RANK, "a copy to a device that does not exist");
    }
    if (has(to, destination, nbytes)) {
        return ranks_->name_device(to, copy_to_slot(copies, to, destination, source, nbytes));
    }
    if (!ranks_->device_memory(to)) {
        return error(OMPX_ERR_RANGE, "a copy to memory that the other device does not have");
    }
    auto memory = retain_for_network(*ranks_, device_, source, nbytes);
    DIOMP_TRY(memory);
    return copies_.copy(*ranks_, to, {destination, source, nbytes}, memory.value().kind);
}

status session_transfers::flush(started_copies &copies) {
    if (copies.are_flushed) {
        return {};
    }
    copies.are_flushed = true;
    return copies.are_to_it ? ranks_->conduit().rma()->flush(copies.with, copies.completion.count())
                            : status();
}

status session_transfers::finish(const std::unique_ptr<started_copies> &copies) {
    if (copies == nullptr) {
        return {};
    }
    status done = flush(*copies);
    if (done) {
        done = copies->completion.wait(ranks_->engine(), [&] {
            return fmt::format("copying {} bytes {} it", copies->nbytes,
                               copies->are_to_it ? "to" : "from");
        });
    }
    return ranks_->name_device(copies->with, std::move(done));
}

status session_transfers::copy_here(std::uint64_t destination, std::uint64_t source,
                                    std::size_t nbytes) {
    DIOMP_TRY(device_.copy(destination, source, nbytes));
    if (device_.is_loadable(destination, nbytes) != device_.is_loadable(source, nbytes)) {
        moved_.staged.fetch_add(nbytes, std::memory_order_relaxed);
    }
    return {};
}

status session_transfers::copy_to_slot(std::unique_ptr<started_copies> &copies, world_rank to,
                                       std::uint64_t destination, std::uint64_t source,
                                       std::size_t nbytes) {
    if (ranks_->conduit().direct_base(to) != nullptr) {
        return copy_in_node(to, destination, source, nbytes);
    }
    started_copies &all = grown(copies, to, true, nbytes);
    void const *from = to_pointer(source);
    transport::memory_kinds kinds;
    if (!device_.is_loadable(source, nbytes)) {
        if (auto zero_copy = retain_for_network(*ranks_, device_, source, nbytes)) {
            kinds.local = zero_copy.value().kind;
            all.memory.push_back(zero_copy.take());
            moved_.zero_copy.fetch_add(nbytes, std::memory_order_relaxed);
        } else {
            std::string &staged =
                *all.staged.emplace_back(std::make_unique<std::string>(nbytes, '\0'));
            DIOMP_TRY(device_.read(staged.data(), source, nbytes));
            from = staged.data();
            moved_.staged.fetch_add(nbytes, std::memory_order_relaxed);
        }
    }
    transport::completion &count = all.completion.count();
    return kinds.are_host() ? ranks_->conduit().rma()->put(to, destination, from, nbytes, count)
                            : ranks_->conduit().device()->put_device_memory(to, destination, from,
                                                                            nbytes, kinds, count);
}

status session_transfers::copy_in_node(world_rank to, std::uint64_t destination,
                                       std::uint64_t source, std::size_t nbytes) {
    if (device_.is_loadable(source, nbytes)) {
        std::memcpy(to_pointer(destination), to_pointer(source), nbytes);
    } else {
        DIOMP_TRY(device_.read(to_pointer(destination), source, nbytes));
        moved_.staged.fetch_add(nbytes, std::memory_order_relaxed);
    }
    return ranks_->check_present(to);
}

bool session_transfers::has(world_rank owner, std::uint64_t address, std::size_t nbytes) const {
    return slot{ranks_->memory_of(owner), ranks_->arena().usable_bytes()}.has(address, nbytes);
}

status session_transfers::pull(std::unique_ptr<started_copies> &copies, world_rank from,
                               std::uint64_t destination, std::uint64_t source,
                               std::size_t nbytes) {
    if (!ranks_->is_session(from) || from == ranks_->rank()) {
        return error(OMPX_ERR_RANGE, "a copy from a device that does not exist");
    }
    if (!has(from, source, nbytes) || !has(ranks_->rank(), destination, nbytes)) {
        return error(OMPX_ERR_RANGE, "a copy between memory that is in no slot");
    }
    return ranks_->name_device(from, get_from_slot(copies, from, destination, source, nbytes));
}

status session_transfers::get_from_slot(std::unique_ptr<started_copies> &copies, world_rank from,
                                        std::uint64_t destination, std::uint64_t source,
                                        std::size_t nbytes) {
    if (ranks_->conduit().direct_base(from) != nullptr) {
        std::memcpy(to_pointer(destination), to_pointer(source), nbytes);
        return ranks_->check_present(from);
    }
    return ranks_->conduit().rma()->get(from, source, to_pointer(destination), nbytes,
                                        grown(copies, from, false, nbytes).completion.count());
}

static void remove_whole_pages(std::uint64_t address, std::uint64_t nbytes) {
    auto const page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    std::uint64_t const first = (address + page - 1) / page * page;
    std::uint64_t const end = (address + nbytes) / page * page;
    if (first < end) {
        static_cast<void>(::madvise(to_pointer(first), end - first, MADV_REMOVE));
    }
}

status session_transfers::release_pages(packet_reader &ranges) {
    std::uint64_t const begin = ranks_->memory_of(ranks_->rank());
    slot const memory{begin, ranks_->arena().usable_bytes()};
    auto const count = ranges.number<std::uint32_t>();
    for (std::uint32_t i = 0; i < count && ranges.ok(); ++i) {
        auto const address = ranges.number<std::uint64_t>();
        auto const nbytes = ranges.number<std::uint64_t>();
        if (!memory.has(address, nbytes)) {
            return error(OMPX_ERR_RANGE, "cannot release pages outside the device's memory");
        }
        remove_whole_pages(address, nbytes);
    }
    return {};
}

} // namespace diomp::offload::service
