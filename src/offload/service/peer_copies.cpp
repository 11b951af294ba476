// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "offload/service/peer_copies.h"

#include <fmt/format.h>

#include <utility>

namespace diomp::offload::service {

status peer_copies::copy(remote::world &ranks, world_rank to,
                         const remote::zero_copy_transfer &what,
                         transport::memory_kind source_memory) {
    remote::peer_copy request{0, what, source_memory};
    {
        std::lock_guard const guard(mutex_);
        if (auto const gone = lost_.find(to.value()); gone != lost_.end()) {
            return error(OMPX_ERR_PEER, gone->second);
        }
        request.ticket = next_ticket_++;
        sent_requests_.emplace(request.ticket, sent_request{to, false, {}});
    }
    ranks.send(to, remote::world::copy_handler, encode(request));
    status waited = ranks.engine().wait_for_network([&] { return is_over(request.ticket); },
                                                    [&] {
                                                        return fmt::format(
                                                            "copying {} bytes to remote "
                                                            "device {}",
                                                            what.nbytes, ranks.session_number(to));
                                                    });
    std::lock_guard const guard(mutex_);
    sent_request const reply = std::move(sent_requests_.extract(request.ticket).mapped());
    if (!waited) {
        return waited.take_failure();
    }
    return reply.failure.empty() ? status() : error(OMPX_ERR_PEER, reply.failure);
}

bool peer_copies::is_over(std::uint64_t ticket) {
    std::lock_guard const guard(mutex_);
    return sent_requests_.at(ticket).is_over;
}

void peer_copies::on_reply(const transport::message &incoming) {
    packet_reader packet(remote::bytes_of(incoming));
    auto const ticket = packet.number<std::uint64_t>();
    std::lock_guard const guard(mutex_);
    auto const found = sent_requests_.find(ticket);
    if (found != sent_requests_.end() && found->second.target == incoming.source) {
        found->second.failure = packet.rest();
        found->second.is_over = true;
    }
}

void peer_copies::on_peer_lost(world_rank peer, const std::string &why) {
    std::lock_guard const guard(mutex_);
    lost_.emplace(peer.value(), why);
    for (auto &[ticket, request] : sent_requests_) {
        if (request.target == peer && !request.is_over) {
            request.failure = why;
            request.is_over = true;
        }
    }
}

} // namespace diomp::offload::service
