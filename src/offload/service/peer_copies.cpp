// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/service/peer_copies.h"

#include "base/service_thread.h"
#include "conduit/flight.h"

#include <fmt/format.h>

#include <span>
#include <utility>

namespace diomp::offload::service {
namespace {

std::string_view bytes_of(const conduit::message &incoming) {
    return {reinterpret_cast<const char *>(incoming.payload.data()), incoming.payload.size()};
}

void send(remote::world &ranks, world_rank to, conduit::handler_id handler,
          const std::string &bytes) {
    ranks.engine().send(to, handler, std::as_bytes(std::span(bytes)));
}

} // namespace

peer_copies::~peer_copies() {
    {
        std::lock_guard const guard(mutex_);
        stopping_ = true;
        wake_.notify_all();
    }
    if (thread_.joinable()) {
        thread_.join();
    }
}

void peer_copies::start(remote::world &ranks) {
    ranks_ = &ranks;
    if (ranks.device_memory(ranks.rank())) { // else nobody has a reason to ask
        thread_ = start_service_thread("diomp-fetches", [this] { serve(); });
    }
}

status peer_copies::copy(world_rank to, const remote::straight_transfer &what,
                         conduit::memory_kind source_memory) {
    remote::peer_copy asked{0, what, source_memory};
    {
        std::lock_guard const guard(mutex_);
        if (auto const gone = lost_.find(to.value()); gone != lost_.end()) {
            return error(OMPX_ERR_PEER, gone->second);
        }
        asked.ticket = next_ticket_++;
        questions_.emplace(asked.ticket, question{to, false, {}});
    }
    send(*ranks_, to, remote::world::copy_handler, encode(asked));
    status waited =
        ranks_->engine().wait_for_network([&] { return is_over(asked.ticket); },
                                          [&] {
                                              return fmt::format("copying {} bytes to remote "
                                                                 "device {}",
                                                                 what.nbytes, to.value() - 1);
                                          });
    std::lock_guard const guard(mutex_);
    question const answered = std::move(questions_.extract(asked.ticket).mapped());
    if (!waited) {
        return waited.take_failure();
    }
    return answered.failure.empty() ? status() : error(OMPX_ERR_PEER, answered.failure);
}

bool peer_copies::is_over(std::uint64_t ticket) {
    std::lock_guard const guard(mutex_);
    return questions_.at(ticket).is_over;
}

void peer_copies::take_request(const conduit::message &incoming) {
    auto asked = remote::decode_peer_copy(bytes_of(incoming));
    if (!asked || incoming.source == world_rank(0)) {
        return; // no session of this version
    }
    std::lock_guard const guard(mutex_);
    requests_.push_back({incoming.source, asked.value()});
    wake_.notify_one();
}

void peer_copies::take_answer(const conduit::message &incoming) {
    packet_reader packet(bytes_of(incoming));
    auto const ticket = packet.number<std::uint64_t>();
    std::lock_guard const guard(mutex_);
    auto const found = questions_.find(ticket);
    if (found != questions_.end() && found->second.target == incoming.source) {
        found->second.failure = packet.rest();
        found->second.is_over = true;
    }
}

void peer_copies::lose(world_rank peer, const std::string &why) {
    std::lock_guard const guard(mutex_);
    lost_.emplace(peer.value(), why);
    for (auto &[ticket, asked] : questions_) {
        if (asked.target == peer && !asked.is_over) {
            asked.failure = why;
            asked.is_over = true;
        }
    }
}

void peer_copies::serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
        wake_.wait(lock, [this] { return stopping_ || !requests_.empty(); });
        if (stopping_) {
            return;
        }
        request const asked = requests_.front();
        requests_.erase(requests_.begin());
        lock.unlock();
        status const done = fetch(asked);
        packet_writer answer;
        answer.number(asked.what.ticket);
        if (!done) {
            answer.bytes(done.failure().message());
        }
        send(*ranks_, asked.source, remote::world::copied_handler, answer.take());
        lock.lock();
    }
}

status peer_copies::fetch(const request &asked) {
    remote::straight_transfer const &what = asked.what.transfer;
    auto memory = hold_for_network(*ranks_, device_, what.address, what.nbytes);
    DIOMP_TRY(memory);
    conduit::flight arrival;
    DIOMP_TRY(ranks_->conduit().get_between(
        asked.source, what.there, to_pointer(what.address), what.nbytes,
        {asked.what.source_memory, memory.value().kind}, arrival.count()));
    DIOMP_TRY(arrival.wait(ranks_->engine(), [&] {
        return fmt::format("fetching {} bytes from remote device {}", what.nbytes,
                           asked.source.value() - 1);
    }));
    moved_.straight.fetch_add(what.nbytes, std::memory_order_relaxed);
    return {};
}

} // namespace diomp::offload::service
