// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/service/peer_copies.h"

#include "base/service_thread.h"

#include <fmt/format.h>

#include <algorithm>
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
    }
    wake();
    if (thread_.joinable()) {
        thread_.join();
    }
}

void peer_copies::start(remote::world &ranks) {
    {
        std::lock_guard const guard(mutex_);
        ranks_ = &ranks;
    }
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
    {
        std::lock_guard const guard(mutex_);
        requests_.push_back({incoming.source, asked.value()});
    }
    wake();
}

void peer_copies::wake() {
    remote::world *ranks = nullptr;
    {
        std::lock_guard const guard(mutex_);
        ranks = ranks_;
    }
    wake_.notify_one();
    if (ranks != nullptr) {
        ranks->conduit().wake();
    }
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
    std::erase_if(requests_, [&](const request &each) { return each.source == peer; });
    for (auto &[ticket, asked] : questions_) {
        if (asked.target == peer && !asked.is_over) {
            asked.failure = why;
            asked.is_over = true;
        }
    }
}

bool peer_copies::may_start(const request &asked) const {
    auto const known = num_under_way_.find(asked.source.value());
    return known == num_under_way_.end() || known->second < most_at_once;
}

std::vector<peer_copies::request> peer_copies::take_requests() {
    std::lock_guard const guard(mutex_);
    std::vector<request> taken;
    std::erase_if(requests_, [&](const request &each) {
        if (!may_start(each)) {
            return false;
        }
        ++num_under_way_[each.source.value()];
        taken.push_back(each);
        return true;
    });
    return taken;
}

bool peer_copies::wait_for_change(const std::list<fetch> &under_way) {
    auto const has_come = [this] {
        return stopping_ || std::ranges::any_of(
                                requests_, [this](const request &each) { return may_start(each); });
    };
    if (under_way.empty()) {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, has_come);
        return !stopping_;
    }
    status const waited = ranks_->engine().wait_for_network(
        [&] {
            bool const is_over = std::ranges::any_of(
                under_way, [](const fetch &each) { return each.arrival.is_done(); });
            std::lock_guard const guard(mutex_);
            return is_over || has_come();
        },
        [&] { return fmt::format("fetching {} parts from remote devices", under_way.size()); });
    std::lock_guard const guard(mutex_);
    return waited.ok() && !stopping_;
}

void peer_copies::serve() {
    std::list<fetch> under_way;
    while (wait_for_change(under_way)) {
        for (request const &each : take_requests()) {
            fetch &wanted = under_way.emplace_back();
            wanted.asked = each;
            if (status const begun = begin(wanted); !begun) {
                answer(each, begun);
                under_way.pop_back();
            }
        }
        std::erase_if(under_way, [this](fetch &each) {
            if (!each.arrival.is_done()) {
                return false;
            }
            std::size_t const nbytes = each.asked.what.transfer.nbytes;
            status const landed = each.arrival.wait(ranks_->engine(), [&] {
                return fmt::format("fetching {} bytes from remote device {}", nbytes,
                                   each.asked.source.value() - 1);
            });
            if (landed) {
                moved_.straight.fetch_add(nbytes, std::memory_order_relaxed);
            }
            each.memory = {}; // who hears of the end may free it
            answer(each.asked, landed);
            return true;
        });
    }
}

status peer_copies::begin(fetch &wanted) {
    remote::straight_transfer const &what = wanted.asked.what.transfer;
    auto memory = hold_for_network(*ranks_, device_, what.address, what.nbytes);
    DIOMP_TRY(memory);
    wanted.memory = memory.take();
    return ranks_->conduit().get_between(
        wanted.asked.source, what.there, to_pointer(what.address), what.nbytes,
        {wanted.asked.what.source_memory, wanted.memory.kind}, wanted.arrival.count());
}

void peer_copies::answer(const request &asked, const status &done) {
    {
        std::lock_guard const guard(mutex_);
        --num_under_way_[asked.source.value()];
    }
    packet_writer packet;
    packet.number(asked.what.ticket);
    if (!done) {
        packet.bytes(done.failure().message());
    }
    send(*ranks_, asked.source, remote::world::copied_handler, packet.take());
}

} // namespace diomp::offload::service
