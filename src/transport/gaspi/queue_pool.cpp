// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/gaspi/queue_pool.h"

#include <algorithm>
#include <cstring>

namespace diomp::transport::gaspi {
namespace {

constexpr std::size_t num_queues[num_queue_kinds] = {6, 5, 4}; // put, get, message
static_assert(num_queues[0] + num_queues[1] + num_queues[2] == launch::gaspi::launcher_queue);

bool is_free(const gaspi_queue &queue, queue_kind kind) {
    return queue.kind == kind && queue.is_idle() && !queue.is_lost;
}

} // namespace

queue_pool::queue_pool(work_segment &work) : work_(work) {
    std::uint8_t queue = 0;
    for (std::size_t kind = 0; kind < num_queue_kinds; ++kind) {
        for (std::size_t i = 0; i < num_queues[kind]; ++i) {
            queues_.emplace_back(queue++, static_cast<queue_kind>(kind));
        }
    }
}

gaspi_queue *queue_pool::find(peer &at, queue_kind kind) {
    gaspi_queue *&own = at.queues[static_cast<std::size_t>(kind)];
    if (own != nullptr && own->assigned_peer == &at) {
        return own->has_space() ? own : nullptr;
    }
    for (gaspi_queue &each : queues_) {
        if (is_free(each, kind)) {
            each.assigned_peer = &at;
            own = &each;
            return own;
        }
    }
    return nullptr;
}

gaspi_queue *queue_pool::find_for_data(peer &to) {
    gaspi_queue *const own = find(to, queue_kind::message);
    bool const others_have_one = std::ranges::any_of(queues_, [&](const gaspi_queue &each) {
        return &each != own && is_free(each, queue_kind::message);
    });
    return others_have_one ? own : nullptr;
}

queue_pool::outcome queue_pool::check(peer &at, outcome tried) {
    if (tried == outcome::failed) {
        broken_.push_back(&at);
    }
    return tried;
}

void queue_pool::complete(peer &at, const operation &over, int code) {
    if (over.kind == operation::what::get) {
        if (code == 0 && over.block != nullptr) {
            std::memcpy(over.copy_to, over.block, over.nbytes);
        }
        at.gets.complete(over.nbytes);
    }
    if (over.kind == operation::what::put && over.done != nullptr) {
        --at.num_transfers;
    }
    if (over.done != nullptr) {
        over.done->end(code);
    }
    // Blocks of a lost peer are not reused: GPI-2 may still access them.
    if (over.block != nullptr && code == 0) {
        work_.release_block(over.block);
    }
}

bool queue_pool::advance(gaspi_queue &at) {
    if (at.is_idle()) {
        return false;
    }
    if (!at.poll_completions()) {
        broken_.push_back(at.assigned_peer);
        return true;
    }
    bool moved = false;
    while (at.is_front_complete()) {
        operation const over = at.outstanding.front();
        at.outstanding.pop_front();
        complete(*at.assigned_peer, over, 0);
        if (over.kind == operation::what::get || over.done != nullptr) {
            at.assigned_peer->note_activity();
        }
        moved = true;
    }
    return moved;
}

bool queue_pool::advance() {
    bool moved = false;
    for (gaspi_queue &each : queues_) {
        moved = (!each.is_lost && advance(each)) || moved;
    }
    return moved;
}

void queue_pool::fail(peer &lost) {
    for (gaspi_queue &each : queues_) {
        if (each.assigned_peer != &lost || each.is_idle()) {
            continue;
        }
        each.is_lost = true;
        for (operation const &over : each.outstanding) {
            complete(lost, over, OMPX_ERR_PEER);
        }
        each.outstanding.clear();
    }
}

} // namespace diomp::transport::gaspi
