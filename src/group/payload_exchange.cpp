// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "group/internal/payload_exchange.h"

#include "group/internal/current_call.h"
#include "group/internal/local_group.h"
#include "group/internode.h"

#include <algorithm>
#include <cstring>

namespace diomp::group {

status payload_exchange::run(const sync::call_signature &call, const sync::round_payload &payload) {
    current_call &current = internode_.current();
    const node_layout &layout = internode_.layout();
    internode_.note_several_rounds();
    current.begin(call);
    payloads_.resize(layout.members.size());
    payloads_[layout.self()] = payload;
    internode_.arrivals().arrive(std::as_bytes(std::span(payload)));
    if (current.is_call_leader()) {
        gather_on_node();
        internode_.synchronize();
        internode_.arrivals().publish_result();
    } else {
        internode_.arrivals().wait_for_result();
    }
    DIOMP_TRY(current.outcome());
    status exchanged = layout.is_leader() ? exchange_between_leaders() : status{};
    DIOMP_TRY(bcast_on_node(exchanged.ok()));
    return exchanged;
}

void payload_exchange::gather_on_node() {
    const node_layout &layout = internode_.layout();
    internode_.arrivals().gather();
    for (std::size_t index = 0; index < layout.local_members.size(); ++index) {
        if (index != layout.own_local_index && internode_.current().is_clean()) {
            sync::round_payload &received = payloads_[layout.local_members[index]];
            std::memcpy(&received, internode_.arrivals().data_of(index, sizeof(received)),
                        sizeof(received));
        }
    }
}

// Bruck's allgather: a leader that has the payloads of `have` nodes, beginning with its own, sends
// them to the node `have` positions before it and receives as many from the node `have` after it.
status payload_exchange::exchange_between_leaders() {
    const node_layout &layout = internode_.layout();
    internode_channel &channel = internode_.channel();
    std::size_t const num = layout.num_nodes();
    std::size_t const own = layout.own_node;
    std::uint64_t step = step_payloads;
    for (std::size_t have = 1; have < num; ++step) {
        std::size_t const n = std::min(have, num - have);
        std::size_t num_out = 0;
        std::vector<std::uint32_t> expected_members;
        for (std::size_t i = 0; i < n; ++i) {
            num_out += layout.sizes[(own + i) % num];
            auto const theirs = layout.members_of((own + have + i) % num);
            expected_members.insert(expected_members.end(), theirs.begin(), theirs.end());
        }
        // Scratch memory outlives a call that fails while the network still reads it.
        std::span<std::byte> const out(channel.scratch(num_out * sizeof(sync::round_payload)),
                                       num_out * sizeof(sync::round_payload));
        std::byte *next = out.data();
        for (std::size_t i = 0; i < n; ++i) {
            for (std::uint32_t const member : layout.members_of((own + i) % num)) {
                std::memcpy(next, &payloads_[member], sizeof(sync::round_payload));
                next += sizeof(sync::round_payload);
            }
        }
        std::vector<sync::round_payload> in(expected_members.size());
        recv_request request;
        channel.post_recv(request, layout.leaders[(own + have) % num], step,
                          std::as_writable_bytes(std::span(in)));
        if (status sent = channel.send(layout.leaders[(own + num - have) % num], step, out);
            !sent) {
            channel.cancel(request);
            return sent;
        }
        DIOMP_TRY(channel.wait_received(request));
        DIOMP_TRY(channel.finish_sends());
        for (std::size_t i = 0; i < expected_members.size(); ++i) {
            payloads_[expected_members[i]] = in[i];
        }
        have += n;
    }
    return {};
}

status payload_exchange::bcast_on_node(bool valid) {
    local_group &local = internode_.local_members();
    if (local.size() == 1) {
        return {};
    }
    bool const is_leader = internode_.layout().is_leader();
    std::span<std::byte> const bytes = std::as_writable_bytes(std::span(payloads_));
    DIOMP_TRY(local.barrier().wait_all_arrived());
    for (std::size_t at = 0; at < bytes.size();) {
        std::size_t const n = std::min(bytes.size() - at, local.stage_buffers().buffer_bytes());
        if (is_leader && valid) {
            std::memcpy(local.next_stage_buffer(), bytes.data() + at, n);
        }
        DIOMP_TRY(local.barrier().arrive_and_wait(internode_.current().signature(),
                                                  {is_leader && !valid ? 1U : 0U}));
        if (local.barrier().payload_of(0)[0] != 0) {
            return error(OMPX_ERR_PEER,
                         "the leader of this node has lost the connection to another node");
        }
        if (!is_leader) {
            std::memcpy(bytes.data() + at, local.stage_buffer_of(0), n);
        }
        at += n;
    }
    return {};
}

} // namespace diomp::group
