// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/service/peer_fetches.h"

#include "base/service_thread.h"
#include "transport/arena.h"
#include "transport/conduit.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace diomp::offload::service {

peer_fetches::~peer_fetches() {
    {
        std::lock_guard const guard(mutex_);
        stopping_ = true;
    }
    wake();
    if (thread_.joinable()) {
        thread_.join();
    }
}

void peer_fetches::start(remote::world &ranks) {
    {
        std::lock_guard const guard(mutex_);
        ranks_ = &ranks;
    }
    if (ranks.device_memory(ranks.rank())) { // otherwise no session sends requests
        thread_ = start_service_thread("diomp-fetches", [this] { serve(); });
    }
}

void peer_fetches::on_request(const transport::message &incoming) {
    auto request = remote::decode_peer_copy(remote::bytes_of(incoming));
    if (!request || incoming.source.value() < num_clients_) {
        return; // not sent by a session of this version
    }
    {
        std::lock_guard const guard(mutex_);
        requests_.push_back({incoming.source, request.value()});
    }
    wake();
}

void peer_fetches::wake() {
    remote::world *ranks = nullptr;
    {
        std::lock_guard const guard(mutex_);
        ranks = ranks_;
    }
    wake_.notify_one();
    if (ranks != nullptr) {
        ranks->conduit().waits().wake();
    }
}

void peer_fetches::on_peer_lost(world_rank peer) {
    std::lock_guard const guard(mutex_);
    std::erase_if(requests_, [&](const copy_request &each) { return each.source == peer; });
}

bool peer_fetches::may_start(const copy_request &request) const {
    auto const known = num_in_flight_.find(request.source.value());
    return known == num_in_flight_.end() || known->second < max_concurrent;
}

std::vector<peer_fetches::copy_request> peer_fetches::pop_startable() {
    std::lock_guard const guard(mutex_);
    std::vector<copy_request> taken;
    std::erase_if(requests_, [&](const copy_request &each) {
        if (!may_start(each)) {
            return false;
        }
        ++num_in_flight_[each.source.value()];
        taken.push_back(each);
        return true;
    });
    return taken;
}

bool peer_fetches::wait_for_change(const std::list<fetch> &in_flight) {
    auto const has_come = [this] {
        return stopping_ || std::ranges::any_of(requests_, [this](const copy_request &each) {
                   return may_start(each);
               });
    };
    if (in_flight.empty()) {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, has_come);
        return !stopping_;
    }
    status const waited = ranks_->engine().wait_for_network(
        [&] {
            bool const is_over = std::ranges::any_of(
                in_flight, [](const fetch &each) { return each.completion.is_done(); });
            std::lock_guard const guard(mutex_);
            return is_over || has_come();
        },
        [&] { return fmt::format("fetching {} ranges from remote devices", in_flight.size()); });
    std::lock_guard const guard(mutex_);
    return waited.ok() && !stopping_;
}

void peer_fetches::serve() {
    std::list<fetch> in_flight;
    while (wait_for_change(in_flight)) {
        for (copy_request const &each : pop_startable()) {
            fetch &wanted = in_flight.emplace_back();
            wanted.request = each;
            if (status const begun = begin(wanted); !begun) {
                send_reply(each, begun);
                in_flight.pop_back();
            }
        }
        std::erase_if(in_flight, [this](fetch &each) {
            if (!each.completion.is_done()) {
                return false;
            }
            std::size_t const nbytes = each.request.what.transfer.nbytes;
            status const completed = each.completion.wait(ranks_->engine(), [&] {
                return fmt::format("fetching {} bytes from remote device {}", nbytes,
                                   ranks_->session_number(each.request.source));
            });
            if (completed) {
                moved_.zero_copy.fetch_add(nbytes, std::memory_order_relaxed);
            }
            each.memory = {}; // the reply permits the client to free it
            send_reply(each.request, completed);
            return true;
        });
    }
}

status peer_fetches::begin(fetch &wanted) {
    remote::zero_copy_transfer const &what = wanted.request.what.transfer;
    auto memory = retain_for_network(*ranks_, device_, what.address, what.nbytes);
    DIOMP_TRY(memory);
    wanted.memory = memory.take();
    return ranks_->conduit().device()->get_device_memory(
        wanted.request.source, what.peer_address, to_pointer(what.address), what.nbytes,
        {wanted.request.what.source_memory, wanted.memory.kind}, wanted.completion.count());
}

void peer_fetches::send_reply(const copy_request &request, const status &done) {
    {
        std::lock_guard const guard(mutex_);
        --num_in_flight_[request.source.value()];
    }
    packet_writer packet;
    packet.number(request.what.ticket);
    if (!done) { // messages in shared memory are short
        packet.bytes(std::string_view(done.failure().message())
                         .substr(0, ranks_->conduit().max_message_bytes(request.source) -
                                        sizeof request.what.ticket));
    }
    ranks_->send(request.source, remote::world::copy_reply_handler, packet.take());
}

} // namespace diomp::offload::service
